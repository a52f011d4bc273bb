/*
 * Timeline: what exporters of spans of time have in common. It follows what goroutines, Ps and threads
 * do, knows the window and whose events are wanted, and tells a writer what begins and what ends, in
 * the order of the trace. What a goroutine is doing is cut into spans exactly as the analyses count it
 * (analyze/follow.h), so that the spans of a state add up to their figures.
 *
 * Names and stacks are numbers that outlive their generation, small and dense: writers keep what they
 * know of them in arrays. Memory is for what is alive, and for each different name and stack once.
 */
#ifndef TRAIL_TIMELINE_TIMELINE_H
#define TRAIL_TIMELINE_TIMELINE_H

#include <trail/export.h>

#include "analyze/follow.h"
#include "analyze/stacks.h"
#include "base/out.h"

enum timeline_state {
    TIMELINE_RUNNING,
    TIMELINE_RUNNABLE,
    TIMELINE_WAITING,
    TIMELINE_SYSCALL,
    TIMELINE_BLOCKED, /* in a system call, and its P was taken away */
    TIMELINE_STATES
};

/* "running", "runnable", "waiting", "syscall", "syscall without P". */
extern const char *const timeline_state_names[TIMELINE_STATES];

enum timeline_span_kind { TIMELINE_RANGE, TIMELINE_REGION, TIMELINE_TASK };

/* What has begun and not ended: a range of the runtime, a region, a task. */
struct timeline_span {
    struct timeline_span *next; /* what began before it in the same place */
    enum timeline_span_kind kind;
    trail_range range; /* of a range */
    trail_name name;
    trail_stack stack;
    int64_t begin_ns;
    int64_t goroutine; /* who began it, or TRAIL_NONE */
    int64_t proc;      /* of a P's range; TRAIL_NONE of others */
    uint64_t number;   /* of all spans, from 1 */
    uint64_t task;     /* its own, or the region's: 0 and TRAIL_NO_TASK are none */
    uint64_t parent;   /* of a task; TRAIL_NO_TASK */
    bool wanted;
    bool before;     /* its begin is not in the window */
    bool after;      /* set when it is closed: its end is not */
    uint64_t writer; /* the writer's */
};

struct timeline_goroutine;

/* A P or a thread. */
struct timeline_lane {
    int64_t id;
    bool is_thread;
    bool known, described;        /* the writer's */
    uint64_t writer;              /* the writer's */
    struct timeline_goroutine *g; /* who is on it; NULL: nobody */
    enum timeline_state state;    /* running, or in a system call */
    int64_t since_ns;
    struct timeline_span *spans; /* of a P */
};

/* A goroutine alive. */
struct timeline_goroutine {
    union {
        struct followed followed;
        struct {
            FOLLOWED_MEMBERS; /* the state: timeline_state_of */
            bool wanted, told;
        };
    };
    trail_name reason; /* of TIMELINE_WAITING */
    trail_stack stack; /* with which it came into its state */
    int64_t waker;     /* who made it ready, of TIMELINE_RUNNABLE; or TRAIL_NONE */
    struct timeline_lane *proc, *thread; /* where it is; NULL: nowhere */
    int64_t on_proc, on_thread;  /* the same, of running and in a system call; or TRAIL_NONE */
    struct timeline_span *spans; /* innermost first */
    bool known, relabelled;      /* the writer's */
    uint64_t writer;             /* the writer's; 0 at first */
};

static inline enum timeline_state timeline_state_of(const struct timeline_goroutine *g)
{
    static const enum timeline_state states[TRAIL_GO_STATES] = {
        [TRAIL_GO_RUNNABLE] = TIMELINE_RUNNABLE,
        [TRAIL_GO_RUNNING] = TIMELINE_RUNNING,
        [TRAIL_GO_WAITING] = TIMELINE_WAITING,
        [TRAIL_GO_SYSCALL] = TIMELINE_SYSCALL,
    };
    return g->bare ? TIMELINE_BLOCKED : states[g->state];
}

/* What a writer is told; those that are NULL it does not want. */
struct timeline_ops {
    /* The first that is told: time of the window's begin. */
    void (*begin)(void *writer, int64_t begin_ns);
    /* A goroutine that was not told of before, or whose name has come to be known. */
    void (*goroutine)(void *writer, struct timeline_goroutine *g);
    /* It is in the state that it tells, since since_ns. */
    void (*enter)(void *writer, struct timeline_goroutine *g);
    /* It leaves the state that it tells; `stack` is where it was, 0 if that is not known. */
    void (*leave)(void *writer, struct timeline_goroutine *g, int64_t now, trail_stack stack);
    void (*gone)(void *writer, struct timeline_goroutine *g, int64_t now);
    void (*lane_enter)(void *writer, struct timeline_lane *lane);
    void (*lane_leave)(void *writer, struct timeline_lane *lane, int64_t now);
    /* `waker` makes `g` ready, which is told to enter that state next. */
    void (*wake)(void *writer, struct timeline_goroutine *waker, struct timeline_goroutine *g,
                 int64_t now, trail_stack stack);
    void (*open)(void *writer, struct timeline_span *span);
    void (*close)(void *writer, struct timeline_span *span, int64_t now);
    void (*log)(void *writer, const trail_event *event);
    void (*metric)(void *writer, const trail_event *event);
    void (*sample)(void *writer, const trail_event *event, trail_stack stack);
    void (*clocks)(void *writer, const trail_clock_snapshot *snapshot);
};

struct timeline {
    trail_reader *reader;
    const trail_export_options *options;
    const struct timeline_ops *ops;
    void *writer;
    struct names names;
    struct stacks stacks;
    struct follow follow; /* of struct timeline_goroutine */
    trail_name wanted_name;
    int64_t origin_ns;      /* time of the first event */
    int64_t from_ns, to_ns; /* the window */
    int64_t last_ns;        /* of what was told */
    bool started, counting, over, failed;
    struct idmap procs, threads, tasks;
    struct slab goroutine_slab, lane_slab, span_slab;
    struct timeline_span *spans; /* of nobody in particular */
    uint64_t span_count;
    trail_export_stats stats;
};

/* The parts of timeline_run, for who reads himself: what has been fed is told. See `failed`. */
void timeline_begin(struct timeline *timeline);
void timeline_feed(struct timeline *timeline, const trail_event *events, long count);

/*
 * Tells `writer` all of the reader's events. `out` is where it writes: what has failed is not written
 * on. Finishes it, also after an error. Returns 0, or -1 with *err set.
 */
int timeline_run(struct timeline *timeline, struct out *out, trail_error *err);
void timeline_free(struct timeline *timeline);

static inline struct timeline_goroutine *timeline_goroutine_of(struct followed *g)
{
    return (struct timeline_goroutine *)(void *)g;
}

/* The goroutine alive; NULL if there is none, and for TRAIL_NONE. */
static inline struct timeline_goroutine *timeline_goroutine_find(const struct timeline *timeline,
                                                                 int64_t id)
{
    return timeline_goroutine_of(id < 0 ? NULL : follow_find(&timeline->follow, id));
}

static inline trail_string timeline_text(const struct timeline *timeline, trail_name name)
{
    return names_text(&timeline->names, name);
}

/* What a goroutine is called: "G18 main.worker". Any bytes; a very long name is cut off. */
#define TIMELINE_LABEL 320
trail_string timeline_label(const struct timeline *timeline, const struct timeline_goroutine *g,
                            char buf[TIMELINE_LABEL]);

/* Whether it is told what is waited for. */
static inline bool timeline_has_reason(const struct timeline_goroutine *g)
{
    return g->state == TRAIL_GO_WAITING && g->reason != 0;
}

#endif
