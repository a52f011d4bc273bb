/*
 * Naming: what is needed to rewrite the stacks of one generation (v1: of the file). It records the
 * existing strings, finds the module map among them, calls the caller's function once per PC, and
 * assigns IDs to the texts that it returns.
 *
 *     naming_begin            a generation
 *     naming_string ...       each of its strings
 *     naming_stack ...        each of its stacks
 *     naming_new_string ...   the strings that must be written for them
 */
#pragma once

#include <stdbool.h>
#include <trail/export.h>

#include "base/arena.h"
#include "base/idmap.h"

/* Maximum frames of a rewritten stack, in all formats: the limit of v2's readers. */
#define NAMING_MAX_FRAMES 128

/* A frame as in the file. */
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
    size_t longest; /* maximum bytes of a string for readers */

    /* Of the generation: */
    struct arena arena;
    struct naming_text *texts; /* those in the file, then the new ones */
    size_t text_count, text_capacity, written;
    size_t *slots; /* hash of a text -> its index in `texts` + 1; the size is a power of two */
    size_t slot_count;
    uint64_t last_id;
    trail_module *modules; /* sorted by start once `sorted` */
    size_t module_count, module_capacity;
    bool sorted;
    struct idmap pcs; /* PC -> struct naming_pc */

    /* Of all generations: */
    struct idmap seen;    /* PC -> what is known about it, for the statistics */
    struct idmap callers; /* keyed hash of a caller -> the number in place of its PC */
    struct idmap taken;   /* such a number -> 1, or the next attempt for hashes that give it */
    struct arena caller_arena;
};

/* Set `longest`; zero-initialise the rest. */
void naming_init(struct naming *naming, const trail_symbolize_options *options, size_t longest);
void naming_free(struct naming *naming);

/* Drops what belongs to the previous generation. */
void naming_begin(struct naming *naming);

/* Adds a string of the generation; `data` must be valid until the next naming_begin. Returns false
 * if out of memory. */
bool naming_string(struct naming *naming, uint64_t id, const char *data, size_t size);

/*
 * Whether the frame may need a name. Frames with a line are unchanged: Go's own, those that the
 * recording process could name, and those of an already rewritten trace.
 */
static inline bool naming_wants(const struct naming_frame *frame)
{
    return frame->pc != 0 && frame->line == 0;
}

/*
 * Rewrites `count` frames into `to`, at most NAMING_MAX_FRAMES, and returns their number. 0: the
 * stack is unchanged. -1: *err is set.
 */
int naming_stack(struct naming *naming, const struct naming_frame *frames, size_t count,
                 struct naming_frame *to, trail_error *err);

/* Returns the next string that must be written; NULL after the last. */
const struct naming_text *naming_new_string(struct naming *naming);
