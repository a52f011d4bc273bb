/*
 * Goroutines: the one place that knows what each goroutine alive is doing, since when, why and who
 * woke it, and where its time went so far (§9.1). Other analyses are told of a transition after it
 * was taken, and look here.
 *
 * The hot part of a transition is two look-ups and one addition: `credit` points to the counter of
 * the state that the goroutine is in, so that leaving a state needs not know which it was.
 *
 * Times that no 64 bits hold come from damaged clocks; arithmetic wraps instead of being undefined.
 */
#ifndef TRAIL_ANALYZE_GOROUTINES_H
#define TRAIL_ANALYZE_GOROUTINES_H

#include <trail/analyze.h>

#include "base/arena.h"
#include "base/idmap.h"
#include "base/slab.h"

struct open_region;
struct goroutine;
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

struct proc {
    int64_t id;
    struct goroutine *syscalling; /* the last that went into a system call here, and is there */
    int64_t sweeper;              /* who began the sweep that is on */
    bool sweeping;
};

/*
 * Lives from its first transition to its end. Owned by its analysis. What nearly every transition
 * touches is in the first cache line, what a wait touches in the second.
 */
struct goroutine {
    int64_t since_ns;              /* when it came into `state`, or where counting began */
    int64_t *credit;               /* where its time in `state` is counted */
    struct goroutine **in_syscall; /* where it is noted as the one in a system call, if it is */
    int64_t exec_ns, sched_wait_ns, syscall_ns;
    int64_t waker; /* who ended its last wait; TRAIL_NONE: nobody in the trace */
    trail_name name;
    uint8_t state;   /* trail_go_state */
    bool bare;       /* in a system call: its P was taken, at bare_ns */
    bool ran;        /* start_ns is set */
    uint8_t counter; /* the place in `block` of the reason that it waited for last */

    int64_t id;
    trail_named_time *block; /* by reason; `few` until there are more */
    trail_named_time few[2];
    uint32_t block_count, block_capacity;
    trail_name reason;        /* of the last transition into waiting */
    uint32_t stack : 30;      /* for profiles: with which it came into `state` */
    uint32_t found : 1;       /* for profiles: it has been in `state` since creation_ns */
    uint32_t has_pending : 1; /* for profiles: it has pending waits */

    int64_t syscall_block_ns;
    int64_t bare_ns;
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

/* They are made so many at a time. */
struct goroutine_chunk {
    struct goroutine items[64];
    struct goroutine_chunk *next;
};

/* Zero-initialised is empty and ready, but for the sizes in the slabs. */
struct goroutines {
    struct idmap alive;
    struct goroutine *free_list; /* with their lists, for the next */
    struct goroutine_chunk *chunks;
    size_t chunk_used;  /* of the newest */
    struct idmap procs; /* ID + 1 -> struct proc; the small ones are in `near` */
    struct proc *near[256];
    struct slab proc_slab;
    int64_t nothing;          /* the counter of what is not counted */
    struct goroutine *nobody; /* where those who are in no system call are noted */
    int64_t sync_ns;          /* time of the last Sync, or of the first event */
    bool synced;
    int64_t counted_from_ns; /* time before this does not count */
    uint64_t seen;           /* how many there were since then */
};

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
    return idmap_find(&goroutines->alive, (uint64_t)id);
}

#endif
