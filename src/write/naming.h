/*
 * Naming: what the stacks of one generation (v1: of the file) are rewritten with. It knows the
 * strings that are there, finds the module map among them, asks the caller's function about each PC
 * once, and gives IDs to the texts that it answers with.
 *
 *     naming_begin            a generation
 *     naming_string ...       each of its strings
 *     naming_stack ...        each of its stacks
 *     naming_new_string ...   what must be written for them
 */
#ifndef TRAIL_WRITE_NAMING_H
#define TRAIL_WRITE_NAMING_H

#include <stdbool.h>
#include <trail/export.h>

#include "base/arena.h"
#include "base/idmap.h"

/* Frames of a rewritten stack, in all formats: what v2's readers take. */
#define NAMING_MAX_FRAMES 128

/* A frame as it stands in the file. */
struct naming_frame {
    uint64_t pc, function, file, line;
};

struct naming_text {
    trail_string text;
    uint64_t id;
};

struct naming {
    const trail_symbolize_options *options;
    trail_symbolize_stats stats;
    size_t longest; /* bytes of a string that readers take */

    /* Of the generation: */
    struct arena arena;
    struct naming_text *texts; /* those of the file, then the new ones */
    size_t text_count, text_capacity, written;
    size_t *slots; /* hash of a text -> its place in `texts` + 1; a power of two of them */
    size_t slot_count;
    uint64_t last_id;
    trail_module *modules; /* sorted by start once `sorted` */
    size_t module_count, module_capacity;
    bool sorted;
    struct idmap pcs; /* PC -> struct naming_pc */

    /* Of all generations: */
    struct idmap seen;    /* PC -> what is known of it, for the stats */
    struct idmap callers; /* number in place of a PC -> struct naming_caller */
    struct arena caller_arena;
};

/* Zeroed but for `longest`. */
void naming_init(struct naming *naming, const trail_symbolize_options *options, size_t longest);
void naming_free(struct naming *naming);

/* Forgets what belongs to a generation. */
void naming_begin(struct naming *naming);

/* A string of the generation; `data` must stay until the next begin. False when memory is out. */
bool naming_string(struct naming *naming, uint64_t id, const char *data, size_t size);

/*
 * Whether the frame may be in need of a name. Those that have a line are left alone: Go's own, those
 * that the recording process could name itself, and those of a trace that was rewritten before.
 */
static inline bool naming_wants(const struct naming_frame *frame)
{
    return frame->pc != 0 && frame->line == 0;
}

/*
 * Writes what becomes of `count` frames to `to`, at most NAMING_MAX_FRAMES, and returns how many. 0:
 * the stack stays as it is. -1: *err is set.
 */
int naming_stack(struct naming *naming, const struct naming_frame *frames, size_t count,
                 struct naming_frame *to, trail_error *err);

/* The next of the strings that must be written; NULL if there is none. */
const struct naming_text *naming_new_string(struct naming *naming);

#endif
