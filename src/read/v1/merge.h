/*
 * v1, merge: the events of all Ps in one order (§3.2 to §3.4).
 *
 * Each P is a lane with a cursor and one decoded event, its head. A head that starts, stops or
 * wakes a goroutine is ready only when that goroutine (its key) has the state and sequence number
 * that the event needs. Ready heads are in the frontier, a heap by time; the smallest is emitted
 * and changes its key's state. A head that is not ready is in its key's list of waiters, and is
 * tested again when the key changes: this gives the same order as Go, which tries all heads again
 * after every event, without that cost.
 *
 * Equal times: with few Ps the frontier is an array sorted by time, and treats equal times as Go <=
 * 1.21 does (flat_rotate), so that its order is reproduced where it is deterministic: Go visits its
 * Ps in random order; here it is the order in which they first appear in the file, CPU samples
 * last. With many Ps the frontier is a heap by (time, order of the P). The same file always gives
 * the same order.
 *
 * 1.5 files have a global sequence number instead: their events are sorted in an array. Such files
 * are small and no longer written.
 *
 * Repair: when no head is ready, the key of the earliest waiting head is forced into the state that
 * the head needs. With a patience, this is done as soon as the head is that far behind the others:
 * the event it waits for is lost, and its P would otherwise wait until the end of the trace.
 */
#pragma once

#include "read/v1/g.h"
#include "read/v1/index.h"

/* A type that no file has: a hole begins on the P, which may do anything afterwards. */
#define V1_LOST V1_TYPE_MASK

/*
 * An event on its way through the stages. Numbers are as in the file, unless a stage changes them.
 */
struct v1_event {
    int64_t ticks;
    uint64_t offset;
    uint64_t g;           /* the event's own goroutine; 0 if none */
    struct v1_g *gs;      /* its state */
    struct v1_g *key;     /* the goroutine whose state the event changes, or a dummy */
    struct v1_lane *lane; /* the lane it came from; NULL for CPU samples and moved events */
    int64_t proc;
    uint64_t arg[4];
    uint64_t stack;      /* ID in the file */
    const uint8_t *text; /* UserLog: the position of its message's length; else NULL */
    uint8_t type;        /* Local variants are replaced by the plain type */
    uint8_t previous;    /* type of the event that last changed the key's state */
    bool misused;        /* v1_check: set for tasks and regions */
    /* With repairs. */
    bool sequenced; /* it has a sequence number */
    bool forced;    /* its key was put into the state that it needs */
};

enum v1_lane_place { V1_LANE_DONE, V1_LANE_READY, V1_LANE_WAITING };

struct v1_lane {
    /* Cursor. */
    const uint8_t *at, *end;   /* the rest of the current batch */
    const uint8_t *packed_end; /* events before it can be read in words */
    uintptr_t origin;          /* address of `at` minus its offset in the trace */
    uint32_t next_batch;       /* V1_NO_BATCH: the current one is the last */
    bool damaged;              /* a hole is at `end`, and its V1_LOST has not been made yet */
    uint32_t order;            /* index of the lane; breaks ties */
    int64_t ticks;
    int64_t sequence; /* 1.5: global sequence number */
    int64_t proc;
    uint64_t last_g; /* the goroutine on this P after the decoded events; 0: none */
    struct v1_g *last_gs;

    /* Head. */
    struct v1_event head;
    const struct v1_rule *rule; /* of the head */
    uint64_t want;              /* required sequence number, if the rule has one */
    uint64_t key_id;
    uint32_t head_number;                                   /* number of the head, from 1 */
    uint32_t forced;                                        /* number of the last forced head */
    uint8_t place;                                          /* enum v1_lane_place */
    struct v1_lane *wait_next, *wait_previous, *wait_child; /* links of v1_waiters */

    /* Holds [at, end). */
    struct v1_bytes bytes;
    struct v1_piece piece;

    /* v1_check: the state of this P. */
    bool running, stopped_world, sweeping;
    uint64_t running_g;

    /* v1_convert. */
    bool seen;
    bool lost; /* what it has been doing since the last V1_LOST is unknown */
    uint32_t losses;
    uint64_t shown_g; /* with repairs: the goroutine that started last */
    int64_t thread;
};

struct v1_ranked {
    int64_t ticks;
    uint32_t order;
    uint32_t head_number;
};

struct v1_heap {
    struct v1_ranked *entry;
    size_t count, capacity;
};

/* 1.5: an event with its global sequence number; it is decoded again from its offset. */
struct v1_sequenced {
    int64_t sequence;
    int64_t ticks;
    uint64_t offset;
    uint64_t g;
    uint32_t lane;
    uint32_t index; /* breaks ties */
};

/* The handling of contradictions. */
struct v1_repairs {
    bool enabled;
    bool record;      /* store the repairs; set during one pass only */
    int64_t patience; /* ticks that a waiting head may be behind the others; 0: unlimited */
    uint64_t count, by_kind[TRAIL_REPAIRS];
    trail_repair *list; /* time_ns and shift_ns are ticks until v1_reader converts them */
    size_t list_count, list_capacity;
};

struct v1_notes;

/* State of other stages that the fast pass (v1/fast_pass.h) updates. */
struct v1_short_cut {
    struct v1_notes *notes;
    int64_t *last_ticks; /* of the order */
    uint64_t *types;     /* counts by type */
    uint64_t *events;    /* number of events processed */
};

struct v1_merge {
    int (*next)(struct v1_merge *merge, struct v1_event **event); /* selected for this CPU */
    const struct v1_index *index;
    const struct v1_format *format;
    struct v1_gs *gs;
    struct v1_repairs *repairs;
    bool global_keeps_g;   /* events of GC and stop-the-world pauses keep the P's goroutine (P2) */
    struct v1_lane *lanes; /* one per P, and one for the CPU samples */
    size_t lane_count;
    size_t next_sample;
    struct v1_g *g0;
    struct v1_heap frontier;
    bool flat; /* the frontier is a sorted array, not a heap */
    /* repair only: waiting heads, and entries that are outdated by `head_number` */
    struct v1_heap waiting;
    size_t waiting_count;
    struct v1_g gc;          /* GCStart has its own sequence */
    struct v1_g always;      /* key of events that are always ready; nothing changes it */
    struct v1_lane *emitted; /* its head was emitted last, and is still the top of the frontier */
    uint64_t position;       /* events emitted, or processed by the fast pass */
    bool fast;               /* use v1/fast_pass.h; only for a judging pass */
    const struct v1_short_cut *short_cut; /* for the fast pass; NULL: every event is emitted */
    struct v1_sequenced *sequenced;       /* 1.5 */
    size_t sequenced_count;
    struct v1_event sequenced_event;
    trail_error error;
};

/* Starts from the beginning; call v1_merge_fini in any case. `gs` must be as initialized. */
int v1_merge_init(struct v1_merge *merge, const struct v1_index *index, struct v1_gs *gs,
                  struct v1_repairs *repairs, bool global_keeps_g, bool fast);
void v1_merge_fini(struct v1_merge *merge);

#define V1_RETRY 2

/*
 * Emits the next event, which may be modified and is valid until the next call. Returns 1, 0 at the
 * end, -1 with merge->error, or V1_RETRY: the fast pass must be repeated as an exact merge.
 */
static inline int v1_merge_next(struct v1_merge *merge, struct v1_event **event)
{
    return merge->next(merge, event);
}

/* Returns the offset before which everything has been emitted. */
uint64_t v1_merge_done_before(const struct v1_merge *merge);

/* Adds the position of an event to an error. The time is in ticks until v1_reader converts it. */
void v1_merge_locate(const struct v1_merge *merge, const struct v1_event *event, trail_error *err);

/* Counts a repair, and stores it if enabled. `shift_ticks`: how far a time was moved. */
void v1_repairs_add(struct v1_repairs *repairs, trail_repair_kind kind,
                    const struct v1_event *event, int64_t shift_ticks);

/* v1/frontier.c, compiled for every CPU and for those with BMI2. */
#ifdef TRAIL_BMI2_VARIANT
#define V1_FRONTIER(name) v1_frontier_##name##_bmi2
#else
#define V1_FRONTIER(name) v1_frontier_##name
#endif
int v1_frontier_begin(struct v1_merge *merge);
int v1_frontier_next(struct v1_merge *merge, struct v1_event **event);
int v1_frontier_begin_bmi2(struct v1_merge *merge);
int v1_frontier_next_bmi2(struct v1_merge *merge, struct v1_event **event);
