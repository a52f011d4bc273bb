/* A calibrated replay, and questions to it. */
#include "replay/trial.h"

#include <math.h>
#include <stdlib.h>

#include "replay/plan.h"
#include "replay/pool.h"

/* With fewer pieces of work for each thread of a pool, the trace does not show where one ends and
 * the next begins. */
enum { POOL_PIECES = 4 };

bool trial_goal(struct trial *trial, const struct replay_goal *goal)
{
    double stall = trial->goal.stall;
    trial->goal = *goal;
    trial->goal.stall = stall;
    return trial_ask(trial, NULL, 0, &trial->unchanged);
}

bool trial_begin(struct trial *trial, const struct chains *chains, const struct replay_goal *goal)
{
    *trial = (struct trial){.chains = chains, .goal = *goal};
    return replay_calibrate(chains, &trial->goal, &trial->off) && trial_goal(trial, goal);
}

bool trial_ask(const struct trial *trial, const struct change *changes, size_t count, double *value)
{
    struct replay_result result;
    bool good = replay_run(trial->chains, changes, count, &trial->goal, NULL, &result);
    *value = replay_value(&trial->goal, &result);
    replay_result_free(&result);
    return good;
}

double trial_now(const struct trial *trial)
{
    return trial->goal.of == GOAL_END ? (double)replay_real_ns(trial->chains) : trial->unchanged;
}

double trial_as_now(const struct trial *trial, double value)
{
    return trial->unchanged > 0 ? value * trial_now(trial) / trial->unchanged : value;
}

double trial_gain(const struct trial *trial, double from, double to)
{
    return trial->goal.of == GOAL_RATE ? to - from : from - to;
}

bool trial_pool(const struct trial *trial, const struct change *change, enum trial_pool *verdict,
                double *off)
{
    struct pool pool;
    struct change same = *change;
    double value = 0;
    bool good = pool_make(&pool, trial->chains, plan_thread_name(trial->chains, change->name));
    same.threads = (unsigned)pool.members;
    *off = 0;
    if (pool.decides)
        *verdict = TRIAL_POOL_DECIDES;
    else if (pool.count < POOL_PIECES * pool.members)
        *verdict = TRIAL_POOL_FEW;
    else
        *verdict = TRIAL_POOL_GOOD;
    if (good && *verdict == TRIAL_POOL_GOOD && trial->unchanged > 0) {
        good = trial_ask(trial, &same, 1, &value);
        *off = (value - trial->unchanged) / trial->unchanged;
    }
    pool_free(&pool);
    if (value < 0)
        *verdict = TRIAL_POOL_STUCK;
    else if (fabs(*off) > TRIAL_OFF_MOST)
        *verdict = TRIAL_POOL_OFF;
    return good;
}

bool trial_misses_places(const struct chains *chains)
{
    return chains->unplaced * 50 > chains->wait_count;
}

/* Parts of the time: how long such a thread lives at least, and its exit is awaited at most. */
#define STOPPED_LIFE 0.9
#define STOPPED_JOIN 0.05

/* Returns how long the thread that decides the end waited for the exit of this one. */
static int64_t exit_wait(const struct chains *chains, const struct chain_thread *thread)
{
    const struct chain_step *first = &chains->steps[thread->first], *step = first + thread->count;
    while (step > first) {
        const struct chain_wait *wait =
            (--step)->op == CHAIN_WAKE ? &chains->waits[step->of] : NULL;
        const struct wait_facts *facts =
            wait && wait->thread == chains->goal ? wait_facts_of(chains->names, wait->name) : NULL;
        if (facts && facts->kind == WIRE_WAIT_JOIN)
            return wait->end_ns - wait->begin_ns;
        if (wait)
            break;
    }
    return 0;
}

bool trial_may_be_stopped(const struct chains *chains, trail_name *kind)
{
    double length = (double)replay_real_ns(chains);
    /* By start function: the longest wait for the exit of one of its threads. */
    int64_t *longest = calloc(chains->names->count + 1, sizeof *longest);
    *kind = 0;
    if (!longest)
        return false;
    for (size_t pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < chains->thread_count && *kind == 0; i++) {
            const struct chain_thread *thread = &chains->threads[i];
            trail_name name = names_kind(chains->names, thread->name);
            if (!thread->joined) /* or it has not run */
                continue;
            int64_t ns = exit_wait(chains, thread);
            bool stays = (double)(thread->ran_ns - thread->begin_ns) >= STOPPED_LIFE * length;
            if (pass == 0 && ns > longest[name])
                longest[name] = ns;
            else if (pass == 1 && ns > 0 && stays && (double)longest[name] <= STOPPED_JOIN * length)
                *kind = name;
        }
    free(longest);
    return true;
}
