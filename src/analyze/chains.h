/*
 * Chains: what each goroutine did, as steps that can be played again under changed conditions
 * (src/replay/): so much running, a wait that another goroutine ended at a point of its own chain,
 * a delay by a timer or by the world outside, locks taken and released.
 *
 * While events arrive, each goroutine's changes of state and the points in between are marks with
 * times. At the end, marks become steps, which have lengths instead of times.
 *
 * Memory is bounded: a trace with more than CHAIN_MARKS marks has no chains; beside other analyses
 * one with more than CHAIN_MARKS_SHORT.
 */
#pragma once

#include <trail/analyze.h>

#include "analyze/futexes.h"
#include "analyze/stacks.h"
#include "analyze/wait_names.h"
#include "base/intern.h"
#include "base/objects.h"

struct trail_analysis;

/* Requests the part; internal, beside the flags of trail/analyze.h. */
#define ANALYZE_CHAINS (1U << 30)
/* The same, with the lower bound. */
#define ANALYZE_SHORT_CHAINS (ANALYZE_CHAINS | 1U << 29)

enum { CHAIN_MARKS = 24000000, CHAIN_MARKS_SHORT = 200000 };

enum chain_op {
    CHAIN_RUN,     /* run for ns; of: class */
    CHAIN_STALL,   /* run for ns: its part of the time in which a CPU did not take ready threads */
    CHAIN_DELAY,   /* no CPU is needed for ns; of: wait */
    CHAIN_UNTIL,   /* no CPU is needed until ns after the start of the trace; of: wait */
    CHAIN_QUEUE,   /* ready, it got a CPU after ns in which others had them all */
    CHAIN_WAIT,    /* until a CHAIN_WAKE with the same wait in `of` */
    CHAIN_WAKE,    /* ends the wait `of` */
    CHAIN_CREATE,  /* thread `of` begins */
    CHAIN_TAKE,    /* takes lock `of`; waits for it if chain_lock.modelled */
    CHAIN_RELEASE, /* releases lock `of` */
    CHAIN_REGION_BEGIN, /* of: name */
    CHAIN_REGION_END,
    CHAIN_TASK_BEGIN, /* of: index of the task */
    CHAIN_TASK_END,
    CHAIN_GC_BEGIN, /* the goroutine assists the garbage collection, or sweeps */
    CHAIN_GC_END,
    /* The goroutine ended, the trace ended while it ran, or it waits to the end; of: that wait, or
     * CHAIN_NONE. */
    CHAIN_FINISH,
};

#define CHAIN_NONE    UINT32_MAX
#define CHAIN_LONGEST (INT64_C(1) << 53) /* ns; times beyond are from damaged clocks */

enum {
    CHAIN_AGAIN = 1,   /* of CHAIN_RELEASE: the same goroutine took the lock again at once */
    CHAIN_STOPPED = 2, /* of CHAIN_STALL: the garbage collector had stopped the program */
    CHAIN_SHARED = 4,  /* of CHAIN_STALL: the thread ran before; of: the class of that running */
};

struct chain_step {
    int64_t ns;
    uint32_t of;
    uint8_t op, flags;
};

/* How a wait ended. */
enum chain_end {
    CHAIN_OPEN,        /* not in the trace */
    CHAIN_WOKEN,       /* by another goroutine */
    CHAIN_TIMED,       /* by time, or an answer from outside: as long after its start */
    CHAIN_ARRIVED,     /* by a request from outside: at its own time */
    CHAIN_INTERRUPTED, /* by a signal, for a moment: the next wait of the thread continues it */
};

struct chain_wait {
    trail_name name;   /* wait_names.h */
    trail_stack stack; /* where it waited */
    int64_t begin_ns, end_ns;
    uint32_t thread, lock; /* CHAIN_NONE: not a lock */
    uint8_t end;
    bool timed_out; /* of CHAIN_TIMED, by the program's own limit */
    bool gc;        /* waits for the garbage collector */
};

/* Running between two known stacks, of goroutines of one name. */
struct chain_class {
    trail_name thread;
    trail_stack from, to; /* 0: unknown */
    int64_t ns;
    uint64_t samples; /* CPU samples in it */
};

/* CPU samples of a class with one stack. */
struct chain_sample {
    uint32_t of; /* class */
    trail_stack stack;
    uint64_t count;
};

struct chain_lock {
    trail_name name; /* object; of Go, the function that waits */
    enum wire_wait kind;
    int64_t unmatched_ns; /* waits whose waker did not record that it had the lock */
    int64_t wait_ns;
    bool modelled; /* all holders are known: the replay decides the order */
    /* While events arrive: the last release, and a holder that took the lock after a wait. */
    int64_t released_ns, taken_ns;
    size_t release_mark; /* + 1 */
    uint32_t releaser, taker;
    uint32_t woken; /* by the last release */
};

struct chain_task {
    trail_name name;
    uint64_t id;
    int64_t begin_ns, end_ns; /* end: INT64_MAX: open */
    /*
     * The wait for the task to begin, before which no other goroutine can work on it. Open until
     * such a goroutine is seen; CHAIN_NONE: the task began before the trace.
     */
    uint32_t wait;
};

struct chain_thread {
    int64_t id;
    trail_name name;
    int64_t begin_ns;
    int64_t ran_ns; /* the end of its last running */
    uint32_t creator;
    bool created; /* by a CHAIN_CREATE of the creator */
    bool ended;
    bool gc;        /* works for Go's garbage collector, */
    bool marks;     /* and is one of its mark workers */
    bool system;    /* of the runtime */
    bool joined;    /* created by the thread that decides the end, and ended before it */
    uint64_t first; /* index of its first step */
    uint64_t count;
};

struct chain_mark {
    int64_t time_ns, ns;
    uint32_t thread, of, stack;
    uint8_t op, flags;
};

struct chains {
    struct trail_analysis *analysis;
    struct names *names;
    struct stacks *stacks;
    int64_t origin_ns; /* all other times are since then, at most CHAIN_LONGEST */
    int64_t begin_ns, end_ns, now_ns;
    bool counting, too_long, readiness_inferred, is_go;

    struct chain_thread *threads;
    size_t thread_count, thread_capacity;
    struct chain_wait *waits;
    size_t wait_count, wait_capacity;
    struct chain_lock *locks;
    size_t lock_count, lock_capacity;
    bool failed; /* out of memory for a lock */
    struct chain_task *tasks;
    size_t task_count, task_capacity;
    struct chain_class *classes;
    size_t class_count, class_capacity;
    struct chain_sample *samples;
    size_t sample_count, sample_capacity;
    struct chain_step *steps; /* of all threads, one after the other; set at the end */
    size_t step_count, step_capacity;
    unsigned cpus;     /* that the program had, or used at once */
    uint32_t goal;     /* the thread that decides the end; CHAIN_NONE: none ran */
    int64_t late_ns;   /* CPUs did not take ready threads: other programs, wake-up times, pauses */
    int64_t ready_ns;  /* ready in all */
    uint64_t unplaced; /* wake-ups by a goroutine that was not running: taken as from outside */
    int64_t gc_ns;     /* running for the garbage collection */

    /* While events arrive. */
    struct chain_mark *marks;
    size_t mark_count, mark_capacity, most_marks;
    struct objects alive; /* of goroutines: struct chain_goroutine */
    struct announced announced;
    struct futexes futexes;
    struct idmap calls;              /* P -> struct chain_goroutine in a system call on it */
    struct idmap lock_ids, task_ids; /* -> index + 1 */
    struct intern class_ids, sample_ids;
    unsigned running, ready; /* now */
    unsigned limit, most;    /* CPUs by the trace; most running at once */
    /*
     * How long each ready thread had been stalled by clock_ns, and how much of that in
     * stop-the-world pauses.
     */
    double stall_ns, stopped_ns;
    int64_t clock_ns;
    unsigned stopped; /* stop-the-world pauses open */
    int64_t last_runner;
    struct {
        int64_t goroutine;
        uint32_t lock;
    } hold; /* the last log of a hold */
};

/* Limits the CPUs to those that the threads might use by their affinity. Returns false on out of
 * memory. */
bool chains_take_affinity(struct chains *chains);

/* Turns marks into steps. Returns false if out of memory. */
bool chains_build(struct chains *chains);

/* Returns the chains of a finished analysis, NULL if they were not requested. */
const struct chains *chains_of(const struct trail_analysis *analysis);

/* Marks of changes of state; others have the op of their step. */
enum {
    /* ns: stalled. At most UINT32_MAX each: of: of these ns, in a stop-the-world pause; stack: ns
     * ready and not stalled. */
    MARK_RUN = 64,
    MARK_READY,
    MARK_WAIT, /* of: wait */
    MARK_CALL, /* in a system call, on its CPU; of: wait */
    MARK_LEFT, /* in a system call, its CPU was given to others */
    MARK_END,
    MARK_SAMPLE
};
