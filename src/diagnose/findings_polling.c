/* Findings: what looks again and again, waits up to time limits, and timers that are late. */
#include <string.h>

#include "diagnose/findings_outside.h"
#include "diagnose/findings_waits.h"
#include "diagnose/waits.h"

/* Thresholds. A share is a part of the time. */
#define POLL_TIMES 200               /* returns to a sleep */
#define POLL_MOST  INT64_C(5000000)  /* a sleep, on average */
#define WAIT_MOST  INT64_C(10000000) /* the same of a wait that times out */
/* Ran in between, on average: so much, or a part of the sleep up to more; beside other programs the
 * same work takes longer. */
#define POLL_EXEC      50000
#define POLL_EXEC_PART 20
#define POLL_SHARE     0.5
#define DOUBLED_LEAST  10
#define DOUBLED_SHARE  0.1 /* of the sleeps were the third that doubled, or a later one */
/* The same of longer sleeps of the main goroutine that end when another one has ended. */
#define LOOK_TIMES      40
#define LOOK_MOST       INT64_C(50000000)
#define SERIES_MORE     3 /* so many more series of sleeps than threads */
#define SERIES_SLEEPS   2 /* returns to a sleep for each series */
#define LOOK_LATE       2 /* the longest that the last sleep may be, in mean sleeps */
#define LATE_TIMES      20
#define JOINED_SHARE    0.9 /* of the time of such sleeps */
#define USE_LEAST       0.1 /* of the time */
#define LATE_SHARE      0.8
#define LATE_LEAST      0.3
#define TICKS_LEAST     20
#define TICK_LATE_LEAST INT64_C(5000000) /* ran for longer than the time between two ticks */

/* Whether it usually only looks between such sleeps; what it finds may be work. */
static bool only_looks(const struct outside_row *row)
{
    int64_t part = mean(row->spread.sum_ns, row->spread.count) / POLL_EXEC_PART;
    int64_t most = part < POLL_EXEC ? POLL_EXEC : part < POLL_EXEC_MOST ? part : POLL_EXEC_MOST;
    return mean(row->exec_ns, row->returns) <= most ||
           trail_histogram_quantile(&row->runs, 0.5) <= most / 2;
}

/*
 * Whether another goroutine ended in the main goroutine's last sleep there: it looked for that.
 * What sleeps as often without an end in sight may keep a pace, and stop the others after it.
 */
static bool looks_for_end(const struct findings *findings, const struct outside_row *row)
{
    if (row->returns < LOOK_TIMES || row->longest.goroutine != 1 || row->woke > 0 ||
        mean(row->spread.sum_ns, row->spread.count) > LOOK_MOST)
        return false;
    GROUPS_EACH(group, findings->waits) {
        int64_t after = outside_slept_on_ns(row, group->last_end_ns);
        /* Those that have not ended count at the end of the trace. */
        if (group->row.ended > 0 && group->row.ended == group->workers && after >= 0 &&
            after <= row->spread.max_ns &&
            after <= LOOK_LATE * mean(row->spread.sum_ns, row->spread.count))
            return true;
    }
    return false;
}

/* Whether sleeps of Go may have been late for most of their time, as far as it is known. */
static bool is_late(const struct outside_row *row)
{
    return row->late >= LATE_TIMES && share_of(row->late_ns, row->spread.sum_ns) >= LATE_SHARE;
}

/*
 * Whether goroutines come back to short sleeps often. Several that sleep there at the same time
 * rarely look for the same thing: their sleeps, which are pauses in their own work, must be
 * shorter.
 */
static bool sleeps_often(const struct outside_row *row)
{
    double sleep = (double)mean(row->spread.sum_ns, row->spread.count);
    return row->returns >= POLL_TIMES && sleep * outside_at_once(row) <= (double)POLL_MOST;
}

/*
 * Whether goroutines come back to series of sleeps, and do something else in between: they look for
 * the same thing each time, as a lock that a file stands for. What keeps a pace sleeps on.
 */
static bool sleeps_in_series(const struct findings *findings, const struct outside_row *row)
{
    const struct wait_group *group = waits_find_group(findings->waits, row->waiter);
    uint64_t series = row->spread.count - row->returns;
    return group && series >= group->workers + SERIES_MORE &&
           row->returns >= SERIES_SLEEPS * series && row->returns >= LOOK_TIMES &&
           mean(row->spread.sum_ns, row->spread.count) <= LOOK_MOST;
}

/*
 * Whether the only other thread of a C program is the main one, which meanwhile waits for the exit
 * of the one that sleeps there: the program changes nothing for which it could look.
 */
static bool is_only_joined(const struct findings *findings, const struct outside_row *row)
{
    const struct waits *waits = findings->waits;
    const struct wait_group *group = waits_find_group(waits, row->waiter);
    uint64_t threads = 0;
    for (size_t i = 0; i < waits->count; i++)
        threads += waits->items[i]->workers;
    return !waits->is_go && group && !row->of_main && group->workers == 1 && threads == 2 &&
           finding_all_awaited(findings, row->waiter,
                               JOINED_SHARE *
                                   time_share(findings, blame_union_ns(&row->at_least_one)));
}

/*
 * Whether the program may be slower for these sleeps: the main goroutine sleeps so, several kinds
 * do, others wait for what those do, or nothing else is done meanwhile. One beside work that does
 * not wait for it, such as one that reads a sensor, keeps a pace.
 */
static bool is_of_use(const struct findings *findings, const struct outside_row *row)
{
    int64_t work = findings->activity->sums.running_ns;
    ns_add(&work, findings->activity->sums.runnable_ns);
    if (row->of_main || row->waiters_differ ||
        ns_between(row->exec_ns, work) < blame_union_ns(&row->at_least_one) / 2)
        return true;
    BLAME_EACH(held, &findings->waits->blame)
        if (held->start == row->waiter &&
            time_share(findings, blame_union_ns(&held->held)) >= USE_LEAST)
            return true;
    return false;
}

/*
 * Sleeps for short, looks, and sleeps again. What sleeps until points in time keeps a pace, and so
 * does what begins something nearly each time. In Go, several that do so may each be a client with
 * its own.
 */
void finding_polling(struct findings *findings)
{
    OUTSIDE_EACH(row, &findings->waits->outside) {
        const trail_histogram *spread = &row->spread;
        if (row->kind != WIRE_WAIT_SLEEP ||
            !(sleeps_often(row) || sleeps_in_series(findings, row) ||
              looks_for_end(findings, row)) ||
            is_late(row) || (findings->waits->is_go && outside_are_many(row)) || !only_looks(row) ||
            row->woke * 4 > row->returns || row->created * 4 > row->returns * 3 ||
            row->until * 2 > row->spread.count || is_only_joined(findings, row) ||
            !is_of_use(findings, row) || finding_names(findings, "queue", row->function) ||
            share_of(blame_union_ns(&row->at_least_one),
                     wait_time_but(findings, ns_between(row->exec_ns, row->between_ns))) <
                POLL_SHARE)
            continue;
        const struct finding_of of = {"polling", .weight_ns = mean(spread->sum_ns, spread->count),
                                      .moment = &row->longest, .function = row->function};
        const struct waits *waits = findings->waits;
        bool timer = row->wait == waits->receive || row->wait == waits->select;
        const struct helper *helper = waits_helper(waits, row->place);
        trail_string by = text_of(findings, helper ? helper->by : row->place),
                     in = text_of(findings, helper ? helper->place : row->place);
        finding_say(findings, &of, "%.*s polls: it %s %s times for %s on average%s%.*s", SHOWN(by),
                    timer ? "waited for a timer" : "slept", counted(spread->count).text,
                    duration(mean(spread->sum_ns, spread->count)).text, helper ? " in " : "",
                    helper ? SHOWN_SIZE(in) : 0, in.data);
        finding_explain(
            findings,
            "It ran for %s in between. If it looks for something, that is noticed up to %s late.",
            duration(mean(row->exec_ns, row->returns)).text, duration(spread->max_ns).text);
        finding_advise(findings, "Wait for it with a %s.",
                       waits->is_go ? "channel or condition variable"
                                    : "condition variable, semaphore or poll");
    }
}

/*
 * Tries again and again, and sleeps twice as long each time. What it waits for may come long before
 * the sleep ends.
 */
void finding_backs_off(struct findings *findings)
{
    OUTSIDE_EACH(row, &findings->waits->outside) {
        const trail_histogram *spread = &row->spread;
        if (row->doubled < DOUBLED_LEAST ||
            share_of((int64_t)row->doubled, (int64_t)spread->count) < DOUBLED_SHARE ||
            finding_names(findings, "polling", row->function) ||
            time_share(findings, blame_union_ns(&row->at_least_one)) < POLL_SHARE)
            continue;
        const struct finding_of of = {"polling", .weight_ns = mean(spread->sum_ns, spread->count),
                                      .moment = &row->longest, .function = row->function};
        finding_say(findings, &of,
                    "%.*s tries again and again: it slept %s times for %s on average, at least %s "
                    "times twice as long as before",
                    NAMED(findings, row->place), counted(spread->count).text,
                    duration(mean(spread->sum_ns, spread->count)).text, counted(row->doubled).text);
        finding_explain(
            findings,
            "It slept for %s in all. If it waits for something, that is noticed up to %s "
            "late.",
            duration(spread->sum_ns).text, duration(spread->max_ns).text);
        finding_advise(findings, "Wait for it with a %s, or sleep for a shorter time.",
                       findings->waits->is_go ? "channel or condition variable"
                                              : "condition variable, semaphore or poll");
    }
}

/* Where most of such waits for one condition variable were; NULL: unknown. */
static const struct place *condition_place(const struct findings *findings, const trail_wait *wait)
{
    const struct waits *waits = findings->waits;
    for (size_t i = 0; i < waits->place_count; i++) {
        const struct place *place = waits->all[i];
        if (place->kind == PLACE_CONDITION && place->name != 0 && place->lock != 0 &&
            wait_kind_name(&findings->analysis->names, place->lock) == wait->reason &&
            place->waits * 2 > wait->spread.count)
            return place;
    }
    return NULL;
}

/* Waits for a condition variable that another thread ended, including the timed-out waits that they
 * continue. */
struct ended_by_others {
    int64_t ns, alike_ns; /* in all; by those that wait for it themselves */
};

static struct ended_by_others ended_by_others(const struct findings *findings,
                                              const struct place *place)
{
    const struct blame *blame = &findings->waits->blame;
    struct ended_by_others sum = {0};
    for (size_t i = 0; place && i < blame->count; i++) {
        if (blame->rows[i].wait != place->lock)
            continue;
        ns_add(&sum.alike_ns, blame->rows[i].alike_ns);
        ns_add(&sum.ns, blame->rows[i].direct_ns);
    }
    return sum;
}

/*
 * Whether those that wait there for the condition variable end the other waits as well, which they
 * do when they release the mutex.
 */
static bool ends_itself(const struct ended_by_others *ended)
{
    return ended->ns > 0 && share_of(ended->alike_ns, ended->ns) >= ALIKE_SHARE;
}

/* Whether a row's wait is of the kind: an rwlock has one name for both ways to take it. */
static bool is_of_kind(const struct findings *findings, trail_name wait, trail_name kind)
{
    trail_string text = text_of(findings, wait), title = text_of(findings, kind);
    return wait_kind_name(&findings->analysis->names, wait) == kind ||
           (text.size > title.size && memcmp(text.data, title.data, title.size) == 0 &&
            text.data[title.size] == ' ');
}

/* Whether at least half of the waits for locks that timed out are known to be for whose holds. */
static bool is_holder_known(const struct findings *findings, const trail_wait *wait)
{
    uint64_t known = 0;
    BLAME_EACH(row, &findings->waits->blame)
        if (row->lock && row->function != 0 && is_of_kind(findings, row->wait, wait->reason))
            known += row->waits;
    return known >= wait->timed_out / 2;
}

/* The same with waits that time out. */
void finding_time_outs(struct findings *findings)
{
    const struct waits *waits = findings->waits;
    for (size_t i = 0; i < waits->count; i++) {
        const trail_wait_group *group = &waits->items[i]->row;
        EACH(const trail_wait, wait, group->waits, group->wait_count) {
            const trail_histogram *spread = &wait->spread;
            if (wait->timed_out < POLL_TIMES || mean(spread->sum_ns, spread->count) > WAIT_MOST ||
                share_of(spread->sum_ns, wait_time_but(findings, group->ready.sum_ns)) < POLL_SHARE)
                continue;
            const struct wait_facts *facts = facts_of(findings, wait->reason);
            bool locks = facts && (wire_wait_kinds[facts->kind].traits & WIRE_WAIT_HELD ||
                                   (futexes_have(facts) && futexes_any_is_lock(&waits->futexes)));
            if (locks && (facts->kind == WIRE_WAIT_INTERPRETER || is_holder_known(findings, wait)))
                continue; /* it does not poll: others are to blame */
            const struct place *place = condition_place(findings, wait);
            struct ended_by_others ended = ended_by_others(findings, place);
            uint64_t part = ends_itself(&ended) ? 4 : 2;
            /* Not if it waits again after each time-out, until it is woken. */
            if (wait->timed_out * part < spread->count ||
                share_of(ended.ns, spread->sum_ns) >= ALIKE_SHARE)
                continue;
            const struct outside_row *in =
                place ? NULL : wait_mostly_in(findings, waits->items[i], wait);
            const struct finding_of of = {
                "polling", .weight_ns = spread->sum_ns / (int64_t)spread->count,
                .moment = &wait->longest, .function = in ? in->function : group->name,
                .object = wait->reason};
            trail_string name = text_of(findings, place ? place->name
                                                  : in  ? in->place
                                                        : group->name);
            trail_string reason = text_of(findings, place ? place->lock : wait->reason);
            finding_say(findings, &of,
                        "%.*s %s: %s of %s waits (%.*s) timed out, after %s on average",
                        SHOWN(name), locks ? "waits in vain" : "polls",
                        counted(wait->timed_out).text, counted(spread->count).text, SHOWN(reason),
                        duration(mean(spread->sum_ns, spread->count)).text);
            if (locks) {
                finding_explain(findings, "Which function held it meanwhile is not known.");
                finding_advise(findings, "See what takes it, and does not release it for so long.");
            } else
                finding_advise(findings, "Wake it when there is something to do, and wait without "
                                         "a time limit or with a longer one.");
        }
    }
}

/*
 * Sleeps in Go that end only when other goroutines are preempted, as no P is free to look at
 * timers. How long they were meant to be is not known: they count if they may be late for most of
 * the time.
 */
void finding_late_timers(struct findings *findings)
{
    OUTSIDE_EACH(row, &findings->waits->outside) {
        const trail_histogram *spread = &row->spread;
        if (!is_late(row) || time_share(findings, row->late_ns) < LATE_LEAST ||
            row->late_by.ns <= 0 ||
            !wait_is_needed(findings, &row->longest, row->waiter, LATE_LEAST))
            continue;
        const struct finding_of of = finding_saves("late-timer", row->late_ns, &row->late_run,
                                                   (trail_name)row->late_by.key, row->wait);
        uint64_t procs = findings->activity->sums.procs;
        finding_say(findings, &of, "Timers fire late at %.*s, since %.*s keeps %s",
                    NAMED(findings, row->place), NAMED(findings, (trail_name)row->late_by.key),
                    procs == 1 ? "the only P" : "the Ps");
        finding_explain(
            findings,
            "%s of %s sleeps, %s in all, ended as soon as it or another was preempted. They "
            "may have been late for %s in all.",
            counted(row->late).text, counted(spread->count).text, duration(spread->sum_ns).text,
            duration(row->late_ns).text);
        if (procs == 1)
            finding_advise(findings, "GOMAXPROCS is 1: raise it if the program may use more CPUs.");
        else
            finding_advise(findings, "Run fewer of them at a time, or let them yield "
                                     "(runtime.Gosched).");
    }
}

/* Whether these are waits for the next of the times of a timer, by a descriptor or to points in
 * time. */
static bool is_ticker(const struct findings *findings, const struct outside_row *row)
{
    const struct wait_facts *its = facts_of(findings, row->wait);
    if (row->kind == WIRE_WAIT_SLEEP)
        return row->until * 2 > row->spread.count;
    return row->kind == WIRE_WAIT_READ && its &&
           text_is(names_text(&findings->analysis->names, its->object), "[timerfd]");
}

/*
 * What is done at each tick takes longer than the time between two ticks, in a twentieth of them.
 * Several threads may have different periods.
 */
void finding_late_ticks(struct findings *findings)
{
    if (findings->waits->inferred)
        return;
    OUTSIDE_EACH(row, &findings->waits->outside) {
        int64_t period = trail_histogram_quantile(&row->spread, 0.5) +
                         trail_histogram_quantile(&row->runs, 0.5),
                long_run = trail_histogram_quantile(&row->runs, 0.95);
        if (!is_ticker(findings, row) || row->beginners > 1 || row->runs.count < TICKS_LEAST ||
            long_run < period + period / 2 || long_run < TICK_LATE_LEAST)
            continue;
        const struct finding_of of = {"late-timer", .gain_ns = ns_between(period, long_run),
                                      .moment = &row->longest_run, .function = row->function,
                                      .object = row->wait};
        finding_say(findings, &of,
                    "Timers are late at %.*s: they are due every %s, but %.*s ran for up to %s "
                    "between two waits for them",
                    NAMED(findings, row->place), duration(period).text,
                    NAMED(findings, row->runner), duration(row->longest_run.ns).text);
        finding_explain(findings, "One time in twenty, or more often, it ran for %s or longer.",
                        duration(long_run).text);
        finding_advise(findings, "Let another %s do what takes that long.",
                       word(findings, TERM_task));
    }
}
