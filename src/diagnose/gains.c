/* The gains of findings: which change removes the cause of each kind, and what the replay says. */
#include "diagnose/gains.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "diagnose/findings.h"
#include "replay/plan.h"
#include "replay/trial.h"

/* Only the first findings get a gain. */
enum { GAINS = 3 };

/* A replay cuts running into slices of milliseconds: with more than this it takes too long beside
 * the other analyses. */
#define RUN_MOST_NS INT64_C(600000000000)

/* Gains below this share of the goal count as none. */
#define GAIN_LEAST 0.005

/* What remains of the weight of a finding whose removal gains nothing. */
#define REFUTED 0.1

/* With fewer tasks a p99 is one of them: the median is used instead. */
enum { TASKS_OF_P99 = 100, TASKS_OF_MEDIAN = 5 };

/* What removes the cause of a kind of finding: the first of these changes that gains something. */
static const struct removal {
    const char *kind;
    enum change_kind changes[2];
    bool none; /* also report that it gains nothing */
} removals[] = {
    {"lock-serialises", {CHANGE_FREE, CHANGE_KINDS}, true},
    {"lock-contention", {CHANGE_FREE, CHANGE_KINDS}, true},
    {"long-hold", {CHANGE_FREE, CHANGE_KINDS}, true},
    {"holder-not-running", {CHANGE_FREE, CHANGE_KINDS}, true},
    {"queue", {CHANGE_POOL, CHANGE_FASTER}, false},
    {"pool-too-small", {CHANGE_POOL, CHANGE_KINDS}, false},
    {"sleeper", {CHANGE_POOL, CHANGE_KINDS}, false},
    {"slow-producer", {CHANGE_POOL, CHANGE_FASTER}, false},
    {"bottleneck", {CHANGE_FASTER, CHANGE_KINDS}, false},
    {"imbalance", {CHANGE_FASTER, CHANGE_KINDS}, false},
    {"straggler", {CHANGE_FASTER, CHANGE_KINDS}, false},
    {"serial-phase", {CHANGE_FASTER, CHANGE_KINDS}, false},
    {"slow-peer", {CHANGE_IO, CHANGE_KINDS}, true},
    {"database", {CHANGE_IO, CHANGE_KINDS}, true},
    {"outside", {CHANGE_IO, CHANGE_KINDS}, false},
    {"gc-share", {CHANGE_NO_GC, CHANGE_KINDS}, false},
    {"pause-share", {CHANGE_NO_GC, CHANGE_KINDS}, false},
};

struct gains {
    struct trial trial;  /* up to the end */
    struct trial second; /* the length of tasks if there are enough of a type, else waits */
    struct findings *findings;
    char name[256]; /* of the tasks */
};

/* Names of a change live here. */
struct question {
    struct change change;
    char name[512];
};

/* MARK: The question */

static bool take_name(struct question *question, trail_string name)
{
    if (name.size == 0 || name.size >= sizeof question->name)
        return false;
    memcpy(question->name, name.data, name.size);
    question->name[name.size] = '\0';
    question->change.name = question->name;
    return true;
}

/* Returns the wait that is the worst case of the finding, or NULL. */
static const struct chain_wait *wait_of(const struct chains *chains, const trail_finding *finding)
{
    for (size_t i = 0; finding->has_moment && i < chains->wait_count; i++) {
        const struct chain_wait *wait = &chains->waits[i];
        if (chains->threads[wait->thread].id == finding->goroutine &&
            wait->begin_ns == finding->begin_ns - chains->origin_ns)
            return wait;
    }
    return NULL;
}

/*
 * Whether most of the waiting for the lock ended at time limits: how often the lock would be tried
 * without these waits is then unknown.
 */
static bool is_given_up(const struct chains *chains, uint32_t lock)
{
    int64_t all = 0, timed = 0;
    for (size_t i = 0; i < chains->wait_count; i++) {
        const struct chain_wait *wait = &chains->waits[i];
        if (wait->lock != lock || wait->end_ns <= wait->begin_ns)
            continue; /* or it has not ended */
        ns_add(&all, wait->end_ns - wait->begin_ns);
        ns_add(&timed, wait->timed_out ? wait->end_ns - wait->begin_ns : 0);
    }
    return timed > all / 2;
}

/* Sets the change that removes the cause. Returns false if there is none. */
static bool make_question(const struct gains *gains, const trail_finding *finding,
                          enum change_kind kind, struct question *question)
{
    const struct chains *chains = gains->trial.chains;
    const struct chain_wait *wait = wait_of(chains, finding);
    bool certain;
    question->change = (struct change){.kind = kind};
    switch (kind) {
    case CHANGE_FREE:
        if (!wait || wait->lock == CHAIN_NONE || is_given_up(chains, wait->lock) ||
            !take_name(question, names_text(chains->names, chains->locks[wait->lock].name)))
            return false;
        break;
    case CHANGE_IO:
        question->change.factor = 0.2;
        if (!wait || !take_name(question, names_text(chains->names, plan_wait_name(chains, wait))))
            return false;
        break;
    case CHANGE_POOL:
        question->change.threads = plan_twice_threads(chains, finding->function);
        if (question->change.threads == 0 ||
            !take_name(question, text_of(gains->findings, finding->function)))
            return false;
        break;
    case CHANGE_FASTER:
        question->change.factor = 0.5;
        if (!take_name(question, text_of(gains->findings, finding->function)))
            return false;
        break;
    default:
        break;
    }
    return plan_applies(chains, &question->change, &certain);
}

/* MARK: The answer */

/* How the changed conditions are called. */
static void put_condition(const struct gains *gains, const struct change *change, char *text,
                          size_t size)
{
    switch (change->kind) {
    case CHANGE_FREE:
        (void)snprintf(text, size, "without waits for this lock");
        break;
    case CHANGE_IO:
        (void)snprintf(text, size, "with these waits taking a fifth");
        break;
    case CHANGE_FASTER:
        (void)snprintf(text, size, "with %.160s twice as fast", change->name);
        break;
    case CHANGE_POOL:
        (void)snprintf(text, size, "with %u %s of %.160s", change->threads,
                       word(gains->findings, TERM_tasks), change->name);
        break;
    default:
        (void)snprintf(text, size, "without garbage collection");
    }
}

/*
 * Asks for both goals, by one replay. Negative: there is no value. Returns false if out of memory.
 */
static bool ask(const struct gains *gains, const struct change *change, double *end, double *second)
{
    struct replay_result result;
    bool good = replay_run(gains->trial.chains, change, 1, &gains->second.goal, NULL, &result);
    *end = trial_as_now(&gains->trial, replay_value(&gains->trial.goal, &result));
    *second = trial_as_now(&gains->second, replay_value(&gains->second.goal, &result));
    replay_result_free(&result);
    return good;
}

/* Whether the gain is positive, and greater than the error of the replay. */
static bool is_gain(const struct trial *trial, double then)
{
    double now = trial_now(trial), gain = now - then, least = fabs(trial->off);
    return gain > now * (least > GAIN_LEAST ? least : GAIN_LEAST);
}

/* Whether it is a pool whose work more threads could share, or no pool. Returns false if out of
 * memory. */
static bool can_answer(const struct trial *trial, const struct change *change, bool *can)
{
    enum trial_pool verdict = TRIAL_POOL_GOOD;
    double off;
    bool good = change->kind != CHANGE_POOL || trial_pool(trial, change, &verdict, &off);
    *can = verdict == TRIAL_POOL_GOOD;
    return good;
}

/* "the median task 'request' takes 3.2 ms instead of 9 ms", or "threads wait 2.1 s less for each
 * other". */
static void put_second(const struct gains *gains, double then, char *text, size_t size)
{
    const struct trial *second = &gains->second;
    const char *format = second->goal.quantile > 0.5
                             ? "99 %% of the tasks '%.160s' take at most %s instead of %s"
                             : "the median task '%.160s' takes %s instead of %s";
    if (second->goal.of == GOAL_TASK)
        (void)snprintf(text, size, format, second->goal.name, duration((int64_t)then).text,
                       duration((int64_t)trial_now(second)).text);
    else
        (void)snprintf(text, size, "%s wait %s less for each other",
                       word(gains->findings, TERM_tasks),
                       duration((int64_t)(trial_now(second) - then)).text);
}

/* Writes what the replay showed. *end, *second: the goals' values; not a gain: NULL. */
static void put_answer(const struct gains *gains, const struct change *change, const double *end,
                       const double *second, char *text, size_t size)
{
    char condition[256], other[320] = "something else decides when it ends", earlier[64] = "no";
    const char *joined = end && second ? ", and " : second ? ", but " : end ? "" : ": ";
    put_condition(gains, change, condition, sizeof condition);
    if (end)
        (void)snprintf(earlier, sizeof earlier, "%s",
                       duration((int64_t)(trial_now(&gains->trial) - *end)).text);
    if (second)
        put_second(gains, *second, other, sizeof other);
    (void)snprintf(text, size, "In a replay %s, the same work is done %s earlier%s%s.", condition,
                   earlier, joined, *joined ? other : "");
}

/* Sets the main figure: of the end, or, if only the second goal gains, of that. */
static void set_figure(const struct gains *gains, const double *end, const double *second,
                       trail_finding *finding)
{
    bool of_second = !end && second;
    const struct trial *trial = of_second ? &gains->second : &gains->trial;
    const double *then = of_second ? second : end;
    finding->replayed_of = !of_second                    ? "end"
                           : trial->goal.of != GOAL_TASK ? "waits"
                           : trial->goal.quantile > 0.5  ? "p99"
                                                         : "median";
    finding->replayed_now_ns = (int64_t)trial_now(trial);
    finding->replayed_then_ns = then ? (int64_t)*then : finding->replayed_now_ns;
}

/* Writes the option for the second goal. */
static const char *second_option(const struct gains *gains, char *text, size_t size)
{
    const struct replay_goal *goal = &gains->second.goal;
    if (goal->of != GOAL_TASK)
        return "--goal=waits";
    (void)snprintf(text, size, "--goal=task:%s:p%g", goal->name, 100 * goal->quantile);
    return text;
}

/* Adds the answer for one finding, if this change has one. `none`: also that it gains nothing. */
static bool add(const struct gains *gains, trail_finding *finding, enum change_kind kind, bool none)
{
    struct question question;
    char text[768], option[640], goal[320];
    double end, second;
    bool can;
    if (!make_question(gains, finding, kind, &question))
        return true;
    if (!can_answer(&gains->trial, &question.change, &can))
        return false;
    if (!can)
        return true;
    if (!ask(gains, &question.change, &end, &second))
        return false;
    bool sooner = is_gain(&gains->trial, end),
         less = second >= 0 && is_gain(&gains->second, second);
    less = less && (!sooner || gains->second.goal.of == GOAL_TASK);
    /* In a replay, whatever the pool waits for answers at the same rate as in the trace. */
    less = less && (sooner || kind != CHANGE_POOL);
    bool tasks = less && gains->second.goal.of == GOAL_TASK;
    if (!sooner && !tasks && trial_may_be_stopped(gains->trial.chains))
        return true;
    /* More than the bound: the finding and the replay do not mean the same. */
    if (end < 0 || trial_now(&gains->trial) - end > (double)finding->gain_ns ||
        !(sooner || less || none))
        return true;
    const double *gained = sooner ? &end : NULL, *also = less ? &second : NULL;
    put_answer(gains, &question.change, gained, also, text, sizeof text);
    set_figure(gains, gained, also, finding);
    finding->weight *= gained || also || second < 0 ? 1 : REFUTED;
    const char *options[2] = {
        change_option(&question.change, option, sizeof option),
        !sooner && less ? second_option(gains, goal, sizeof goal) : NULL,
    };
    return finding_replayed(gains->findings, finding, options, text);
}

/* MARK: All */

/* Returns the type with the most tasks, NULL if it has too few. */
static const trail_task_kind *most_tasks(const trail_analysis *answers)
{
    const trail_task_kind *const *kinds, *most = NULL;
    size_t count = trail_analysis_task_kinds(answers, &kinds);
    for (size_t i = 0; i < count; i++)
        if (!most || kinds[i]->ended > most->ended)
            most = kinds[i];
    return most && most->ended >= TASKS_OF_MEDIAN ? most : NULL;
}

static bool choose_second(struct gains *gains, const trail_analysis *answers)
{
    const trail_task_kind *kind = most_tasks(answers);
    trail_string name = kind ? text_of(gains->findings, kind->name) : (trail_string){0};
    struct replay_goal waits = {.of = GOAL_WAITS}, tasks = {.of = GOAL_TASK, .name = gains->name};
    gains->second = gains->trial;
    if (name.size == 0 || name.size >= sizeof gains->name)
        return trial_goal(&gains->second, &waits);
    memcpy(gains->name, name.data, name.size);
    tasks.quantile = kind->ended < TASKS_OF_P99 ? 0.5 : 0.99;
    return trial_goal(&gains->second, &tasks) &&
           (gains->second.unchanged >= 0 || trial_goal(&gains->second, &waits));
}

static const struct removal *removal_of(const trail_finding *finding)
{
    for (size_t i = 0; i < sizeof removals / sizeof *removals; i++)
        if (strcmp(removals[i].kind, finding->kind) == 0)
            return &removals[i];
    return NULL;
}

/* Whether the trace can be replayed, and quickly. */
static bool can_replay(const struct chains *chains)
{
    int64_t run_ns = 0;
    if (!chains || chains->too_long || chains->goal == CHAIN_NONE || chains->readiness_inferred ||
        trial_misses_places(chains))
        return false;
    /* What a part of a trace depends on may lie outside of it. */
    if (chains->analysis->options.has_from || chains->analysis->options.has_to)
        return false;
    for (size_t i = 0; i < chains->class_count; i++)
        ns_add(&run_ns, chains->classes[i].ns);
    return run_ns <= RUN_MOST_NS;
}

bool gains_add(const trail_analysis *answers)
{
    const struct chains *chains = chains_of(answers);
    struct gains gains = {.findings = findings_of(answers)};
    static const struct replay_goal to_the_end = {.of = GOAL_END};
    bool any = false;
    for (size_t i = 0; gains.findings && i < gains.findings->count && i < GAINS; i++)
        any |= removal_of(&gains.findings->rows[i]) != NULL;
    if (!any || !can_replay(chains))
        return true;
    if (!trial_begin(&gains.trial, chains, &to_the_end))
        return false;
    if (fabs(gains.trial.off) > TRIAL_OFF_SURE)
        return true;
    bool good = choose_second(&gains, answers);
    for (size_t i = 0; good && i < gains.findings->count && i < GAINS; i++) {
        trail_finding *finding = &gains.findings->rows[i];
        const struct removal *removal = removal_of(finding);
        for (int k = 0; k < 2 && removal && good && !finding->replayed; k++)
            if (removal->changes[k] != CHANGE_KINDS)
                good = add(&gains, finding, removal->changes[k], removal->none);
    }
    findings_sort(gains.findings);
    return good;
}
