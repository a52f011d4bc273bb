/* Trial: a calibrated replay of a trace, which answers what changes would gain. */
#pragma once

#include "analyze/chains.h"
#include "replay/change.h"
#include "replay/replay.h"

/* If the replay differs from the trace by more than this, it proves nothing. */
#define TRIAL_OFF_MOST 0.05
/* If it differs by more than this, it is less certain, as is a gain no greater than the
 * difference. */
#define TRIAL_OFF_SURE 0.02

struct trial {
    const struct chains *chains;
    struct replay_goal goal;
    double off;       /* how much longer than the trace it is unchanged; 1: it does not end */
    double unchanged; /* its value of the goal; negative: none */
};

/* Sets up a trial with these chains and goal. Returns false if out of memory. */
bool trial_begin(struct trial *trial, const struct chains *chains, const struct replay_goal *goal);

/* The same trial with another goal. */
bool trial_goal(struct trial *trial, const struct replay_goal *goal);

/* Replays with these changes. *value is negative if there is no answer. Returns false if out of
 * memory. */
bool trial_ask(const struct trial *trial, const struct change *changes, size_t count,
               double *value);

/*
 * Returns the goal's value in the trace: without changes, so that errors of the replay cancel out.
 */
double trial_now(const struct trial *trial);

/* Returns what a replay's value would be if the unchanged replay were exact. */
double trial_as_now(const struct trial *trial, double value);

/* Returns by how much the goal is better: positive. */
double trial_gain(const struct trial *trial, double from, double to);

/*
 * Whether more threads can share the work of a pool: a replay with as many as in the trace must
 * take as long. *off: by what fraction it does not. Returns false if out of memory.
 */
enum trial_pool {
    TRIAL_POOL_GOOD,
    TRIAL_POOL_DECIDES, /* its end is the end of the replay */
    TRIAL_POOL_FEW,     /* the trace hardly shows where pieces of work end */
    TRIAL_POOL_STUCK,   /* the replay does not end */
    TRIAL_POOL_OFF,
};
bool trial_pool(const struct trial *trial, const struct change *change, enum trial_pool *verdict,
                double *off);

/* Whether so many wake-ups lack their place in the waker's chain that the result is uncertain. */
bool trial_misses_places(const struct chains *chains);

/*
 * Sets *kind to the start function of threads that may run until another stops them, which leaves
 * nothing in the trace: one lived for most of it, and the thread that decides the end waited for
 * their exit, but for none of them for long. The replay treats all that they did as work that must
 * be done, so it may end too late. 0: there are none. Returns false if out of memory.
 */
bool trial_may_be_stopped(const struct chains *chains, trail_name *kind);
