/*
 * Goroutines: where the time of each goroutine alive went so far, why it waits and which goroutine
 * woke it, on top of follow.h.
 *
 * The hot part of a transition is two look-ups and one addition: `credit` points to the counter of
 * the current state, so leaving a state does not depend on which one it was.
 *
 * Times that do not fit into 64 bits come from damaged clocks; arithmetic wraps instead of being
 * undefined.
 */
#pragma once

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

/* Returns origin + ns, or INT64_MAX where that overflows. */
static inline int64_t ns_behind(int64_t origin, int64_t ns)
{
    int64_t edge;
    return __builtin_add_overflow(origin, ns, &edge) ? INT64_MAX : edge;
}

/* A range by name: its total so far, and since when it is open. */
struct range_time {
    trail_name name;
    bool on;
    int64_t since_ns;
    int64_t ns;
};

/* A P on which something was swept. */
struct proc {
    int64_t sweeper; /* the goroutine that began the current sweep */
    bool sweeping;
};

/*
 * Lives from its first transition to its end. Owned by its analysis. The first cache line holds
 * what nearly every transition touches, the second what a wait touches.
 */
struct goroutine {
    union {
        struct followed followed;
        struct {
            FOLLOWED_MEMBERS; /* since_ns is not before counting began */
            bool ran : 1;     /* start_ns is set */
            bool waited : 1;  /* its last wait was not in a system call */
            bool outside : 1; /* for waits: it has waited for something outside the program */
            bool lost : 1;    /* its state was unknown for some time, or is */
            bool asked : 1;   /* for waits: it wrote to a connection since it last read from one */
            uint8_t counter;  /* index in `block` of the reason of its last wait */
        };
    };
    int64_t *credit; /* where time in `state` is added */
    int64_t exec_ns, sched_wait_ns, syscall_ns;

    int64_t waker; /* the goroutine that ended its last wait; TRAIL_NONE: none in the trace */
    trail_named_time *block; /* by reason; in `few` until there are more */
    trail_named_time few[2];
    uint32_t block_count, block_capacity;
    trail_name reason;        /* of the last transition to waiting */
    uint32_t stack : 29;      /* for profiles: stack of the transition to `state` */
    uint32_t nameless : 1;    /* for profiles: that stack is one frame without name and PC */
    uint32_t found : 1;       /* for profiles: `state` lasts since creation_ns */
    uint32_t has_pending : 1; /* for profiles: it has pending waits */

    int64_t syscall_block_ns;
    int64_t released_ns; /* when its P was released */
    struct range_time *range;
    uint32_t range_count : 27;
    uint32_t range_log : 5; /* room for 1 << range_log; 0: none */
    trail_stack outer;      /* for waits: stack of its last system call or wait, in Go */
    union {
        struct open_region *region;  /* innermost first */
        struct goroutine *next_free; /* in the list of free objects */
    };
    uint64_t pc;
    int64_t creation_ns, start_ns;
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct goroutine) <= 192, "three cache lines");

static inline struct goroutine *goroutine_of(struct followed *g)
{
    return (struct goroutine *)(void *)g;
}

/* How long a goroutine has run up to now. */
static inline int64_t goroutine_ran_ns(const struct goroutine *g, int64_t now)
{
    int64_t ns = g->exec_ns;
    if (g->state == TRAIL_GO_RUNNING)
        ns_add(&ns, ns_between(g->since_ns, now));
    return ns;
}

/* Goroutines are allocated in chunks. */
struct goroutine_chunk {
    struct goroutine items[64];
    struct goroutine_chunk *next;
};

/* Initialised by goroutines_init. */
struct goroutines {
    struct follow follow;
    struct goroutine *free_list; /* ended goroutines, reused with their lists */
    struct goroutine_chunk *chunks;
    size_t chunk_used;       /* objects used of the newest chunk */
    struct objects lost;     /* goroutine -> int64_t: how long its state was unknown, if ever */
    struct objects procs;    /* struct proc */
    int64_t nothing;         /* counter for time that does not count */
    int64_t counted_from_ns; /* time before this does not count */
    uint64_t seen;           /* number of goroutines since then */
};

void goroutines_init(struct goroutines *goroutines, const trail_reader *reader,
                     struct names *names);

/*
 * Takes transitions of goroutines and Ps from the front of [event, end), up to the first event of
 * another kind. Returns that event, or NULL if out of memory.
 */
const trail_event *goroutines_transitions(struct trail_analysis *analysis, const trail_event *event,
                                          const trail_event *end);

/* Takes an event that begins, continues or ends a range. Returns false if out of memory. */
bool goroutines_range(struct trail_analysis *analysis, const trail_event *event);

/* Returns since when a state or range that began at `since_ns` counts. */
static inline int64_t counted_since(const struct goroutines *goroutines, int64_t since_ns)
{
    return since_ns > goroutines->counted_from_ns ? since_ns : goroutines->counted_from_ns;
}

/* Starts counting at `ns`: what was counted before is dropped. */
void goroutines_count_from(struct goroutines *goroutines, int64_t ns);

/*
 * Sets where the goroutine's time went up to `now`, including open states, as Go counts it. The
 * lists are allocated in the arena. `less`, unless NULL, is subtracted. Returns false on out of
 * memory.
 */
bool goroutine_times(const struct goroutines *goroutines, const struct goroutine *g, int64_t now,
                     const trail_times *less, struct arena *arena, trail_times *times);

/* Ends all goroutines alive, at the end of the trace. Returns false if out of memory. */
bool goroutines_finish(struct trail_analysis *analysis, int64_t now);

void goroutines_free(struct goroutines *goroutines);

/*
 * Returns the log's goroutine if the log reports that its last wait timed out and that wait was not
 * in a system call; NULL otherwise.
 */
const struct goroutine *goroutine_timed_out(const struct trail_analysis *analysis,
                                            const trail_event *log);

static inline struct goroutine *goroutines_find(const struct goroutines *goroutines, int64_t id)
{
    return (struct goroutine *)(void *)follow_find(&goroutines->follow, id);
}
