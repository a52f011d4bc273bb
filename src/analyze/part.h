/*
 * Part: what an analysis is made of. A part is a file with a struct analysis_part, which says what it is
 * asked for by, and which of its functions are called when. parts.def lists them; the pass (pass.c) makes
 * those that are asked for and calls them. Parts do not know each other: they have what they are handed.
 *
 * Functions that a part does not need are NULL. Those that return bool return false when memory is
 * out. docs/extending.md tells how to add one.
 */
#ifndef TRAIL_ANALYZE_PART_H
#define TRAIL_ANALYZE_PART_H

#include "analyze/goroutines.h"
#include "analyze/stacks.h"

enum { PARTS_MOST = 16, PART_NEEDS = 5 };

/* A set of kinds of events. */
#define PART_KIND(kind) (1U << TRAIL_##kind)
#define PART_RANGES     (PART_KIND(RANGE_BEGIN) | PART_KIND(RANGE_ACTIVE) | PART_KIND(RANGE_END))
#define PART_TASKS      (PART_KIND(TASK_BEGIN) | PART_KIND(TASK_END))
#define PART_REGIONS    (PART_KIND(REGION_BEGIN) | PART_KIND(REGION_END))

/* Of an event, or of a goroutine and an event. */
typedef bool (*part_event)(void *part, const trail_event *event);
typedef bool (*part_transition)(void *part, struct goroutine *g, const trail_event *event);

struct analysis_part {
    unsigned what;        /* it is made if any of these TRAIL_ANALYZE_... is asked for */
    size_t size;          /* of its object, which is zeroed before `init` */
    bool uses_goroutines; /* analysis->goroutines: they are followed */
    bool uses_stacks;     /* analysis->stacks */

    /* Other parts whose objects it is handed, in this order: NULL for those that are not made. */
    const struct analysis_part *needs[PART_NEEDS];
    bool (*init)(void *part, struct trail_analysis *analysis, void *const *needed);
    void (*free)(void *part); /* what `init` made, also if it failed, and what came later */

    /* The first event comes, at `origin_ns`. */
    void (*trace_begins)(void *part, int64_t origin_ns);
    /* Time counts from now on: what was counted is forgotten. Only of windows with a begin. */
    bool (*window_begins)(void *part, int64_t ns);
    /* The window or trace ends; goroutines are still alive. Also called if it never began. */
    bool (*window_ends)(void *part, int64_t ns);
    /* Goroutines are over: the answers are made. In the order of the list. */
    bool (*finish)(void *part, int64_t ns);

    /* Stretches of all events, independent of what other parts have seen. */
    bool (*events)(void *part, const trail_event *event, const trail_event *end);
    /* No more events are needed. NULL: they always are. */
    bool (*is_done)(const void *part);

    /* Events of these kinds, in order with what goroutines do; not TRAIL_STATE_TRANSITION. */
    unsigned kinds;
    part_event event;
    /* A transition of a P. */
    part_event proc;
    /* A goroutine is seen first. */
    part_transition begins;
    /* It is about to take a transition; its first with g->state TRAIL_GO_UNDETERMINED. */
    part_transition leaves;
    /* It is in its new state, unless that is its end. */
    part_transition enters;
    /* A goroutine is over, or the trace is (`end_ns` is 0 then). */
    bool (*ends)(void *part, struct goroutine *g, int64_t now, int64_t end_ns);
    /* A user region of the goroutine is over. */
    bool (*region_ends)(void *part, struct goroutine *g, const trail_region *region, int64_t now);
};

struct part_call {
    void *part;
    union {
        part_event event; /* NULL behind the last */
        part_transition transition;
    };
};

/* Functions of the parts for one occasion. */
struct part_calls {
    struct part_call of[PARTS_MOST + 1];
    size_t count;
};

/* What parts are handed. They may change names, stacks and the arenas. */
struct trail_analysis {
    trail_analysis_options options;
    const trail_reader *reader;
    struct names names;
    struct stacks stacks;
    struct arena rows_arena; /* lists of rows */
    struct arena scratch;    /* lists that last for one call */
    trail_analysis_span span;
    bool started;
    bool counting; /* the window has begun */
    bool over;     /* it has ended */
    bool finished;
    int64_t from_ns, to_ns; /* of the window, absolute */
    struct goroutines goroutines;

    /* The pass's: those parts that are made, in the order of the list, and when they are called. */
    struct {
        const struct analysis_part *part;
        void *object;
    } parts[PARTS_MOST];
    size_t part_count, ready; /* how many there are, and how many `init` was called of */
    bool follows;             /* some part looks at goroutines */
    bool uses_stacks;
    bool has_events; /* some part takes events one by one, or follows */
    struct part_calls kinds[TRAIL_KINDS], procs, begins, leaves, enters;
};

static inline bool wants(const struct trail_analysis *analysis, unsigned what)
{
    return (analysis->options.what & what) != 0;
}

/* Whether profiles are of what happens in regions. */
static inline bool profile_by_region(const trail_profile_options *options)
{
    return options->region || options->task_count > 0;
}

/* The object of a part, for its answers; NULL if it is not made. */
void *analysis_object(const struct trail_analysis *analysis, const struct analysis_part *part);

/* Calls all. False when memory is out. */
static inline bool part_calls_event(const struct part_calls *calls, const trail_event *event)
{
    for (const struct part_call *call = calls->of; call->event; call++)
        if (!call->event(call->part, event))
            return false;
    return true;
}

FOLLOW_INLINE bool part_calls_transition(const struct part_calls *calls, struct goroutine *g,
                                         const trail_event *event)
{
    for (const struct part_call *call = calls->of; call->transition; call++)
        if (!call->transition(call->part, g, event))
            return false;
    return true;
}

/* Calls `ends` and `region_ends` of all. False when memory is out. */
bool analysis_goroutine_ends(const struct trail_analysis *analysis, struct goroutine *g,
                             int64_t now, int64_t end_ns);
bool analysis_region_ends(const struct trail_analysis *analysis, struct goroutine *g,
                          const trail_region *region, int64_t now);

/* Whether a goroutine that began in `name` is meant. */
bool analysis_asks_for(const struct trail_analysis *analysis, const trail_who *who, int64_t id,
                       trail_name name);

/* Notes something of this length if it is the longest. */
static inline void longest_note(trail_longest *longest, int64_t ns, int64_t begin_ns,
                                int64_t goroutine)
{
    if (ns > longest->ns)
        *longest = (trail_longest){.ns = ns, .begin_ns = begin_ns, .goroutine = goroutine};
}

#endif
