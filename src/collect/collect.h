/*
 * The half of `trail record` that is outside the program: takes the raw records out of the shared
 * area, finds out which thread woke which, and writes a Go execution trace.
 *
 *     area - records -> feed: ops of each thread, in order of its time; releases matched with waits
 *                         -> model: all ops in order of time; goroutines, Ps, Ms, generations
 *                               -> write/v2_writer
 *
 * A collector takes the records of one program; a trace has the collectors of one or several
 * (trace.h).
 *
 * An op is written when it is COLLECT_DELAY_NS old: by then the wait that a release ended has been
 * recorded, and every thread that was writing has finished. The waker of a wait that is recorded
 * later is written at the end of the wait.
 */
#pragma once

#include <trail/export.h>

#include "collect/area.h"
#include "collect/process.h"
#include "collect/samples.h"
#include "collect/slow.h"
#include "collect/stack_guards.h"
#include "collect/switches.h"
#include "collect/ticks.h"
#include "shm/shm.h"

struct board;
struct collect;
struct trace;

/* The minimum age at which an op is written. */
#define COLLECT_DELAY_NS 200000000

/* MARK: The trace */

struct trace_options {
    int version; /* 22, 23, 25, 26 */
    trail_sink sink;
    int64_t generation_ns;     /* 0: 1 s */
    uint64_t max_bytes;        /* the trace ends when it is this large; 0: no limit */
    bool switches;             /* collect_switch will be called */
    bool wakings;              /* ... also with each SWITCH_WOKEN */
    bool labelled;             /* names have the process even while the trace has only one */
    const struct board *board; /* NULL: names of file locks are not known; outlives the trace */
    /* Called between generations, with the time at which the next begins. May be NULL. */
    void (*generation)(void *context, int64_t ns);
    void *generation_context;
    /* Called when all events are written, to write what the recording took: trace_recorded. May be
     * NULL. */
    void (*ends)(void *context);
    void *ends_context;
    /* Whether the user wants the recording to end; called while the last records are written. May
     * be NULL. */
    bool (*is_hurried)(void *context);
    void *is_hurried_context;
    struct slow_limits slow;
};

/* Opens a trace without programs. NULL with *err. */
struct trace *trace_open(const struct trace_options *options, trail_error *err);

/*
 * Writes the ops that are old enough; called every few milliseconds, after the collectors' steps.
 * Programs that have no collector in the trace yet begin after `limit` (ticks; UINT64_MAX: there
 * will be none).
 */
void trace_step(struct trace *t, uint64_t limit);

/*
 * Ends the generation, so that the sink gets everything before it. The generation lasts to the time
 * up to which everything has been written, even if nothing happened then.
 */
void trace_cut(struct trace *t);

/* Returns the size so far; whether it has reached max_bytes. */
uint64_t trace_bytes(const struct trace *t);
bool trace_is_full(const struct trace *t);

/*
 * Ends the trace at `at` (ticks), although programs continue: their calls are not recorded from
 * then on, so that what they do until trace_finish is not known.
 */
void trace_stop(struct trace *t, uint64_t at);

/*
 * Writes the rest: all programs have ended, or their recording. False with *err if anything failed
 * at any time.
 *
 * If the user wants the recording to end, it takes at most COLLECT_HURRY_NS: code that is not named
 * by then keeps its addresses, and ops that are not written by then are lost.
 */
#define COLLECT_HURRY_NS 1000000000
bool trace_finish(struct trace *t, trail_error *err);

/* Writes a row about what the recording took or missed; called by `ends`. */
void trace_recorded(struct trace *t, const trail_recorded *row);

/* Returns the trace's length; the largest number of threads alive at once. */
int64_t trace_wall_ns(const struct trace *t);
uint64_t trace_most_threads(const struct trace *t);

/* Whether the kernel reports when threads run, but not when they are woken. */
bool trace_infers_ready(const struct trace *t);

/* Closes the trace, after the caller has closed all its collectors. */
void trace_close(struct trace *t);

/* MARK: A program */

struct collect_options {
    struct trace *trace;    /* outlives the collector */
    struct area *area;      /* owned by the collector from now on */
    struct process process; /* the one that has claimed the area */
    int pidfd; /* of the process; -1: not known; closed only after the collector's last step */
    struct ticks *ticks; /* the area's; outlives the collector */
    /* Prefix of its threads' names if the trace has several processes; NULL: only one. May change;
     * outlives the collector. */
    const char *label;
    struct collect
        *former; /* the collector of the program that the process executed before, which has ended;
                  * NULL: none */
    trail_resolve_fn resolve; /* NULL: no names */
    /* Writes the name of the variable at an address in a module's file, to name a lock; false: not
     * known. NULL: no names. */
    bool (*object)(void *context, const trail_module *module, uint64_t address, char *text,
                   size_t size);
    guards_fn *guards;              /* see stack_guards.h; NULL: holders are not inferred */
    void *resolve_context;          /* for the three functions above */
    const char *const *skip_frames; /* see frame_rank; NULL: none */
};

/* Opens a collector for the process that has claimed the area. NULL with *err. */
struct collect *collect_open(const struct collect_options *options, trail_error *err);

/*
 * Takes a context switch of one of the process's threads; called before the next step. Without
 * switches, the times in which a thread was only ready are inferred from its records.
 */
void collect_switch(struct collect *c, const struct switch_record *record);
/* Whether a thread of the process is known to have this TID. */
bool collect_has_thread(const struct collect *c, uint32_t tid);
/* Takes a CPU sample; called before the next step. */
void collect_sample(struct collect *c, const struct cpu_sample *sample);

/* The process had not ended at this time. */
void collect_seen_alive(struct collect *c, uint64_t ticks);

/* Takes the new records; called every few milliseconds, before the trace's step. */
void collect_step(struct collect *c);

/* Rates during the last step. */
struct collect_rates {
    uint64_t records; /* records taken */
    bool many_locks;  /* a coarse clock costs less than reading the clock for each lock */
    bool sleepers;    /* threads began to sleep in calls that are not recorded */
};
struct collect_rates collect_rates(const struct collect *c);

/*
 * The program has ended: takes its last records. Its threads end in the trace, which continues.
 * `next` is the area claimed by the program that the process has executed; NULL: the process has
 * ended as well.
 */
void collect_end(struct collect *c, const struct area *next);

/* Takes the last records when the program, or its recording, ends together with the trace. */
void collect_end_with_trace(struct collect *c);

/* Whether everything of a program that has ended is in the trace, so that the collector may be
 * closed. */
bool collect_is_written(const struct collect *c);

/* Whether the process has executed another program that has not claimed an area. */
bool collect_has_left(const struct collect *c);

struct area *collect_area(const struct collect *c);

/* Returns the process's PID; if the process had ended before its claim was read, the unconfirmed
 * PID of the claim. */
pid_t collect_pid(const struct collect *c);

/* MARK: The summary */

struct collect_wait_place {
    int64_t total_ns, longest_ns;
    uint64_t count;
    uint8_t wait;    /* enum shm_wait */
    char place[200]; /* the function that waited */
    /* Of the longest wait: the function that had taken the lock, and the one that ended the wait;
     * empty: not known. */
    char holder[200], waker[200];
};

struct collect_summary {
    int64_t wall_ns;
    uint64_t threads, most_threads;
    int64_t running_ns, ready_ns;
    int64_t spun_ns; /* CPU time within waits that spin, which is not in running_ns */
    int64_t wait_ns[SHM_WAITS];
    int64_t short_ns;   /* in waits too short to be recorded; without switches, in their calls */
    int64_t moments_ns; /* the part of short_ns that is not in running_ns: the kernel reported it */
    uint64_t waits, waits_with_waker;
    uint64_t events, stacks;
    uint64_t lost_records, lost_stacks, lost_threads;
    uint64_t turned_away; /* other processes that were not recorded because too many came at once */
    uint64_t confined;    /* and because of a seccomp filter */
    uint64_t damage;      /* records and links that contradict the rules of the area */
    uint64_t unnamed;     /* PCs that were left unnamed for lack of time */
    uint64_t refused_stacks; /* stacks of open calls that the kernel did not let us read */
    int64_t heap_peak;
    uint64_t faults;   /* major page faults */
    int64_t unseen_ns; /* context switches were lost or not recorded */
    uint64_t samples;
    uint64_t lost_samples, lost_switches, lost_wakings; /* set by the recorder */
    /*
     * Why no context switches were recorded, and what to do; NULL: they were. Set by the recorder.
     */
    const char *switches;
    bool left;       /* the process has executed another program that has not claimed an area */
    bool has_heap;   /* an allocation was recorded */
    bool gcc_openmp; /* the program uses gcc's OpenMP library, which reports nothing */
    /* Set by the recorder. */
    bool heap_wanted;
    bool paused;       /* some of unseen_ns, because there were too many switches */
    bool infers_ready; /* see trace_infers_ready */
    struct collect_wait_place worst[3];
};

void collect_summarize(struct collect *c, struct collect_summary *summary);

/*
 * Adds the summary of another process of the trace, or of the program that a process has executed.
 */
void collect_summary_add(struct collect_summary *sum, const struct collect_summary *other);

void collect_close(struct collect *c);
