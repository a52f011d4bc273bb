/*
 * Profiles: waits and other uses of time, added up by stack (§9.4). The pass calls it when a
 * goroutine leaves a state; by then it is known what the state counts as, and its stack.
 *
 * Some waits can only be judged later: whether the goroutine has the requested name, whether a wait
 * was inside a requested region, whether the goroutine ever runs (Go leaves out what came before it
 * first ran, if it did). Until then they are pending waits of the goroutine.
 */
#pragma once

#include <trail/analyze.h>

#include "analyze/idle.h"
#include "base/arena.h"
#include "base/idmap.h"
#include "base/intern.h"
#include "base/objects.h"

struct trail_analysis;

/* Frames of one stack, in the arena of the stacks. */
struct profile_stack {
    const uint32_t *frames;
    uint32_t count;
};

struct profile_rows {
    uint32_t *places; /* of keys that are only a stack: the row, + 1, by its number; 0: not known */
    size_t place_capacity;
    struct intern keys; /* of stack, waker, reason; the number is the index of the row, + 1 */
    trail_profile_sample *items;
    size_t count, capacity;
    /* Set at the end: the sums of all rows. */
    uint64_t sum_count;
    int64_t sum_ns;
    trail_histogram times;
};

struct profiles {
    struct trail_analysis *analysis;
    const trail_profile_options *options;
    struct intern frame_keys, stack_keys;
    struct arena arena; /* the frames of stacks */
    trail_profile_frame *frames;
    size_t frame_count, frame_capacity;
    struct profile_stack *stacks; /* by number; 0 is the empty one */
    size_t stack_count, stack_capacity;
    uint32_t *by_handle; /* numbers + 1, by handle of the epoch; 0: not looked up */
    size_t handles, handle_capacity;
    uint64_t epoch;
    uint8_t *reasons; /* by name: the profile types that a wait with that reason counts for, and
                         REASON_KNOWN */
    size_t reason_capacity;
    struct profile_rows rows[TRAIL_PROFILES];
    struct idmap
        last_sync; /* with by_kind: goroutine -> index of the row of its last wait, as a pointer */
    struct idle idle;             /* with by_kind; the user of a place is the index of its row */
    uint32_t last_place;          /* of the row of SYNC that was counted last, + 1 */
    struct objects pending;       /* goroutine -> struct profile_pending */
    uint64_t goroutines, regions; /* the number that matched so far */
};
