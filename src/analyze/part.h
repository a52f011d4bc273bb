/*
 * Part: a component of an analysis. A part is one file with a struct analysis_part, which lists the
 * flags that request it and the functions that the pass calls. parts.def lists the parts; the pass
 * (pass.c) creates the requested ones and calls them. Parts use each other only through their
 * objects.
 *
 * Functions that a part does not need are NULL. Those that return bool return false on out of
 * memory. docs/extending.md describes how to add a part.
 */
#pragma once

#include "analyze/goroutines.h"
#include "analyze/stacks.h"

struct aside;
struct json;

enum {
#define PART(folder, name) +1
    PARTS = 0
#include "analyze/parts.def"
};

/* A set of kinds of events. */
#define PART_KIND(kind) (1U << TRAIL_##kind)
#define PART_RANGES     (PART_KIND(RANGE_BEGIN) | PART_KIND(RANGE_ACTIVE) | PART_KIND(RANGE_END))
#define PART_TASKS      (PART_KIND(TASK_BEGIN) | PART_KIND(TASK_END))
#define PART_REGIONS    (PART_KIND(REGION_BEGIN) | PART_KIND(REGION_END))

/* Takes an event, or a goroutine and its event. */
typedef bool (*part_event)(void *part, const trail_event *event);
typedef bool (*part_transition)(void *part, struct goroutine *g, const trail_event *event);

struct analysis_part {
    unsigned what;        /* created if any of these TRAIL_ANALYZE_ flags is set */
    size_t size;          /* of its object, zeroed before `init` */
    bool uses_goroutines; /* uses analysis->goroutines, which follows goroutines */
    bool uses_stacks;     /* uses analysis->stacks */

    /* Called when the objects of all parts exist: see analysis_object. */
    bool (*init)(void *part, struct trail_analysis *analysis);
    void (*free)(
        void *part); /* frees what `init` and later calls allocated; also called if `init` failed */

    /* Called at the first event, at `origin_ns`. */
    void (*trace_begins)(void *part, int64_t origin_ns);
    /* Called where counting starts: what was counted before is dropped. Only for windows with a
     * begin. */
    bool (*window_begins)(void *part, int64_t ns);
    /* Called at the end of the window or trace, while goroutines are alive; also if the window
     * never began. */
    bool (*window_ends)(void *part, int64_t ns);
    /* Called when all goroutines have ended: computes the answers. In the order of the list. */
    bool (*finish)(void *part, int64_t ns);
    /* Adds keys to the object of `trail summary --json`. */
    void (*summary)(const void *part, struct json *json);

    /* Called with stretches of all events, independent of what other parts have received. */
    bool (*events)(void *part, const trail_event *event, const trail_event *end);
    /* Whether no more events are needed. NULL: never. */
    bool (*is_done)(const void *part);

    /* Events of these kinds, in order with what goroutines do; not TRAIL_STATE_TRANSITION. */
    unsigned kinds;
    part_event event;
    /* Called with a transition of a P. */
    part_event proc;
    /* Called at the first event of a goroutine. */
    part_transition begins;
    /* Called before a transition; the first one has g->state TRAIL_GO_UNDETERMINED. */
    part_transition leaves;
    /* Called in its new state, unless it has ended. */
    part_transition enters;
    /* Called when a goroutine ends, or the trace does (then `end_ns` is 0). */
    bool (*ends)(void *part, struct goroutine *g, int64_t now, int64_t end_ns);
    /* Called when its state becomes unknown, at damage, after `leaves`. */
    bool (*lost)(void *part, struct goroutine *g, int64_t now);
    /* Called when a user region of the goroutine ends. */
    bool (*region_ends)(void *part, struct goroutine *g, const trail_region *region, int64_t now);
};

#define PART(folder, name) extern const struct analysis_part name##_part;
#include "analyze/parts.def"

struct part_call {
    void *part;
    union {
        part_event event; /* NULL ends the list */
        part_transition transition;
    };
};

/* Functions of the parts for one kind of call. */
struct part_calls {
    struct part_call of[PARTS + 1];
    size_t count;
};

/* What parts are passed. They may change names, stacks and the arenas. */
struct trail_analysis {
    trail_analysis_options options;
    const trail_reader *reader;
    struct names names;
    struct stacks stacks;
    struct arena rows_arena; /* lists of rows */
    struct arena scratch;    /* lists that last for one call */
    trail_analysis_span span;
    struct aside *aside; /* NULL: calls are made at once */
    bool started;
    bool counting; /* the window has begun */
    bool over;     /* it has ended */
    bool finished;
    int64_t from_ns, to_ns; /* the window, absolute */
    struct goroutines goroutines;

    /* Private to the pass: the created parts, in the order of the list, and their functions by kind
     * of call. */
    struct made_part {
        const struct analysis_part *part;
        void *object;
    } parts[PARTS + 1];       /* the last has no part */
    size_t part_count, ready; /* number of parts, and of those whose `init` was called */
    bool follows;             /* some part needs goroutines */
    bool uses_stacks;
    bool has_events; /* some part takes single events or goroutines */
    struct part_calls kinds[TRAIL_KINDS], procs, begins, leaves, enters;
};

static inline bool wants(const struct trail_analysis *analysis, unsigned what)
{
    return (analysis->options.what & what) != 0;
}

/* Whether profiles are limited to regions. */
static inline bool profile_by_region(const trail_profile_options *options)
{
    return options->region || options->task_count > 0;
}

/* Starts to defer calls of parts (aside.h), until the analysis is finished or closed. `reader` is the
 * one that it is fed from. Called before the first events. */
void analysis_defer(struct trail_analysis *analysis, trail_reader *reader);

/* Returns the object of a part, for its answers or for another part; NULL if it was not created. */
void *analysis_object(const struct trail_analysis *analysis, const struct analysis_part *part);

/* Calls all functions. Returns false if out of memory. */
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

/* Calls `ends` and `region_ends` of all parts. Returns false if out of memory. */
bool analysis_goroutine_ends(const struct trail_analysis *analysis, struct goroutine *g,
                             int64_t now, int64_t end_ns);
bool analysis_goroutine_lost(const struct trail_analysis *analysis, struct goroutine *g,
                             int64_t now);
bool analysis_region_ends(const struct trail_analysis *analysis, struct goroutine *g,
                          const trail_region *region, int64_t now);

/* Adds the keys of all parts that have `summary`. */
void analysis_summary(const struct trail_analysis *analysis, struct json *json);

/* Whether goroutines with the start function `name` are selected. */
bool analysis_asks_for(const struct trail_analysis *analysis, const trail_goroutine_filter *who,
                       int64_t id, trail_name name);

/* Records a case of length `ns` if it is the longest. */
static inline void longest_note(trail_longest *longest, int64_t ns, int64_t begin_ns,
                                int64_t goroutine)
{
    if (ns > longest->ns)
        *longest = (trail_longest){.ns = ns, .begin_ns = begin_ns, .goroutine = goroutine};
}
