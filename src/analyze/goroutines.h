/*
 * Goroutines: where the time of each goroutine alive went so far, why it waits and who woke it, on top
 * of what is followed of it (follow.h).
 *
 * The hot part of a transition is two look-ups and one addition: `credit` points to the counter of
 * the state that the goroutine is in, so that leaving a state needs not know which it was.
 *
 * Times that no 64 bits hold come from damaged clocks; arithmetic wraps instead of being undefined.
 */
#ifndef TRAIL_ANALYZE_GOROUTINES_H
#define TRAIL_ANALYZE_GOROUTINES_H

#include <trail/analyze.h>

#include "analyze/follow.h"
#include "base/arena.h"

struct open_region;
struct trail_analysis;

static inline int64_t ns_between(int64_t from, int64_t to)
{
    return (int64_t)((uint64_t)to - (uint64_t)from);
}

static inline void ns_add(int64_t *sum, int64_t ns)
{
    *sum = (int64_t)((uint64_t)*sum + (uint64_t)ns);
}

/* `ns` behind `origin`; the last moment there is, if that is farther than time goes. */
static inline int64_t ns_behind(int64_t origin, int64_t ns)
{
    int64_t edge;
    return __builtin_add_overflow(origin, ns, &edge) ? INT64_MAX : edge;
}

/* A range by name: what is over, and since when it is on. */
struct range_time {
    trail_name name;
    bool on;
    int64_t since_ns;
    int64_t ns;
};

/* A P that was swept on. */
struct proc {
    int64_t sweeper; /* which goroutine began the sweep that is on */
    bool sweeping;
};

/*
 * Lives from its first transition to its end. Owned by its analysis. What nearly every transition
 * touches is in the first cache line, what a wait touches in the second.
 */
struct goroutine {
    union {
        struct followed followed;
        struct {
            FOLLOWED_MEMBERS; /* since_ns not before counting began */
            bool ran;         /* start_ns is set */
            uint8_t counter;  /* the place in `block` of the reason that it waited for last */
        };
    };
    int64_t *credit; /* where its time in `state` is counted */
    int64_t exec_ns, sched_wait_ns, syscall_ns;

    int64_t waker; /* which goroutine ended its last wait; TRAIL_NONE: none in the trace */
    trail_named_time *block; /* by reason; `few` until there are more */
    trail_named_time few[2];
    uint32_t block_count, block_capacity;
    trail_name reason;        /* of the last transition into waiting */
    uint32_t stack : 30;      /* for profiles: with which it came into `state` */
    uint32_t found : 1;       /* for profiles: it has been in `state` since creation_ns */
    uint32_t has_pending : 1; /* for profiles: it has pending waits */

    int64_t syscall_block_ns;
    int64_t bare_ns; /* since when it is bare */
    struct range_time *range;
    uint32_t range_count, range_capacity;
    union {
        struct open_region *region;  /* innermost first */
        struct goroutine *next_free; /* of those that are over */
    };
    uint64_t pc;
    int64_t creation_ns, start_ns;
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct goroutine) <= 192, "three cache lines");

static inline struct goroutine *goroutine_of(struct followed *g)
{
    return (struct goroutine *)(void *)g;
}

/* They are made so many at a time. */
struct goroutine_chunk {
    struct goroutine items[64];
    struct goroutine_chunk *next;
};

/* Begun with goroutines_init. */
struct goroutines {
    struct follow follow;
    struct goroutine *free_list; /* with their lists, for the next */
    struct goroutine_chunk *chunks;
    size_t chunk_used;  /* of the newest */
    struct idmap procs; /* -> struct proc */
    struct slab proc_slab;
    int64_t nothing;         /* the counter of what is not counted */
    int64_t counted_from_ns; /* time before this does not count */
    uint64_t seen;           /* how many there were since then */
};

void goroutines_init(struct goroutines *goroutines, const trail_reader *reader,
                     struct names *names);

/*
 * Takes transitions of goroutines and Ps from the front of [event, end) up to the first event of
 * another kind, and returns where that is; NULL when memory is out.
 */
const trail_event *goroutines_transitions(struct trail_analysis *analysis, const trail_event *event,
                                          const trail_event *end);

/* A range begins, was on already, or ends. False when memory is out. */
bool goroutines_range(struct trail_analysis *analysis, const trail_event *event);

/* From `ns` on time counts; what was counted is forgotten. */
void goroutines_count_from(struct goroutines *goroutines, int64_t ns);

/*
 * Where the goroutine's time went by `now`, what is open included, as Go has it. The lists are made
 * in the arena. `less` (or NULL) is subtracted. False when memory is out.
 */
bool goroutine_times(const struct goroutines *goroutines, const struct goroutine *g, int64_t now,
                     const trail_times *less, struct arena *arena, trail_times *times);

/* Ends all that are alive, for the end of the trace. False when memory is out. */
bool goroutines_finish(struct trail_analysis *analysis, int64_t now);

void goroutines_free(struct goroutines *goroutines);

static inline struct goroutine *goroutines_find(const struct goroutines *goroutines, int64_t id)
{
    return (struct goroutine *)(void *)follow_find(&goroutines->follow, id);
}

#endif
