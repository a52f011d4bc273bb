/*
 * v1, order: from the order of the merge to the order that counts.
 *
 * A system call that blocked writes its exit late, with the time when it really returned: such an
 * exit belongs further up (§3.3, end). And of a goroutine that was woken in vain, wake-up and all
 * may not be seen (§3.5). Both are known only later than they are needed. So the trace is merged
 * twice: the first pass (collecting) notes 16 bytes for each exit that moves up and a bit for each
 * event that is removed; the second (replaying) puts the exits in and leaves the rest out.
 *
 * Where times are equal, an exit comes after all events that it moved up past: a stable sort by
 * time. An exit that moves down (its time lies after its own record: nobody writes that, yet Go
 * takes it) is held back until its time has come, and comes before events of equal time.
 *
 * Here too: time may not run backwards, lanes that are no Ps (timers, system calls), and which
 * system calls block (§4.3 needs to know at their beginning).
 */
#ifndef TRAIL_READ_V1_ORDER_H
#define TRAIL_READ_V1_ORDER_H

#include "read/v1/merge.h"

/* An exit that moves up. */
struct v1_moved {
    int64_t ticks;
    uint64_t offset;
};

/* What the collecting pass leaves for the replaying one. */
struct v1_notes {
    struct v1_moved *moved;
    size_t moved_count, moved_capacity;
    bool moved_sorted;
    uint8_t *removed; /* bitmap by position in the merge; NULL: nothing is removed */
    uint64_t removed_count;
    uint8_t *blocking; /* bitmap by place of the GoSysCall: it blocks; see v1_notes_block */
    uint64_t blocking_count;
    bool irregular; /* the final order could be judged otherwise than that of the merge */
};

struct v1_held {
    struct v1_event event;
    uint64_t number; /* decides ties */
};

struct v1_order {
    struct v1_merge merge;
    const struct v1_index *index;
    struct v1_repairs *repairs;
    struct v1_notes *notes;
    bool replay;
    bool note_calls; /* write notes->blocking */
    bool removes;    /* FutileWakeup removes (P1) */
    bool go_on;      /* collecting: note errors of time in time_error, exit_error, and go on */
    bool special[V1_TYPE_MASK + 1]; /* types that this stage has to do with */
    bool any;
    int64_t first_ticks; /* of the first event */
    int64_t last_ticks;  /* of the merge */
    bool at_fault;       /* one of these is set */
    trail_error time_error, exit_error;
    trail_error error;

    /* Replaying. */
    struct v1_event *peeked; /* next of the merge, already examined */
    bool merge_ended;
    size_t next_moved;
    struct v1_held *held; /* binary heap by (time, number) */
    size_t held_count, held_capacity;
    uint64_t held_number;
    struct v1_event put_in; /* a moved event that was given out */
    struct v1_piece moved;  /* what it was read from */
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
    bool sprints;
};

/* Begins a pass; v1_order_fini whatever it returns. */
int v1_order_init(struct v1_order *order, const struct v1_order_setup *setup);
void v1_order_fini(struct v1_order *order);

/* As v1_merge_next; on -1: order->error. */
int v1_order_next(struct v1_order *order, struct v1_event **event);

void v1_notes_fini(struct v1_notes *notes);

/* A GoSysCall takes three bytes at least (§1.1): a third of its offset names it. */
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

#endif
