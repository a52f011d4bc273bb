/*
 * v1, order: from the order of the merge to the final order.
 *
 * A system call that blocked writes its exit late, with the time when it really returned: such an
 * exit belongs earlier (§3.3, end). A futile wake-up is hidden, with all events of its goroutine
 * until it waits again (§3.5). Both become known only later. The trace is therefore merged twice:
 * the first pass (collecting) notes 16 bytes for each exit that moves up and a bit for each event
 * that is removed; the second (replaying) inserts the exits and omits the removed events.
 *
 * At equal times an exit comes after all events that it moved past: a stable sort by time. An exit
 * that moves down (its time is after its own record: no Go writes that, but Go's reader accepts it)
 * is held until its time, and comes before events of equal time.
 *
 * This stage also checks that time does not run backwards, assigns lanes that are not Ps (timers,
 * system calls), and records which system calls block (§4.3 needs that at their beginning).
 */
#pragma once

#include "read/v1/merge.h"

/* An exit that moves up. */
struct v1_moved {
    int64_t ticks;
    uint64_t offset;
};

/* Results of the collecting pass for the replaying one. */
struct v1_notes {
    struct v1_moved *moved;
    size_t moved_count, moved_capacity;
    bool moved_sorted;
    uint8_t *removed; /* bitmap by position in the merge; NULL: none removed */
    uint64_t removed_count;
    uint8_t *blocking; /* bitmap by offset of the GoSysCall: the call blocks; see v1_notes_block */
    uint64_t blocking_count;
    bool irregular; /* the final order may be judged differently from the merge's */
};

struct v1_held {
    struct v1_event event;
    uint64_t number; /* breaks ties */
};

struct v1_order {
    struct v1_merge merge;
    const struct v1_index *index;
    struct v1_repairs *repairs;
    struct v1_notes *notes;
    bool replay;
    bool note_calls; /* write notes->blocking */
    bool removes;    /* a FutileWakeup removes events (P1) */
    bool go_on;      /* collecting: store time errors in time_error and exit_error, and continue */
    bool special[V1_TYPE_MASK + 1]; /* types that this stage handles */
    bool any;
    int64_t first_ticks; /* of the first event */
    int64_t last_ticks;  /* of the merge */
    bool at_fault;       /* time_error or exit_error is set */
    trail_error time_error, exit_error;
    trail_error error;

    /* Replaying. */
    struct v1_event *peeked; /* the next event of the merge, already examined */
    bool merge_ended;
    size_t next_moved;
    struct v1_held *held; /* binary heap by (time, number) */
    size_t held_count, held_capacity;
    uint64_t held_number;
    struct v1_event put_in; /* a moved event that was emitted */
    struct v1_piece moved;  /* the bytes it was read from */
};

struct v1_order_setup {
    const struct v1_index *index;
    struct v1_gs *gs;
    struct v1_repairs *repairs;
    struct v1_notes *notes;
    bool global_keeps_g;
    bool removes;
    bool replay;
    bool note_calls;
    bool go_on;
    bool fast;
};

/* Begins a pass; call v1_order_fini in any case. */
int v1_order_init(struct v1_order *order, const struct v1_order_setup *setup);
void v1_order_fini(struct v1_order *order);

/* Like v1_merge_next; returns -1 with order->error. */
int v1_order_next(struct v1_order *order, struct v1_event **event);

void v1_notes_fini(struct v1_notes *notes);

/* A GoSysCall takes at least three bytes (§1.1): a third of its offset identifies it. */
#define V1_CALL_BYTES 3

static inline void v1_notes_block(struct v1_notes *notes, uint64_t call_offset)
{
    uint64_t bit = call_offset / V1_CALL_BYTES;
    notes->blocking[bit / 8] |= (uint8_t)(1u << (bit % 8));
    notes->blocking_count++;
}

static inline bool v1_notes_blocks(const struct v1_notes *notes, uint64_t call_offset)
{
    uint64_t bit = call_offset / V1_CALL_BYTES;
    return notes->blocking && (notes->blocking[bit / 8] >> (bit % 8) & 1) != 0;
}
