/* The gains of findings: which change removes the cause of each kind, and what the replay says. */
#include "diagnose/gains.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/findings.h"
#include "diagnose/findings_waits.h"
#include "diagnose/waits.h"
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

/* If the end gains less than this share of it, ask what the waiting threads gain, too. */
#define GAIN_LITTLE 0.1

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
    {"sleeper", {CHANGE_POOL, CHANGE_FASTER}, false},
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
    struct trial third;  /* when the threads that wait most for the cause have done their work */
    struct findings *findings;
    char name[256];      /* of the tasks */
    char threads[256];   /* the start function of the threads of `third` */
    size_t thread_count; /* their number */
    bool may_be_stopped; /* threads may run until they are stopped */
};

/* Names of a change live here. */
struct question {
    struct change change;
    const struct chain_wait *wait; /* the worst case; NULL: not a wait */
    char name[512];
};

/* MARK: The question */

/* Returns false if it is empty or has no room. */
static bool copy_name(trail_string name, char *to, size_t room)
{
    if (name.size == 0 || name.size >= room)
        return false;
    memcpy(to, name.data, name.size);
    to[name.size] = '\0';
    return true;
}

static bool take_name(struct question *question, trail_string name)
{
    question->change.name = question->name;
    return copy_name(name, question->name, sizeof question->name);
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

/* Returns the thread that ended the wait; CHAIN_NONE: none in the trace. */
static uint32_t waker_of(const struct chains *chains, const struct chain_wait *wait)
{
    for (size_t i = 0; i < chains->thread_count && wait->end == CHAIN_WOKEN; i++) {
        const struct chain_thread *thread = &chains->threads[i];
        const struct chain_step *steps = &chains->steps[thread->first];
        for (uint64_t k = 0; k < thread->count; k++)
            if (steps[k].op == CHAIN_WAKE && &chains->waits[steps[k].of] == wait)
                return (uint32_t)i;
    }
    return CHAIN_NONE;
}

/* Returns the thread with that ID; CHAIN_NONE: none. */
static uint32_t thread_of(const struct chains *chains, int64_t id)
{
    for (size_t i = 0; i < chains->thread_count; i++)
        if (chains->threads[i].id == id)
            return (uint32_t)i;
    return CHAIN_NONE;
}

/*
 * Where the culprit mostly waited in the worst case, for time or something outside of the program,
 * returns the function in which it did; else 0. The worst case is another's wait, which the culprit
 * ended, or what the culprit did itself.
 */
static trail_name culprit_waits_in(const struct chains *chains, const trail_finding *finding,
                                   const struct chain_wait *wait)
{
    uint32_t culprit = wait ? waker_of(chains, wait) : thread_of(chains, finding->goroutine);
    int64_t begin_ns = ns_between(chains->origin_ns, finding->begin_ns);
    int64_t end_ns = ns_between(chains->origin_ns, finding->end_ns);
    for (size_t i = 0; i < chains->wait_count && finding->has_moment; i++) {
        const struct chain_wait *own = &chains->waits[i];
        int64_t from_ns = own->begin_ns > begin_ns ? own->begin_ns : begin_ns;
        int64_t to_ns = own->end_ns < end_ns ? own->end_ns : end_ns;
        if (own->thread == culprit && own->end == CHAIN_TIMED && from_ns < to_ns &&
            to_ns - from_ns > ns_between(begin_ns, end_ns) / 2)
            return plan_wait_function(chains, own);
    }
    return 0;
}

/*
 * Whether most of the waiting for the lock ended at time limits: how often the lock would be tried
 * without these waits is then unknown.
 */
static bool is_given_up(const struct chains *chains, uint32_t lock)
{
    int64_t all = 0, timed = 0;
    EACH(const struct chain_wait, wait, chains->waits, chains->wait_count) {
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
    *question = (struct question){.change.kind = kind, .wait = wait};
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
        if (take_name(question,
                      names_text(chains->names, culprit_waits_in(chains, finding, wait))) &&
            plan_is_waiting_function(chains, question->name)) {
            question->change.kind = CHANGE_IO;
            question->change.factor = 0.2;
        } else if (take_name(question, text_of(gains->findings, finding->function))) {
            question->change.factor = 0.5;
        } else {
            return false;
        }
        break;
    default:
        break;
    }
    return plan_applies(chains, &question->change, &certain);
}

/* MARK: The answer */

/* What a replay showed. */
struct answer {
    const struct change *change;
    bool of_culprit;           /* what the culprit waits for itself takes less time */
    const struct trial *other; /* the other goal */
    double end, value;         /* of the end, and of the other goal */
    bool sooner, less;         /* each of these is a gain */
    bool end_unknown;          /* what decides the end is not in the trace */
};

/* How the changed conditions are called. */
static void put_condition(const struct gains *gains, const struct answer *answer, char *text,
                          size_t size)
{
    const struct change *change = answer->change;
    switch (change->kind) {
    case CHANGE_FREE:
        (void)snprintf(text, size, "without waits for this lock");
        break;
    case CHANGE_IO:
        if (answer->of_culprit)
            (void)snprintf(text, size, "with sleeps and I/O in %.160s taking a fifth",
                           change->name);
        else
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
 * Asks for the end and for another goal, by one replay. Negative: there is no value. Returns false
 * if out of memory.
 */
static bool ask(const struct gains *gains, const struct trial *other, const struct change *change,
                double *end, double *value)
{
    struct replay_result result;
    bool good = replay_run(gains->trial.chains, change, 1, &other->goal, NULL, &result);
    *end = trial_as_now(&gains->trial, replay_value(&gains->trial.goal, &result));
    *value = trial_as_now(other, replay_value(&other->goal, &result));
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

/* "the median task 'request' takes 3.2 ms instead of 9 ms", "all threads of worker have done the
 * same work after 3.2 ms instead of 9 ms", or "threads wait 2.1 s less for each other". */
static void put_other(const struct gains *gains, const struct answer *answer, char *text,
                      size_t size)
{
    const struct replay_goal *goal = &answer->other->goal;
    const char *tasks = word(gains->findings, TERM_tasks);
    double now = trial_now(answer->other);
    struct duration_words before = duration((int64_t)now), after = duration((int64_t)answer->value);
    if (goal->of == GOAL_WAITS)
        (void)snprintf(text, size, "%s wait %s less for each other", tasks,
                       duration((int64_t)(now - answer->value)).text);
    else if (goal->of == GOAL_THREADS && gains->thread_count > 1)
        (void)snprintf(text, size,
                       "all %s of %.160s have done the same work after %s instead of %s", tasks,
                       goal->name, after.text, before.text);
    else if (goal->of == GOAL_THREADS)
        (void)snprintf(text, size, "%.160s has done the same work after %s instead of %s",
                       goal->name, after.text, before.text);
    else if (goal->quantile > 0.5)
        (void)snprintf(text, size, "99 %% of the tasks '%.160s' take at most %s instead of %s",
                       goal->name, after.text, before.text);
    else
        (void)snprintf(text, size, "the median task '%.160s' takes %s instead of %s", goal->name,
                       after.text, before.text);
}

static void put_answer(const struct gains *gains, const struct answer *answer, char *text,
                       size_t size)
{
    char condition[256], other[448] = "something else decides when it ends", earlier[64] = "no";
    bool of_threads = answer->other->goal.of == GOAL_THREADS;
    const char *joined = answer->sooner && answer->less ? ", and "
                         : answer->less                 ? ", but "
                         : answer->sooner               ? ""
                                                        : ": ";
    put_condition(gains, answer, condition, sizeof condition);
    if (answer->sooner)
        (void)snprintf(earlier, sizeof earlier, "%s",
                       duration((int64_t)(trial_now(&gains->trial) - answer->end)).text);
    if (answer->less)
        put_other(gains, answer, other, sizeof other);
    if (of_threads && answer->end_unknown)
        (void)snprintf(text, size, "In a replay %s, %s.", condition, other);
    else if (of_threads)
        (void)snprintf(text, size, "In a replay %s, %s; the program ends %s earlier.", condition,
                       other, earlier);
    else
        (void)snprintf(text, size, "In a replay %s, the same work is done %s earlier%s%s.",
                       condition, earlier, joined, *joined ? other : "");
}

/* Whether the other goal gains more than the end. */
static bool is_of_other(const struct answer *answer)
{
    return answer->less && (!answer->sooner || answer->other->goal.of == GOAL_THREADS);
}

/* Sets the main figure. */
static void set_figure(const struct gains *gains, const struct answer *answer,
                       trail_finding *finding)
{
    bool of_other = is_of_other(answer);
    const struct trial *trial = of_other ? answer->other : &gains->trial;
    double then = of_other ? answer->value : answer->sooner ? answer->end : trial_now(trial);
    finding->replayed_of = !of_other                        ? "end"
                           : trial->goal.of == GOAL_WAITS   ? "waits"
                           : trial->goal.of == GOAL_THREADS ? "threads"
                           : trial->goal.quantile > 0.5     ? "p99"
                                                            : "median";
    finding->replayed_now_ns = (int64_t)trial_now(trial);
    finding->replayed_then_ns = (int64_t)then;
}

/* Writes the option for a goal. */
static const char *goal_option(const struct replay_goal *goal, char *text, size_t size)
{
    if (goal->of == GOAL_WAITS)
        return "--goal=waits";
    if (goal->of == GOAL_THREADS)
        (void)snprintf(text, size, "--goal=threads:%s", goal->name);
    else
        (void)snprintf(text, size, "--goal=task:%s:p%g", goal->name, 100 * goal->quantile);
    return text;
}

/* MARK: One finding */

/* Sets the gains of a replay with the change. Returns false if out of memory. */
static bool find_gains(const struct gains *gains, struct answer *answer)
{
    bool of_waits = answer->other->goal.of == GOAL_WAITS;
    if (!ask(gains, answer->other, answer->change, &answer->end, &answer->value))
        return false;
    answer->sooner = is_gain(&gains->trial, answer->end);
    answer->less = answer->value >= 0 && is_gain(answer->other, answer->value);
    answer->less &= !answer->sooner || !of_waits;
    /* In a replay, whatever the pool waits for answers at the same rate as in the trace. */
    answer->less &= answer->sooner || answer->change->kind != CHANGE_POOL;
    return true;
}

/*
 * Sets `third` to the work of the threads of this kind. *known: the replay reproduces when they
 * have done it. Returns false if out of memory.
 */
static bool choose_third(struct gains *gains, trail_name kind, bool *known)
{
    const struct chains *chains = gains->trial.chains;
    const struct chain_thread *end = &chains->threads[chains->thread_count];
    struct replay_goal goal = {.of = GOAL_THREADS, .name = gains->threads};
    int64_t ran_ns = chains->begin_ns;
    gains->thread_count = 0;
    for (const struct chain_thread *thread = chains->threads; thread < end; thread++) {
        if (names_kind(chains->names, thread->name) != kind)
            continue;
        gains->thread_count++;
        if (thread->ran_ns > ran_ns)
            ran_ns = thread->ran_ns;
    }
    double real = (double)(ran_ns - chains->begin_ns);
    gains->third = gains->trial;
    if (!copy_name(names_text(chains->names, kind), gains->threads, sizeof gains->threads))
        *known = false;
    else if (!trial_goal(&gains->third, &goal))
        return false;
    else
        *known = fabs(gains->third.unchanged - real) < TRIAL_OFF_SURE * real;
    return true;
}

/* By which part of it the goal is better. */
static double part_gained(const struct trial *trial, double then)
{
    return 1 - then / trial_now(trial);
}

/* Whether neither the tasks nor the end gains much. */
static bool gains_little(const struct gains *gains, const struct answer *answer)
{
    return !(answer->less && answer->other->goal.of == GOAL_TASK) &&
           !(answer->sooner && part_gained(&gains->trial, answer->end) > GAIN_LITTLE);
}

/*
 * Then asks what the threads gain whose wait is the worst case. If threads may run until they are
 * stopped, the replay does not show when the program would end. Returns false if out of memory.
 */
static bool find_threads(struct gains *gains, const struct chain_wait *wait, struct answer *answer)
{
    const struct chains *chains = gains->trial.chains;
    bool known = false, counts = answer->sooner || answer->change->kind != CHANGE_POOL;
    answer->end_unknown = gains->may_be_stopped;
    struct answer third = *answer;
    third.other = &gains->third;
    if (wait && wait->thread != chains->goal && counts) {
        trail_name kind = names_kind(chains->names, chains->threads[wait->thread].name);
        if (!choose_third(gains, kind, &known) || (known && !find_gains(gains, &third)))
            return false;
    }
    if (known && third.less &&
        part_gained(third.other, third.value) > 2 * part_gained(&gains->trial, third.end))
        *answer = third;
    else
        answer->less &= !answer->end_unknown;
    return true;
}

/* Whether one thread of this kind waited in sleep or for something outside the program for at least
 * twice as long as the average one. */
static bool are_uneven(const struct chains *chains, trail_name kind)
{
    int64_t *own = calloc(chains->thread_count + 1, sizeof *own), sum = 0, most = 0;
    size_t count = 0;
    for (size_t i = 0; own && i < chains->wait_count; i++) {
        const struct chain_wait *wait = &chains->waits[i];
        if (wait->end == CHAIN_TIMED && wait->lock == CHAIN_NONE)
            ns_add(&own[wait->thread], ns_between(wait->begin_ns, wait->end_ns));
    }
    for (size_t i = 0; own && i < chains->thread_count; i++) {
        if (names_kind(chains->names, chains->threads[i].name) != kind)
            continue;
        count++;
        ns_add(&sum, own[i]);
        most = own[i] > most ? own[i] : most;
    }
    bool uneven = !own || (count > 1 && most > 0 && most / 2 >= sum / (int64_t)count);
    free(own);
    return uneven;
}

/*
 * Whether the waiting threads share work, of which one got far more than its part. A replay
 * does not divide work anew, and may gain far less than a change.
 */
static bool may_share_work(const struct gains *gains, const struct answer *answer,
                           const struct chain_wait *wait, int64_t bound_ns)
{
    const struct chains *chains = gains->trial.chains;
    bool other = is_of_other(answer) && answer->other->goal.of != GOAL_WAITS;
    double gain =
        other ? trial_now(answer->other) - answer->value : trial_now(&gains->trial) - answer->end;
    if (!wait || answer->change->kind != CHANGE_FREE || gain >= (double)bound_ns / 2)
        return false;
    trail_name kind = names_kind(chains->names, chains->threads[wait->thread].name);
    const struct wait_group *group = waits_find_group(gains->findings->waits, kind);
    return group && wait_time_of(gains->findings, group).work_waits > 0 && are_uneven(chains, kind);
}

/* Adds the answer for one finding, if this change has one. `none`: also that it gains nothing. */
static bool add(struct gains *gains, trail_finding *finding, enum change_kind kind, bool none)
{
    struct question question;
    struct answer answer = {.change = &question.change, .other = &gains->second};
    char text[768], option[640], goal[320];
    bool can;
    if (!make_question(gains, finding, kind, &question))
        return true;
    answer.of_culprit = question.change.kind != kind;
    if (!can_answer(&gains->trial, &question.change, &can))
        return false;
    if (!can)
        return true;
    if (!find_gains(gains, &answer))
        return false;
    if (gains_little(gains, &answer) && !find_threads(gains, question.wait, &answer))
        return false;
    double gain = trial_now(&gains->trial) - answer.end;
    if (may_share_work(gains, &answer, question.wait, finding->gain_ns))
        return true;
    /* More than the bound: the finding and the replay do not mean the same. */
    if (answer.end < 0 || (finding->gain_ns > 0 && gain > (double)finding->gain_ns) ||
        !(answer.sooner || answer.less || (none && !answer.end_unknown)))
        return true;
    put_answer(gains, &answer, text, sizeof text);
    set_figure(gains, &answer, finding);
    finding->weight *= answer.sooner || answer.less || answer.value < 0 ? 1 : REFUTED;
    const char *options[2] = {
        change_option(&question.change, option, sizeof option),
        is_of_other(&answer) ? goal_option(&answer.other->goal, goal, sizeof goal) : NULL,
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
    if (!copy_name(name, gains->name, sizeof gains->name))
        return trial_goal(&gains->second, &waits);
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
    trail_name stopped;
    bool good = trial_may_be_stopped(chains, &stopped) && choose_second(&gains, answers);
    gains.may_be_stopped = stopped != 0;
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
