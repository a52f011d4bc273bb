/*
 * Timeline: the common part of exporters of spans of time. It follows goroutines, Ps and threads,
 * applies the window and the selection of goroutines, and calls a writer for each start and end, in
 * trace order. States of goroutines are cut into spans exactly as the analyses count them
 * (analyze/follow.h), so the spans of a state add up to the analyses' figures.
 *
 * Names and stacks are small, dense numbers that outlive their generation: writers keep what they
 * need in arrays. Memory is used for what is alive, and once for each different name and stack.
 */
#pragma once

#include <trail/export.h>

#include "analyze/follow.h"
#include "analyze/stacks.h"
#include "base/out.h"
#include "base/text.h"

enum timeline_state {
    TIMELINE_RUNNING,
    TIMELINE_RUNNABLE,
    TIMELINE_WAITING,
    TIMELINE_SYSCALL,
    TIMELINE_BLOCKED, /* in a system call, P released */
    TIMELINE_STATES
};

struct timeline;

/* "running", "runnable", "waiting", "syscall", and "syscall without P" or, of threads, "waiting in
 * the kernel". */
const char *timeline_state_name(const struct timeline *timeline, enum timeline_state state);

enum timeline_span_kind { TIMELINE_RANGE, TIMELINE_REGION, TIMELINE_TASK };

/* An open range of the runtime, region or task. */
struct timeline_span {
    struct timeline_span *next; /* the previous span in the same place */
    enum timeline_span_kind kind;
    trail_range range; /* of a range */
    trail_name name;
    trail_stack stack;
    int64_t begin_ns;
    int64_t goroutine; /* the goroutine that began it; or TRAIL_NONE */
    int64_t proc;      /* of a P's range; else TRAIL_NONE */
    uint64_t number;   /* among all spans, from 1 */
    uint64_t task;     /* the task's ID or the region's task; 0 and TRAIL_NO_TASK: none */
    uint64_t parent;   /* of a task; TRAIL_NO_TASK */
    bool wanted;
    bool before;     /* it began before the window */
    bool after;      /* set when it is closed: it ends after the window */
    uint64_t writer; /* for the writer */
};

struct timeline_goroutine;

/* A P or a thread. */
struct timeline_lane {
    int64_t id;
    bool is_thread;
    bool known, described;        /* for the writer */
    uint64_t writer;              /* for the writer */
    struct timeline_goroutine *g; /* the goroutine on it; NULL: none */
    enum timeline_state state;    /* running, or in a system call */
    int64_t since_ns;
    struct timeline_span *spans; /* of a P */
};

/* A live goroutine. */
struct timeline_goroutine {
    union {
        struct followed followed;
        struct {
            FOLLOWED_MEMBERS; /* the state: timeline_state_of */
            bool wanted, emitted;
        };
    };
    trail_name reason;                   /* of a wait */
    trail_stack stack;                   /* of the transition to its state */
    int64_t waker;                       /* of TIMELINE_RUNNABLE: the waker, or TRAIL_NONE */
    struct timeline_lane *proc, *thread; /* where it is; NULL: nowhere */
    int64_t on_proc, on_thread;  /* the IDs, while running or in a system call; or TRAIL_NONE */
    int64_t tid;                 /* the last thread it was on; or TRAIL_NONE */
    struct timeline_span *spans; /* innermost first */
    bool lost;                   /* its state is unknown, at damage */
    bool found; /* in its state, which began before: when is not in the trace or the window */
    bool known, described, relabelled; /* for the writer */
    uint64_t writer;                   /* for the writer; initially 0 */
};

static inline enum timeline_state timeline_state_of(const struct timeline_goroutine *g)
{
    static const enum timeline_state states[TRAIL_GO_STATES] = {
        [TRAIL_GO_RUNNABLE] = TIMELINE_RUNNABLE,
        [TRAIL_GO_RUNNING] = TIMELINE_RUNNING,
        [TRAIL_GO_WAITING] = TIMELINE_WAITING,
        [TRAIL_GO_SYSCALL] = TIMELINE_SYSCALL,
    };
    return g->p_released ? TIMELINE_BLOCKED : states[g->state];
}

/* Functions of a writer; each may be NULL. */
struct timeline_ops {
    /* Called by timeline_run before the first event. */
    void (*head)(void *writer);
    /* Called with the start of the window, before those below. */
    void (*begin)(void *writer, int64_t begin_ns);
    /* Called for a new goroutine, and when a goroutine's name becomes known. */
    void (*goroutine)(void *writer, struct timeline_goroutine *g);
    /* Called when it has entered its state, at since_ns. */
    void (*enter)(void *writer, struct timeline_goroutine *g);
    /* Called before it leaves its state; `stack` is where it was, 0 if unknown. */
    void (*leave)(void *writer, struct timeline_goroutine *g, int64_t now, trail_stack stack);
    void (*gone)(void *writer, struct timeline_goroutine *g, int64_t now);
    /* Called after it has left its state into an unknown one. NULL: it is gone, and begins anew. */
    void (*lost)(void *writer, struct timeline_goroutine *g, int64_t now);
    void (*lane_enter)(void *writer, struct timeline_lane *lane);
    void (*lane_leave)(void *writer, struct timeline_lane *lane, int64_t now);
    /* Called when `waker` makes `g` ready; `enter` for that state follows. */
    void (*wake)(void *writer, struct timeline_goroutine *waker, struct timeline_goroutine *g,
                 int64_t now, trail_stack stack);
    void (*open)(void *writer, struct timeline_span *span);
    void (*close)(void *writer, struct timeline_span *span, int64_t now);
    void (*log)(void *writer, const trail_event *event);
    void (*metric)(void *writer, const trail_event *event);
    void (*sample)(void *writer, const trail_event *event, trail_stack stack);
    void (*clocks)(void *writer, const trail_clock_snapshot *snapshot);
    /* Called by timeline_run after the last event: for each goroutine still alive, by ID; then
     * `tail`. */
    void (*alive)(void *writer, struct timeline_goroutine *g);
    void (*tail)(void *writer);
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
    int64_t last_ns;        /* of the last call of the writer */
    bool started, counting, over, failed;
    bool of_threads;  /* each goroutine is a thread, not of Go; set before `begin` is called */
    int64_t main_tid; /* of_threads: the TID of the recording's first thread, its PID; 0: unknown */
    struct objects procs, threads; /* struct timeline_lane */
    struct idmap tasks;
    struct slab goroutine_slab, span_slab;
    struct timeline_span *spans; /* of neither a goroutine nor a P */
    uint64_t span_count;
    trail_export_stats stats;
};

/* The parts of timeline_run, for callers that read events themselves; each calls the writer for the
 * events it is given. See `failed`. */
void timeline_begin(struct timeline *timeline);
void timeline_feed(struct timeline *timeline, const trail_event *events, long count);

void timeline_free(struct timeline *timeline);

/*
 * Calls the writer for all of the reader's events, and finishes it, also after an error. Begins and
 * finishes its output `out`: once that fails, nothing more is written. Frees the timeline. Returns 0, or -1 with *err set; *stats (may be NULL) is filled in any case.
 */
int timeline_run(struct timeline *timeline, struct out *out, const trail_sink *sink,
                 trail_export_stats *stats, trail_error *err);

static inline struct timeline_goroutine *timeline_goroutine_of(struct followed *g)
{
    return (struct timeline_goroutine *)(void *)g;
}

/* Returns the live goroutine with that ID; NULL if there is none, and for TRAIL_NONE. */
static inline struct timeline_goroutine *timeline_goroutine_find(const struct timeline *timeline,
                                                                 int64_t id)
{
    return timeline_goroutine_of(id < 0 ? NULL : follow_find(&timeline->follow, id));
}

/* The title of the trace, or "trail". */
static inline trail_string timeline_title(const trail_export_options *options)
{
    return text_from(options->title ? options->title : "trail");
}

static inline trail_string timeline_text(const struct timeline *timeline, trail_name name)
{
    return names_text(&timeline->names, name);
}

/* The label of a goroutine: "G18 main.worker". May contain any bytes; a very long name is
 * truncated. */
#define TIMELINE_LABEL 320
trail_string timeline_label(const struct timeline *timeline, const struct timeline_goroutine *g,
                            char buf[TIMELINE_LABEL]);

/* A thread as the operating system knows it. */
struct timeline_thread {
    int64_t pid; /* 0: not in the trace */
    int64_t tid;
    trail_string process; /* the name of its program; empty: not in the trace */
    trail_string name;    /* its start function */
};

/*
 * For a trace of_threads: sets *thread and returns true if its numbers are known, that is, once it
 * has been on a thread. When the trace is `over`, no more will become known.
 */
bool timeline_thread_of(const struct timeline *timeline, const struct timeline_goroutine *g,
                        struct timeline_thread *thread);

/* Whether the trace has a reason for the goroutine's wait. */
static inline bool timeline_has_reason(const struct timeline_goroutine *g)
{
    return g->state == TRAIL_GO_WAITING && g->reason != 0;
}
