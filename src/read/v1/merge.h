/*
 * v1, merge: the events of all Ps in one order (§3.2 to §3.4).
 *
 * Each P is a lane with a cursor and one decoded event, its head. A head that starts, stops or
 * wakes a goroutine is ready only when that goroutine (its key) has the state and sequence number
 * that the event needs. Ready heads are in the frontier, a heap by time; the smallest is emitted
 * and changes its key's state. A head that is not ready hangs on its key's list of waiters and is
 * looked at again when that changed: this gives what Go has by trying all heads again after every
 * event, at the cost of none.
 *
 * Equal times: with few Ps the frontier is an array, sorted by time, and treats equal times as Go
 * <= 1.21 does (flat_rotate), so that its order is reproduced wherever it does not depend on
 * chance: Go also looks at its Ps in random order, where here it is the order in which they appear
 * in the file, CPU samples last. With many Ps the frontier is a heap by (time, order of the P). The
 * same file always gives the same order.
 *
 * 1.5 files have a global sequence number instead: their events are put into an array and sorted.
 * Such files are small and of a past age; nobody writes them any more.
 *
 * Repair: when no head is ready, the key of the earliest waiting one is forced into the state that
 * the head needs. With a patience, that is done as soon as it is so far behind the others: what it
 * waits for is lost, and its P would else stand still to the end of the trace.
 */
#ifndef TRAIL_READ_V1_MERGE_H
#define TRAIL_READ_V1_MERGE_H

#include "read/v1/g.h"
#include "read/v1/index.h"

/* An event on its way through the stages. Numbers are as in the file until a stage says otherwise.
 */
struct v1_event {
    int64_t ticks;
    uint64_t offset;
    uint64_t g;           /* the event's own goroutine; 0 if none */
    struct v1_g *gs;      /* its state */
    struct v1_g *key;     /* the goroutine whose state the event changes, or one that is none */
    struct v1_lane *lane; /* where it was found; NULL for CPU samples and moved events */
    int64_t proc;
    uint64_t arg[4];
    uint64_t stack;      /* ID in the file */
    const uint8_t *text; /* UserLog: where the length of its message stands; else NULL */
    uint8_t type;        /* Local variants have become the plain type */
    uint8_t previous;    /* type of the event that changed the key's state before this one */
};

enum v1_lane_place { V1_LANE_DONE, V1_LANE_READY, V1_LANE_WAITING };

struct v1_lane {
    /* Cursor. */
    const uint8_t *at, *end;   /* of the current batch */
    const uint8_t *packed_end; /* events before it can be read in words */
    uintptr_t origin;          /* address of `at` less the offset that it has in the trace */
    uint32_t next_batch;       /* V1_NO_BATCH: the current one is the last */
    uint32_t order;            /* index of the lane: decides ties */
    int64_t ticks;
    int64_t sequence; /* 1.5: global sequence number */
    int64_t proc;
    uint64_t last_g; /* runs on this P as far as decoded; 0: none */
    struct v1_g *last_gs;

    /* Head. */
    struct v1_event head;
    const struct v1_rule *rule; /* of the head */
    uint64_t want;              /* sequence number that it needs, if its rule asks for one */
    uint64_t key_id;
    uint32_t turn;                                          /* counts heads */
    uint8_t place;                                          /* enum v1_lane_place */
    struct v1_lane *wait_next, *wait_previous, *wait_child; /* v1_waiters */

    /* What [at, end) lies in. */
    struct v1_bytes bytes;
    struct v1_piece piece;

    /* Of v1_check: what is going on on this P. */
    bool running, stopped_world, sweeping;
    uint64_t running_g;

    /* Of v1_convert. */
    bool seen;
    int64_t thread;
};

struct v1_ranked {
    int64_t ticks;
    uint32_t order;
    uint32_t turn;
};

struct v1_heap {
    struct v1_ranked *entry;
    size_t count, capacity;
};

/* 1.5: an event with its global sequence number, found again by its offset. */
struct v1_sequenced {
    int64_t sequence;
    int64_t ticks;
    uint64_t offset;
    uint64_t g;
    uint32_t lane;
    uint32_t index; /* decides ties */
};

/* What is done where a trace contradicts itself, and who is told. */
struct v1_repairs {
    bool enabled;
    bool record;      /* keep them: during one pass only */
    int64_t patience; /* ticks that a waiting head may be behind the others; 0: any */
    uint64_t count, by_kind[TRAIL_REPAIRS];
    trail_repair *list; /* time_ns and shift_ns in ticks until v1_reader converts them */
    size_t list_count, list_capacity;
};

struct v1_notes;

/* What v1/sprint.h needs of the other stages. */
struct v1_short_cut {
    struct v1_notes *notes;
    int64_t *last_ticks; /* of the order */
    uint64_t *types;     /* counts, by type */
    uint64_t *events;    /* how many were taken */
};

struct v1_merge {
    int (*next)(struct v1_merge *merge, struct v1_event **event); /* for this CPU */
    const struct v1_index *index;
    const struct v1_format *format;
    struct v1_gs *gs;
    struct v1_repairs *repairs;
    bool global_keeps_g;   /* events of GC and stopped worlds keep the P's goroutine (P2) */
    struct v1_lane *lanes; /* one a P, and one for the CPU samples */
    size_t lane_count;
    size_t next_sample;
    struct v1_g *g0;
    struct v1_heap frontier;
    bool flat; /* the frontier is a sorted array, not a heap */
    /* Repair only: heads of lanes that wait for their turn, and entries that `turn` has made out of date. */
    struct v1_heap waiting;
    size_t waiting_count;
    struct v1_g gc;          /* GCStart has a sequence of its own */
    struct v1_g always;      /* key of the events that are always ready: nothing changes it */
    struct v1_lane *emitted; /* whose head was given out last: still the top of the frontier */
    uint64_t position;       /* events given out, or taken by the short cut */
    bool sprints;            /* v1/sprint.h; only for a pass that judges */
    const struct v1_short_cut *short_cut; /* of the sprint; NULL: every event is given out yet */
    struct v1_sequenced *sequenced;       /* 1.5 */
    size_t sequenced_count;
    struct v1_event sequenced_event;
    trail_error error;
};

/* Starts from the beginning; call v1_merge_fini whatever it returns. `gs` must be as new. */
int v1_merge_init(struct v1_merge *merge, const struct v1_index *index, struct v1_gs *gs,
                  struct v1_repairs *repairs, bool global_keeps_g, bool sprints);
void v1_merge_fini(struct v1_merge *merge);

#define V1_DOUBT 2

/*
 * The next event, which may be changed and is valid until the next call. Returns 1, 0 at the end,
 * -1: merge->error, or V1_DOUBT: the sprint has to be made again as an exact merge.
 */
static inline int v1_merge_next(struct v1_merge *merge, struct v1_event **event)
{
    return merge->next(merge, event);
}

/* All before this offset has been given out. */
uint64_t v1_merge_done_before(const struct v1_merge *merge);

/* Adds the position of an event to an error; its time in ticks, until v1_reader converts it. */
void v1_merge_locate(const struct v1_merge *merge, const struct v1_event *event, trail_error *err);

/* Counts a repair, and keeps it if it is to be kept. `shift_ticks`: by how much a time was moved.
 */
void v1_repairs_add(struct v1_repairs *repairs, trail_repair_kind kind,
                    const struct v1_event *event, int64_t shift_ticks);

/* v1/frontier.c, once for every CPU and once for those with BMI2. */
#ifdef TRAIL_BMI2_VARIANT
#define V1_FRONTIER(name) v1_frontier_##name##_bmi2
#else
#define V1_FRONTIER(name) v1_frontier_##name
#endif
int v1_frontier_begin(struct v1_merge *merge);
int v1_frontier_next(struct v1_merge *merge, struct v1_event **event);
int v1_frontier_begin_bmi2(struct v1_merge *merge);
int v1_frontier_next_bmi2(struct v1_merge *merge, struct v1_event **event);

#endif
