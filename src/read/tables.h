/*
 * Tables: the strings and stacks that events refer to, of one generation (v2) or of a whole file
 * (v1).
 *
 * A file names them by ID; events that are delivered name them by handle, a dense index given out
 * in the order of definition. Handle 0 is the empty string and the empty stack, and so is ID 0.
 *
 * Text is not copied: it stays in the buffer it was found in, which must outlive the tables. Frames
 * are canonical: of all frames with one PC, the first that was defined stands for all (§6.2, §4.1).
 */
#ifndef TRAIL_READ_TABLES_H
#define TRAIL_READ_TABLES_H

#include <trail/read.h>

#include "base/arena.h"
#include "base/idmap.h"

/* From IDs of the file to handles: a plain array while IDs are dense, a map for those that are not.
 */
struct idtable {
    uint32_t *dense; /* handle + 1; 0: not defined. Entry 0 is always defined */
    size_t dense_size;
    struct idmap sparse; /* values are handle + 1 as pointers */
    size_t count;
};

struct table_stack {
    uint32_t first; /* index into frames */
    uint32_t count;
};

/* Zero-initialised is not ready: call tables_reset first. */
struct tables {
    struct idtable string_ids, stack_ids;
    trail_string *strings; /* by handle */
    size_t string_count, string_capacity;
    struct table_stack *stacks; /* by handle */
    size_t stack_count, stack_capacity;
    trail_frame *frames;
    size_t frame_count, frame_capacity;
    struct idmap pc_frames;   /* PC -> index + 1 of its first frame, as a pointer */
    uint64_t *stack_file_ids; /* by handle: the ID in the file, for messages */
    struct arena extra;       /* text of strings that are not in the file */
    trail_maker maker;        /* of the file; stays over generations */
    uint64_t epoch;
    /* NULL, or called before anything that a handle stands for changes its place. */
    void (*settle)(void *context);
    void *settle_context;
};

enum table_result {
    TABLE_OK,
    TABLE_DUPLICATE, /* the ID is taken (0 always is) */
    TABLE_NO_MEMORY,
    TABLE_FULL /* more than 2^32 entries */
};

/* Makes the tables empty but for handle 0, for a new generation. False when memory is out. */
bool tables_reset(struct tables *tables);
void tables_free(struct tables *tables);

/* Defines a string or stack of the file. `raw` has `count` frames of 4 numbers: pc, func, file,
 * line. */
enum table_result tables_add_string(struct tables *tables, uint64_t id, trail_string text);
enum table_result tables_add_stack(struct tables *tables, uint64_t id, const uint64_t *raw,
                                   size_t count);

/*
 * Resolves the strings that frames name by ID to handles; called once, when all is defined. An ID
 * that is not defined becomes handle 0; the first such is told: *bad_string, in the stack
 * *bad_stack (IDs of the file), true in *bad_is_file when it is the file name. Returns false if
 * there was one.
 */
bool tables_resolve_frames(struct tables *tables, uint64_t *bad_stack, uint64_t *bad_string,
                           bool *bad_is_file);

/* Adds text of the file that has no ID there; it is not copied. Returns its handle, 0 for "". */
trail_string_handle tables_text(struct tables *tables, trail_string text);

/* Adds text that has no ID in the file; it is copied. Returns its handle, 0 for "" or without
 * memory. */
trail_string_handle tables_extra_string(struct tables *tables, const char *data, size_t size);

static inline bool idtable_find(const struct idtable *table, uint64_t id, uint32_t *handle)
{
    uint32_t entry = 0;
    if (__builtin_expect(id < table->dense_size, 1))
        entry = table->dense[id];
    else
        entry = (uint32_t)(uintptr_t)idmap_find(&table->sparse, id);
    *handle = entry ? entry - 1 : 0;
    return entry != 0;
}

/* The handle of an ID of the file; false (and handle 0) if it is not defined. */
static inline bool tables_string(const struct tables *tables, uint64_t id, uint32_t *handle)
{
    return idtable_find(&tables->string_ids, id, handle);
}

static inline bool tables_stack(const struct tables *tables, uint64_t id, uint32_t *handle)
{
    return idtable_find(&tables->stack_ids, id, handle);
}

#endif
