/*
 * Tables: the strings and stacks that events refer to, of one generation (v2) or of the whole file
 * (v1).
 *
 * A file refers to them by ID; delivered events refer to them by handle, a dense index in the order
 * of definition. Handle 0, like ID 0, is the empty string and the empty stack.
 *
 * Text is not copied: it stays in the buffer where it was found, which must outlive the tables.
 * Frames are canonical: of all frames with the same PC, the first defined is used for all (§6.2,
 * §4.1).
 */
#pragma once

#include <trail/read.h>

#include "base/arena.h"
#include "base/idmap.h"
#include "read/identity.h"
#include "read/recorded.h"

/* Maps IDs of the file to handles: an array for dense IDs, a map for the others. */
struct idtable {
    uint32_t *dense; /* handle + 1; 0: undefined. Entry 0 is always defined */
    size_t dense_size;
    struct idmap sparse; /* values are handle + 1 as pointers */
    size_t count;
};

struct table_stack {
    uint32_t first; /* index into frames */
    uint32_t count;
};

/* Call tables_reset before use; zero-initialized is not ready. */
struct tables {
    struct idtable string_ids, stack_ids;
    trail_string *strings; /* by handle */
    size_t string_count, string_capacity;
    struct table_stack *stacks; /* by handle */
    size_t stack_count, stack_capacity;
    trail_frame *frames;
    size_t frame_count, frame_capacity;
    struct idmap pc_frames;        /* PC -> index + 1 of its first frame, as a pointer */
    uint64_t *stack_file_ids;      /* by handle: the ID in the file, for messages */
    struct arena extra;            /* copied texts */
    trail_maker maker;             /* what made the file; kept across generations */
    struct recorded_rows recorded; /* what its recording took and missed */
    struct idmap goroutines;       /* goroutine -> struct identity in `extra`: its newest line */
    uint64_t epoch;
    /* If not NULL, called before anything that a handle refers to moves. */
    void (*settle)(void *context);
    void *settle_context;
};

enum table_result {
    TABLE_OK,
    TABLE_DUPLICATE, /* the ID is defined already (0 always is) */
    TABLE_NO_MEMORY,
    TABLE_FULL /* more than 2^32 entries */
};

/* Empties the tables except for handle 0, for a new generation. Returns false if out of memory. */
bool tables_reset(struct tables *tables);
void tables_free(struct tables *tables);

/*
 * Define a string or stack of the file. `raw` has `count` frames of 4 numbers: pc, func, file,
 * line.
 */
enum table_result tables_add_string(struct tables *tables, uint64_t id, trail_string text);
enum table_result tables_add_stack(struct tables *tables, uint64_t id, const uint64_t *raw,
                                   size_t count);
/* The same for formats in which the last stack with an ID replaces earlier ones. */
enum table_result tables_replace_stack(struct tables *tables, uint64_t id, const uint64_t *raw,
                                       size_t count);

/*
 * Resolves the string IDs in frames to handles; call it once, after everything is defined. An
 * undefined ID becomes handle 0. Returns false if there was one, and reports the first:
 * *bad_string, in stack *bad_stack (IDs of the file), with *bad_is_file set if it is the file name.
 */
bool tables_resolve_frames(struct tables *tables, uint64_t *bad_stack, uint64_t *bad_string,
                           bool *bad_is_file);

/* Adds text of the file that has no ID there, without copying it. Returns its handle, 0 for "". */
trail_string_handle tables_text(struct tables *tables, trail_string text);

/*
 * Adds text that has no ID in the file, as a copy. Returns its handle, 0 for "" or if out of
 * memory.
 */
trail_string_handle tables_extra_string(struct tables *tables, const char *data, size_t size);

/* Returns the name and kind that a host gave its goroutine, or NULL. */
static inline const struct identity *tables_goroutine(const struct tables *tables, uint64_t id)
{
    return tables->maker.made_by == TRAIL_MADE_BY_HOST ? idmap_find(&tables->goroutines, id) : NULL;
}

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

/* Look up the handle of an ID of the file; false and handle 0 if it is undefined. */
static inline bool tables_string(const struct tables *tables, uint64_t id, uint32_t *handle)
{
    return idtable_find(&tables->string_ids, id, handle);
}

static inline bool tables_stack(const struct tables *tables, uint64_t id, uint32_t *handle)
{
    return idtable_find(&tables->stack_ids, id, handle);
}
