/*
 * Replay: runs the chains of a trace (analyze/chains.h) again under changed conditions, and returns
 * how long it takes. docs/whatif.md has the rules, each with its reason.
 *
 * A discrete-event simulation. Each thread performs its steps in order; only running takes a CPU,
 * and CPUs are given out fairly, a slice at a time. A wait ends when the step that ended it in the
 * trace is reached, or immediately if that has happened already. Locks whose holders are all known
 * are taken in order of arrival. Whatever the trace does not explain is repeated: delays of ready
 * threads while a CPU was free, timers, answers from outside.
 */
#pragma once

#include "analyze/chains.h"
#include "replay/change.h"

/* What is measured. */
struct replay_goal {
    enum { GOAL_END, GOAL_TASK, GOAL_RATE, GOAL_WAITS, GOAL_THREADS } of;
    const char *name; /* of the tasks or regions; the start function of the threads */
    double quantile;  /* of the tasks */
    double stall;     /* factor of stalls: replay_calibrate */
};

struct replay_result {
    bool stuck;         /* threads wait for each other forever: there is no length */
    int64_t end_ns;     /* when the threads that decide the end have finished */
    int64_t waits_ns;   /* sum of all waits for other threads and locks */
    int64_t threads_ns; /* when the goal's threads have done their work; -1: one has not */
    int64_t *tasks;     /* lengths of the goal's tasks that began and ended; sorted */
    size_t task_count;
    uint64_t regions; /* regions of the goal that ended */
};

/* What a thread does in a replay. */
struct replay_event {
    enum {
        REPLAY_CREATED,
        REPLAY_READY,
        REPLAY_RUNS, /* on a CPU that it has just got, or with its next step */
        REPLAY_STOPS,
    } what;
    uint32_t thread;
    uint32_t by; /* the thread that created or woke it; CHAIN_NONE: none */
    uint64_t at; /* number of its steps that have begun */
    int64_t ns;  /* since the start */
    /* REPLAY_RUNS: CHAIN_RUN, or CHAIN_STALL, in which it is only ready. REPLAY_STOPS: what it waits
     * for, or CHAIN_FINISH; NULL: others have its CPU. */
    const struct chain_step *step;
};

struct replay_watch {
    void (*see)(void *context, const struct replay_event *event); /* in order of time */
    void *context;
};

/* Replays the chains with these changes; `watch` may be NULL. Returns false if out of memory; free
 * the result even then. */
bool replay_run(const struct chains *chains, const struct change *changes, size_t count,
                const struct replay_goal *goal, const struct replay_watch *watch,
                struct replay_result *result);

/*
 * Replays the chains unchanged, and sets goal->stall, from 0 to 1, so that the end is as near as
 * possible to that in the trace: stalls of several threads may have overlapped, which the trace
 * does not show. Returns false if out of memory; *off is the difference as a fraction of the
 * length, or 1 if there is no replay.
 */
bool replay_calibrate(const struct chains *chains, struct replay_goal *goal, double *off);

/* Returns the length of the trace, up to the end of the thread that decides it. */
int64_t replay_real_ns(const struct chains *chains);

void replay_result_free(struct replay_result *result);

/* Returns the value of the goal: ns, or regions per second. Negative: none. */
double replay_value(const struct replay_goal *goal, const struct replay_result *result);
