/*
 * Replay: plays the chains of a trace (analyze/chains.h) again under changed conditions, and
 * returns how long it takes. docs/whatif.md has the rules, each with its reason.
 *
 * A discrete-event simulation. Each thread does its steps one after the other; only running takes a
 * CPU, which are given out fairly, a slice at a time. A wait ends when the step that ended it in the
 * trace is reached, at once if that was before. Locks of which all holders are known are taken in
 * the order of arrival. What the trace does not explain, it repeats: delays of ready threads while a
 * CPU was free, timers, answers from outside.
 */
#ifndef TRAIL_REPLAY_REPLAY_H
#define TRAIL_REPLAY_REPLAY_H

#include "analyze/chains.h"
#include "replay/change.h"

/* What the length of is counted. */
struct replay_goal {
    enum { GOAL_END, GOAL_TASK, GOAL_RATE, GOAL_WAITS } of;
    const char *name; /* of the tasks or regions */
    double quantile;  /* of the tasks */
    double stall;     /* factor of stalls: replay_calibrate */
};

struct replay_result {
    bool stuck;       /* the threads waited for each other: it has no length */
    int64_t end_ns;   /* when the threads that decide the end have finished */
    int64_t waits_ns; /* sum of all waits for other threads and locks */
    int64_t *tasks;   /* lengths of the tasks of the goal that began and ended; sorted */
    size_t task_count;
    uint64_t regions; /* of the goal, that ended */
    uint64_t matched; /* how much the changes apply to: see replay_applies */
};

/* Plays the chains with these changes. Returns false on out of memory; free the result then, too. */
bool replay_run(const struct chains *chains, const struct change *changes, size_t count,
                const struct replay_goal *goal, struct replay_result *result);

/*
 * Plays the chains unchanged, and sets goal->stall, from 0 to 1, so that the end comes as near as
 * possible to that in the trace: stalls of several threads may have passed at the same time, which
 * the trace does not say. Returns false on out of memory; *off is the difference, as a part of the
 * length, or 1 if there is no replay.
 */
bool replay_calibrate(const struct chains *chains, struct replay_goal *goal, double *off);

/* The length that the trace has, up to the end of the thread that decides it. */
int64_t replay_real_ns(const struct chains *chains);

void replay_result_free(struct replay_result *result);

/* The value of the goal: ns, or regions per second. Negative: there is none. */
double replay_value(const struct replay_goal *goal, const struct replay_result *result);

#endif
