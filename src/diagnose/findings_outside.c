/* Findings: sleeps that poll, and waits for what is outside the program. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "diagnose/findings.h"
#include "diagnose/findings_waits.h"
#include "diagnose/waits.h"
#include "words/process_name.h"

/* Thresholds. A share is a part of the time. */
#define POLL_TIMES 200               /* returns to a sleep */
#define POLL_MOST  INT64_C(5000000)  /* a sleep, on average */
#define WAIT_MOST  INT64_C(10000000) /* the same of a wait that times out */
/* Ran in between, on average: so much, or a part of the sleep up to more; beside other programs the
 * same work takes longer. */
#define POLL_EXEC      50000
#define POLL_EXEC_MOST 100000
#define POLL_EXEC_PART 20
#define POLL_SHARE     0.5
#define DOUBLED_LEAST  10
#define DOUBLED_SHARE  0.1 /* of the sleeps were the third that doubled, or a later one */
/* The same of longer sleeps of the main goroutine that end when another one has ended. */
#define LOOK_TIMES      40
#define LOOK_MOST       INT64_C(50000000)
#define SERIES_MORE     3   /* series of sleeps than threads */
#define SERIES_SLEEPS   2   /* returns, compared with the series */
#define LOOK_LATE       2   /* the last sleep, compared with the mean */
#define AT_ONCE         1.5 /* goroutines that wait for the same kind of thing, on average */
#define OUTSIDE_SHARE   0.3
#define FORCED_SHARE    0.2
#define OUTSIDE_LEAST   INT64_C(50000000)
#define CALLS_LEAST     8 /* blocking calls at once, on average */
#define LATE_TIMES      20
#define JOINED_SHARE    0.9 /* of the time of such sleeps */
#define USE_LEAST       0.1 /* of the time */
#define LATE_SHARE      0.8
#define LATE_LEAST      0.3
#define TICKS_LEAST     20
#define TICK_LATE_LEAST INT64_C(5000000) /* ran for longer than the time between two ticks */
#define ANSWER_COUNT    20
#define ANSWER_LEAST    INT64_C(50000000)
#define ANSWER_TIMES    10 /* compared with the 95th percentile */
#define ANSWER_SHARE    0.05
#define RUN_BESIDE      5 /* usual runs before and after a long one */
#define RUN_TIMES       20
#define RUN_SHARE       0.1
#define PEER_SHARE      0.5
#define PEER_QUICK      INT64_C(40000000)
#define ASKED_LEAST     0.8               /* of the time-outs */
#define DELAYED_LEAST   INT64_C(38000000) /* waits for a delayed acknowledgement of Linux */
#define DELAYED_MOST    INT64_C(60000000)
#define SERVER_SHARE    0.4 /* the same of a C program, which is known to have connected to it */

/* The waits of a row. */
static struct several row_words(const struct outside_row *row)
{
    return several(row->spread.count, "wait", row->spread.sum_ns, row->longest.ns);
}

/* Returns how many wait there at the same time, on average while any does. */
static double at_once(const struct outside_row *row)
{
    return share_of(row->spread.sum_ns, blame_union_ns(&row->at_least_one));
}

/* Whether several wait there at the same time. */
static bool are_many(const struct outside_row *row)
{
    return at_once(row) >= AT_ONCE;
}

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
    const struct waits *waits = findings->waits;
    if (row->returns < LOOK_TIMES || row->longest.goroutine != 1 || row->woke > 0 ||
        mean(row->spread.sum_ns, row->spread.count) > LOOK_MOST)
        return false;
    for (size_t i = 0; i < waits->count; i++) {
        const struct wait_group *group = waits->items[i];
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
    return row->returns >= POLL_TIMES && sleep * at_once(row) <= (double)POLL_MOST;
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
    const struct blame *blame = &findings->waits->blame;
    int64_t work = findings->activity->sums.running_ns;
    ns_add(&work, findings->activity->sums.runnable_ns);
    if (row->of_main || row->waiters_differ ||
        ns_between(row->exec_ns, work) < blame_union_ns(&row->at_least_one) / 2)
        return true;
    for (size_t i = 0; i < blame->count; i++)
        if (blame->rows[i].start == row->waiter &&
            time_share(findings, blame_union_ns(&blame->rows[i].held)) >= USE_LEAST)
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
    const struct outside *outside = &findings->waits->outside;
    for (size_t i = 0; i < outside->count; i++) {
        const struct outside_row *row = &outside->rows[i];
        const trail_histogram *spread = &row->spread;
        if (row->kind != WIRE_WAIT_SLEEP ||
            !(sleeps_often(row) || sleeps_in_series(findings, row) ||
              looks_for_end(findings, row)) ||
            is_late(row) || (findings->waits->is_go && are_many(row)) || !only_looks(row) ||
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
    const struct outside *outside = &findings->waits->outside;
    for (size_t i = 0; i < outside->count; i++) {
        const struct outside_row *row = &outside->rows[i];
        const trail_histogram *spread = &row->spread;
        if (row->doubled < DOUBLED_LEAST ||
            share_of((int64_t)row->doubled, (int64_t)spread->count) < DOUBLED_SHARE ||
            finding_names(findings, "polling", row->function) ||
            time_share(findings, blame_union_ns(&row->at_least_one)) < POLL_SHARE)
            continue;
        const struct finding_of of = {"polling", .weight_ns = mean(spread->sum_ns, spread->count),
                                      .moment = &row->longest, .function = row->function};
        trail_string place = text_of(findings, row->place);
        finding_say(findings, &of,
                    "%.*s tries again and again: it slept %s times for %s on average, at least %s "
                    "times twice as long as before",
                    SHOWN(place), counted(spread->count).text,
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

/* Waits for a condition variable that others ended, with those that had timed out just before. */
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

/* Whether a row's wait is of the kind: an rwlock has a name of its own, for both ways to take it. */
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
    const struct blame *blame = &findings->waits->blame;
    uint64_t known = 0;
    for (size_t i = 0; i < blame->count; i++)
        if (blame->rows[i].lock && blame->rows[i].function != 0 &&
            is_of_kind(findings, blame->rows[i].wait, wait->reason))
            known += blame->rows[i].waits;
    return known >= wait->timed_out / 2;
}

/* The same with waits that time out. */
void finding_time_outs(struct findings *findings)
{
    const struct waits *waits = findings->waits;
    for (size_t i = 0; i < waits->count; i++) {
        const trail_wait_group *group = &waits->items[i]->row;
        for (size_t n = 0; n < group->wait_count; n++) {
            const trail_wait *wait = &group->waits[n];
            const trail_histogram *spread = &wait->spread;
            if (wait->timed_out < POLL_TIMES || mean(spread->sum_ns, spread->count) > WAIT_MOST ||
                share_of(spread->sum_ns, wait_time_but(findings, group->ready.sum_ns)) < POLL_SHARE)
                continue;
            const struct wait_facts *facts = facts_of(findings, wait->reason);
            bool locks = facts && (wire_wait_kinds[facts->kind].traits & WIRE_WAIT_HELD ||
                                   (futexes_have(facts) && futexes_any_is_lock(&waits->futexes)));
            if (locks && is_holder_known(findings, wait))
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
    const struct outside *outside = &findings->waits->outside;
    for (size_t i = 0; i < outside->count; i++) {
        const struct outside_row *row = &outside->rows[i];
        const trail_histogram *spread = &row->spread;
        if (!is_late(row) || time_share(findings, row->late_ns) < LATE_LEAST ||
            row->late_by.ns <= 0 ||
            !wait_is_needed(findings, &row->longest, row->waiter, LATE_LEAST))
            continue;
        const struct finding_of of =
            finding_saves("late-timer", row->late_ns, &row->longest, row->function, row->wait);
        trail_string place = text_of(findings, row->place),
                     by = text_of(findings, (trail_name)row->late_by.key);
        uint64_t procs = findings->activity->sums.procs;
        finding_say(findings, &of, "Timers fire late at %.*s, since %.*s keeps %s", SHOWN(place),
                    SHOWN(by), procs == 1 ? "the only P" : "the Ps");
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
    const struct outside *outside = &findings->waits->outside;
    for (size_t i = 0; !findings->waits->inferred && i < outside->count; i++) {
        const struct outside_row *row = &outside->rows[i];
        int64_t period = trail_histogram_quantile(&row->spread, 0.5) +
                         trail_histogram_quantile(&row->runs, 0.5),
                long_run = trail_histogram_quantile(&row->runs, 0.95);
        if (!is_ticker(findings, row) || row->beginners > 1 || row->runs.count < TICKS_LEAST ||
            long_run < period + period / 2 || long_run < TICK_LATE_LEAST)
            continue;
        const struct finding_of of = {"late-timer", .gain_ns = ns_between(period, long_run),
                                      .moment = &row->longest_run, .function = row->function,
                                      .object = row->wait};
        trail_string place = text_of(findings, row->place), name = text_of(findings, row->runner);
        finding_say(findings, &of,
                    "Timers are late at %.*s: they are due every %s, but %.*s ran for up to %s "
                    "between two waits for them",
                    SHOWN(place), duration(period).text, SHOWN(name),
                    duration(row->longest_run.ns).text);
        finding_explain(findings, "One time in twenty, or more often, it ran for %s or longer.",
                        duration(long_run).text);
        finding_advise(findings, "Let another %s do what takes that long.",
                       word(findings, TERM_task));
    }
}

/* Whether a lock is held over these waits, for which others wait most of the time. */
static bool is_held_over(const struct findings *findings, const struct outside_row *row)
{
    const struct blame *blame = &findings->waits->blame;
    const struct names *names = &findings->analysis->names;
    for (size_t i = 0; i < blame->count; i++) {
        const struct blame_row *lock = &blame->rows[i];
        bool its =
            wait_of_holder(findings, lock) &&
            wait_kind_name(names, (trail_name)lock->outside.key) ==
                wait_kind_name(names, row->wait) &&
            waits_sleep_place(findings->waits, (trail_name)lock->outside_at.key) == row->place;
        if (lock->lock && (its || lock->function == row->function) &&
            blame_union_ns(&lock->held) >= blame_union_ns(&row->at_least_one) / 2)
            return true;
    }
    return false;
}

/* For how long both went on at the same time. */
static int64_t common_ns(const trail_longest *a, const trail_longest *b)
{
    int64_t begin = a->begin_ns > b->begin_ns ? a->begin_ns : b->begin_ns;
    int64_t a_end = (int64_t)((uint64_t)a->begin_ns + (uint64_t)a->ns),
            b_end = (int64_t)((uint64_t)b->begin_ns + (uint64_t)b->ns);
    int64_t end = a_end < b_end ? a_end : b_end;
    return begin < end ? ns_between(begin, end) : 0;
}

/*
 * Names what waited to read from a pipe in another process meanwhile, as the caller of a shell
 * does: the ends of all processes that have the pipe end that.
 */
static void explain_reader(struct findings *findings, const struct outside_row *row,
                           const struct process_name *own)
{
    const struct outside *outside = &findings->waits->outside;
    for (size_t i = 0; i < outside->count; i++) {
        const struct outside_row *of = &outside->rows[i];
        const struct wait_facts *its = facts_of(findings, of->wait);
        struct process_name other;
        if (of->kind != WIRE_WAIT_READ || of->peer.start != 0 || !its ||
            !text_begins(names_text(&findings->analysis->names, its->object), "pipe:") ||
            common_ns(&of->longest, &row->longest) < row->longest.ns / 2 ||
            !process_name_of(text_of(findings, of->waiter), &other) || other.pid == own->pid)
            continue;
        trail_string place = text_of(findings, of->place), wait = text_of(findings, of->wait);
        finding_explain(findings, "Meanwhile, %.*s waited (%.*s).", SHOWN(place), SHOWN(wait));
        return;
    }
}

/* The wait of another process for one that waits for a child, as of the caller of a shell. */
struct calls {
    trail_name function, place, wait; /* place 0: there is none */
};

static struct calls calls_of(const struct findings *findings, const struct outside_row *row,
                             const struct process_name *own)
{
    const struct blame *blame = &findings->waits->blame;
    const struct outside *outside = &findings->waits->outside;
    const struct blame_row *most = NULL;
    struct process_name caller;
    for (size_t i = 0; i < blame->count; i++) {
        const struct blame_row *of = &blame->rows[i];
        if (of->start == row->waiter && of->longest.ns >= row->longest.ns / 2 &&
            process_name_of(text_of(findings, of->waiter), &caller) && caller.pid != own->pid &&
            (!most || of->longest.ns > most->longest.ns))
            most = of;
    }
    if (!most)
        return (struct calls){0};
    for (size_t i = 0; i < outside->count; i++) {
        const struct outside_row *of = &outside->rows[i];
        if (of->longest.goroutine == most->longest.goroutine &&
            of->longest.begin_ns == most->longest.begin_ns)
            return (struct calls){of->function, of->place, most->wait};
    }
    return (struct calls){0, most->at, most->wait};
}

/* A child process that is recorded, too. What it waits for itself comes first. */
static void say_child(struct findings *findings, const struct outside_row *row, int64_t ns)
{
    struct finding_of of = finding_saves("outside", ns, &row->longest, row->function, row->wait);
    trail_string place = text_of(findings, row->place), start = text_of(findings, row->peer.start),
                 waiter = text_of(findings, row->waiter);
    struct process_name own;
    bool known = process_name_of(waiter, &own);
    struct calls calls = known ? calls_of(findings, row, &own) : (struct calls){0};
    trail_string at = text_of(findings, calls.place), wait = text_of(findings, calls.wait);
    /* A shell without symbols says nothing to those that called it. */
    bool leads = calls.function != 0 && memmem(place.data, place.size, "+0x", 3);
    double percent = 100 * time_share(findings, ns);
    if (wait_wants_all_cpus(findings))
        return;
    if (leads) {
        of.function = calls.function;
        finding_say(findings, &of,
                    "%.*s waited for %.*s, which waited for child processes for %.0f %% of the "
                    "time",
                    SHOWN(at), SHOWN(own.name), percent);
    } else
        finding_say(findings, &of, "%.*s waited for child processes for %.0f %% of the time",
                    SHOWN(place), percent);
    finding_explain(findings, "%s, which %.*s ended by its exit.", row_words(row).text,
                    SHOWN(start));
    finding_last(findings)->weight /= 4;
    if (leads)
        return;
    if (calls.place)
        finding_explain(findings, "Meanwhile, %.*s (%.*s) waited for %.*s.", SHOWN(at), SHOWN(wait),
                        SHOWN(waiter));
    else if (known)
        explain_reader(findings, row, &own);
}

/*
 * The least share of the time that is reported: lower where programs hardly ever wait on purpose.
 */
static const double outside_least[WIRE_WAITS] = {
    [WIRE_WAIT_CHILD] = 0.15,  [WIRE_WAIT_FILE] = OUTSIDE_SHARE,    [WIRE_WAIT_FAULT] = 0.1,
    [WIRE_WAIT_LOOKUP] = 0.15, [WIRE_WAIT_CONNECT] = OUTSIDE_SHARE,
};

/* Much of the time a goroutine waits for a child process, a file or a connection. */
void finding_outside(struct findings *findings)
{
    const struct outside *outside = &findings->waits->outside;
    for (size_t i = 0; i < outside->count; i++) {
        const struct outside_row *row = &outside->rows[i];
        int64_t ns = blame_union_ns(&row->at_least_one);
        if (ns < OUTSIDE_LEAST || outside_least[row->kind] == 0 ||
            time_share(findings, ns) < outside_least[row->kind])
            continue;
        if (row->kind == WIRE_WAIT_CHILD && row->peer.start != 0) {
            say_child(findings, row, ns);
            continue;
        }
        const struct finding_of of =
            finding_saves("outside", ns, &row->longest, row->function, row->wait);
        trail_string place = text_of(findings, row->place), wait = text_of(findings, row->wait);
        char what[240] = "child processes";
        if (row->kind != WIRE_WAIT_CHILD)
            (void)snprintf(what, sizeof what, "something outside the program (%.*s)", SHOWN(wait));
        finding_say(findings, &of, "%.*s waited for %s for %.0f %% of the time", SHOWN(place), what,
                    100 * time_share(findings, ns));
        finding_explain(findings, "%s.", row_words(row).text);
        /* To hold the lock over them is the cause. */
        if (is_held_over(findings, row))
            finding_last(findings)->weight /= 4;
    }
}

/*
 * Threads in syslog at the same time: all but one wait for a lock of the C library, which that one
 * keeps while it writes to the log.
 */
void finding_syslog(struct findings *findings)
{
    const struct outside *outside = &findings->waits->outside;
    for (size_t i = 0; i < outside->count; i++) {
        const struct outside_row *row = &outside->rows[i];
        const struct wait_facts *its = facts_of(findings, row->wait);
        int64_t ns = blame_union_ns(&row->at_least_one);
        if (row->kind != WIRE_WAIT_WRITE || !its ||
            !text_is(names_text(&findings->analysis->names, its->object), "syslog") ||
            ns < OUTSIDE_LEAST || time_share(findings, ns) < OUTSIDE_SHARE || !are_many(row))
            continue;
        const struct finding_of of =
            finding_saves("lock-contention", ns, &row->longest, row->function, row->wait);
        trail_string place = text_of(findings, row->place);
        finding_say(findings, &of,
                    "Threads wait for each other in syslog at %.*s for %.0f %% of "
                    "the time",
                    SHOWN(place), 100 * time_share(findings, ns));
        finding_explain(
            findings,
            "One at a time writes to the log, under a lock of the C library. On average "
            "%.1f waited. %s.",
            at_once(row), row_words(row).text);
        finding_advise(findings, "Log less, or let one thread do it for all.");
    }
}

/* SQLite waits until another connection releases its lock of a database. */
void finding_database(struct findings *findings)
{
    const struct outside *outside = &findings->waits->outside;
    for (size_t i = 0; i < outside->count; i++) {
        const struct outside_row *row = &outside->rows[i];
        int64_t ns = blame_union_ns(&row->at_least_one);
        if (!row->in_sqlite || ns < OUTSIDE_LEAST || time_share(findings, ns) < OUTSIDE_SHARE)
            continue;
        const struct finding_of of = finding_saves("database", ns, &row->longest, row->function, 0);
        trail_string place = text_of(findings, row->place);
        finding_say(findings, &of,
                    "%.*s waited for a locked SQLite database for %.0f %% of the time",
                    SHOWN(place), 100 * time_share(findings, ns));
        finding_explain(findings,
                        "SQLite slept %s time%s in its busy handler, %s in all, the "
                        "longest %s, while another connection held a lock.",
                        counted(row->spread.count).text, plural_s(row->spread.count),
                        duration(row->spread.sum_ns).text, duration(row->longest.ns).text);
        finding_advise(findings, "Keep transactions that write short, without waits in them.");
    }
}

/* Whether that was most of the row's longest wait. */
static bool took_most(const struct outside_row *row, int64_t ns)
{
    return row->peer.start != 0 && ns >= row->longest.ns / 2;
}

/* Whether goroutines with this start function waited for the lock. */
static bool waits_for_lock(const struct findings *findings, trail_name start, trail_name lock)
{
    const struct blame *blame = &findings->waits->blame;
    for (size_t i = 0; i < blame->count; i++)
        if (blame->rows[i].wait == lock && blame->rows[i].waiter == start)
            return true;
    return false;
}

/*
 * Returns the finding about a lock that a goroutine which ended the row's longest wait waited for
 * during most of that wait; NULL: there is none.
 */
static const trail_finding *lock_behind(const struct findings *findings,
                                        const struct outside_row *row)
{
    static const char *const kinds[] = {"lock-serialises", "lock-contention", "long-hold",
                                        "holder-not-running"};
    for (size_t i = 0; row->peer.start != 0 && i < findings->count; i++)
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            const trail_finding *finding = &findings->rows[i];
            trail_longest wait = {ns_between(finding->begin_ns, finding->end_ns), finding->begin_ns,
                                  finding->goroutine};
            if (strcmp(finding->kind, kinds[k]) == 0 && finding->has_moment &&
                waits_for_lock(findings, row->peer.start, finding->object) &&
                common_ns(&wait, &row->longest) > row->longest.ns / 2)
                return finding;
        }
    return NULL;
}

/* Explains what ended the longest wait of the row, and what that did meanwhile. */
static void explain_peer(struct findings *findings, const struct outside_row *row)
{
    const struct outside_peer *peer = &row->peer;
    trail_string name = text_of(findings, peer->start), wait = text_of(findings, peer->wait),
                 at = text_of(findings, peer->place);
    const trail_finding *lock = lock_behind(findings, row);
    if (took_most(row, peer->ns)) {
        finding_explain(findings,
                        "%.*s, which ended it, was itself waiting for %s of that (%.*s at %.*s).",
                        SHOWN(name), duration(peer->ns).text, SHOWN(wait), SHOWN(at));
    } else if (took_most(row, peer->ran_ns)) {
        finding_explain(findings, "%.*s, which ended it, ran for %s of that.", SHOWN(name),
                        duration(peer->ran_ns).text);
    } else if (lock) {
        trail_string object = text_of(findings, lock->object);
        finding_explain(findings, "%.*s ended it, and waited for %.*s before.", SHOWN(name),
                        SHOWN(object));
        finding_last(findings)->weight /= 2;
    } else if (peer->start != 0) {
        finding_explain(findings, "%.*s ended it.", SHOWN(name));
        finding_advise(findings, "See what %.*s did meanwhile.", SHOWN(name));
    } else {
        finding_advise(findings, "See what its peer did then.");
    }
}

/*
 * Whether threads with the start function `server` answer those of `client`: they waited for these
 * first, and for longer, apart from the longest wait of the row.
 */
static bool serves(const struct findings *findings, trail_name server, trail_name client,
                   const struct outside_row *longest)
{
    const struct blame *blame = &findings->waits->blame;
    int64_t asked = 0, answered = 0;
    bool first = false;
    for (size_t i = 0; i < blame->count && server != client; i++) {
        const struct blame_row *row = &blame->rows[i];
        if (row->waiter == server && row->start == client) {
            first |= answered == 0;
            ns_add(&asked, row->ns);
        } else if (row->waiter == client && row->start == server)
            ns_add(&answered, row->ns);
    }
    bool exchange = first && answered > 0;
    ns_add(longest->waiter == server ? &asked : &answered, -longest->longest.ns);
    return exchange && answered < asked;
}

/*
 * Whether the longest wait may have been for an answer. An event loop also polls while there is
 * nothing to do; and a server reads until the next request comes.
 */
static bool is_for_answer(const struct findings *findings, const struct outside_row *row)
{
    trail_name peer = row->peer.start;
    if (row->kind == WIRE_WAIT_POLL)
        return (took_most(row, row->peer.ns) || took_most(row, row->peer.ran_ns)) &&
               serves(findings, peer, row->waiter, row);
    return row->kind != WIRE_WAIT_SLEEP && row->kind != WIRE_WAIT_CHILD &&
           (peer == 0 || !serves(findings, row->waiter, peer, row));
}

/*
 * Whether a goroutine of a Go program was ready for most of the wait: the answer, which may be its
 * work, was late for want of a CPU.
 */
static bool is_for_cpu(const struct findings *findings, const trail_longest *wait)
{
    const struct waits *waits = findings->waits;
    for (size_t i = 0; waits->is_go && i < waits->count; i++)
        if (common_ns(&waits->items[i]->row.ready_longest, wait) > wait->ns / 2)
            return true;
    return false;
}

/* Whether the goroutine with the longest wait waited at least a fourth as often as others: one that
 * hardly did so may have had nothing to wait for. */
static bool is_usual(const struct outside_row *row)
{
    return row->beginners == 0 || row->longest_ends * row->beginners >= row->spread.count / 4;
}

/* One wait of many took far longer than nearly all others at the same place. */
void finding_slow_answer(struct findings *findings)
{
    const struct outside *outside = &findings->waits->outside;
    for (size_t i = 0; i < outside->count; i++) {
        const struct outside_row *row = &outside->rows[i];
        const trail_histogram *spread = &row->spread;
        int64_t most = row->longest.ns, usual = trail_histogram_quantile(spread, 0.95);
        if (row->deadline || spread->count < ANSWER_COUNT || most < ANSWER_LEAST ||
            most / ANSWER_TIMES < usual || time_share(findings, most) < ANSWER_SHARE ||
            !is_for_answer(findings, row) || !is_usual(row) || is_for_cpu(findings, &row->longest))
            continue;
        const struct finding_of of = finding_saves("slow-answer", ns_between(usual, most),
                                                   &row->longest, row->function, row->wait);
        trail_string place = text_of(findings, row->place), wait = text_of(findings, row->wait);
        finding_say(findings, &of,
                    "%.*s waited %s once (%.*s); 95 %% of its %s waits took at most about %s",
                    SHOWN(place), duration(most).text, SHOWN(wait), counted(spread->count).text,
                    duration(usual).text);
        explain_peer(findings, row);
    }
}

/* A slow answer that one waited for which ran so long meanwhile follows from that. */
static void put_after(struct findings *findings, const struct outside_row *of)
{
    const struct outside *outside = &findings->waits->outside;
    for (size_t i = 0; i < outside->count; i++) {
        const struct outside_row *row = &outside->rows[i];
        if (row->peer.start != of->runner ||
            common_ns(&row->longest, &of->longest_run) < of->longest_run.ns / 2)
            continue;
        for (size_t n = 0; n < findings->count; n++)
            if (strcmp(findings->rows[n].kind, "slow-answer") == 0 &&
                findings->rows[n].goroutine == row->longest.goroutine &&
                findings->rows[n].begin_ns == row->longest.begin_ns)
                findings->rows[n].weight /= 4;
    }
}

/*
 * Whether what usually only looks between two sleeps has work in other runs, too: when it has found
 * what it looks for.
 */
static bool works_at_times(const struct outside_row *row, int64_t usual)
{
    const trail_histogram *runs = &row->runs;
    int64_t second = trail_histogram_quantile(runs, 1 - 1.5 / (double)runs->count);
    return row->kind == WIRE_WAIT_SLEEP && usual <= POLL_EXEC_MOST && second > POLL_EXEC_MOST;
}

/*
 * One of many that ran between two waits at the same place ran far longer than nearly all others,
 * and not at first or last.
 */
void finding_slow_run(struct findings *findings)
{
    const struct outside *outside = &findings->waits->outside;
    /* Where context switches are missing, it may have had no CPU. */
    for (size_t i = 0; !findings->waits->inferred && i < outside->count; i++) {
        const struct outside_row *row = &outside->rows[i];
        const trail_histogram *runs = &row->runs;
        int64_t most = row->longest_run.ns, usual = trail_histogram_quantile(runs, 0.95);
        if (runs->count < ANSWER_COUNT || row->runs_before < RUN_BESIDE ||
            runs->count - row->runs_before <= RUN_BESIDE || most < ANSWER_LEAST ||
            most / RUN_TIMES < usual || time_share(findings, most) < RUN_SHARE ||
            works_at_times(row, usual))
            continue;
        const struct finding_of of = finding_saves("slow-run", ns_between(usual, most),
                                                   &row->longest_run, row->function, row->wait);
        trail_string name = text_of(findings, row->runner), place = text_of(findings, row->place),
                     wait = text_of(findings, row->wait);
        finding_say(findings, &of,
                    "%.*s ran for %s between two waits (%.*s at %.*s), 95 %% of the %s times at "
                    "most about %s",
                    SHOWN(name), duration(most).text, SHOWN(wait), SHOWN(place),
                    counted(runs->count).text, duration(usual).text);
        finding_explain(findings,
                        "No wait of it is recorded meanwhile: it computed, or touched much "
                        "memory for the first time.");
        finding_advise(findings, "%s",
                       findings->waits->is_go
                           ? "A CPU profile of that time shows the function."
                           : "Record with --cpu-samples=1000 to see in which function.");
        put_after(findings, row);
    }
}

/* Whether what answers is recorded. */
static bool is_answered(const struct outside_row *row)
{
    return row->answerer.ns > 0 && row->answerer.key > 0 &&
           row->answered_ns > row->spread.sum_ns / 2;
}

/*
 * Whether what answers usually waited for the rest of the request, as long as a delayed
 * acknowledgement takes: Linux sends one after 40 ms, and Nagle's algorithm waits for it before it
 * sends the second small part.
 */
static bool is_delayed(const struct findings *findings, const struct outside_row *row)
{
    const struct wait_facts *its = facts_of(findings, row->peer.wait);
    int64_t usual = trail_histogram_quantile(&row->spread, 0.5);
    return row->of_server && took_most(row, row->peer.ns) && its && its->kind == WIRE_WAIT_READ &&
           usual >= DELAYED_LEAST && usual <= DELAYED_MOST;
}

/*
 * Returns the answers for which those that answer in Go wait themselves most of that time; or NULL.
 */
static const struct outside_row *asked_meanwhile(const struct findings *findings,
                                                 const struct outside_row *row)
{
    const struct outside *outside = &findings->waits->outside;
    int64_t ns = blame_union_ns(&row->at_least_one);
    for (size_t i = 0; row->answered_by.ns > 0 && i < outside->count; i++) {
        const struct outside_row *other = &outside->rows[i];
        if (other != row && other->start == (trail_name)row->answered_by.key &&
            other->kind == WIRE_WAIT_READ && !other->deadline &&
            share_of(blame_union_ns(&other->at_least_one), ns) >= ALIKE_SHARE)
            return other;
    }
    return NULL;
}

/*
 * Explains what answers, if it is recorded, and whose own reasons come first; else, what may help.
 */
static void explain_answerer(struct findings *findings, const struct outside_row *row)
{
    trail_string by = text_of(findings, (trail_name)row->answerer.key),
                 wait = text_of(findings, row->peer.wait), at = text_of(findings, row->peer.place);
    if (is_answered(row) && is_delayed(findings, row)) {
        finding_explain(findings,
                        "Meanwhile %.*s waited for the rest of the request (%.*s at %.*s). Nagle's "
                        "algorithm holds small parts back until those before are acknowledged, "
                        "which takes 40 ms.",
                        SHOWN(by), SHOWN(wait), SHOWN(at));
        finding_advise(findings, "Send each request in one write, or set TCP_NODELAY.");
    } else if (is_answered(row)) {
        const struct outside_row *behind = asked_meanwhile(findings, row);
        trail_string asks = behind ? text_of(findings, behind->place) : (trail_string){.data = ""};
        char slept[200] = "";
        trail_string asleep = text_of(findings, (trail_name)row->slept_at.key);
        if (row->slept_at.ns > row->answered_ns / 2)
            (void)snprintf(slept, sizeof slept, "; it slept meanwhile (%.*s)", SHOWN(asleep));
        finding_explain(findings, "%.*s%s answers late%s%.*s%s.", SHOWN(by),
                        row->of_server ? "" : ", in the same program,",
                        behind ? ", and waits for answers itself at " : "", SHOWN(asks), slept);
        finding_last(findings)->weight /= behind ? 4 : 2;
    } else
        finding_advise(findings, "Its peer is slow or far away: ask it for less, or for several "
                                 "things at the same time.");
}

/* The start function of the threads that answer a C program; 0: not recorded. */
static trail_name server_of(const struct outside_row *row)
{
    return row->of_server && row->answerer.ns > 0 ? (trail_name)row->answerer.key : 0;
}

/* For how long threads with this start function were ready. */
static int64_t ready_ns(const struct findings *findings, trail_name name)
{
    const struct wait_group *group = waits_find_group(findings->waits, name);
    return group ? group->row.ready.sum_ns : 0;
}

/*
 * The share of the time in which answers are waited for. Of a C program, without that in which the
 * one that waits, or a recorded server, had no CPU.
 */
static double waits_for_peer(const struct findings *findings, const struct outside_row *row)
{
    int64_t ns = blame_union_ns(&row->at_least_one);
    if (!row->of_server)
        return time_share(findings, ns);
    return share_of(ns_between(ready_ns(findings, server_of(row)), ns),
                    wait_time_but(findings, ready_ns(findings, row->start)));
}

/* Whether several are asked at the same time, and usually answer soon. */
static bool asks_many(const struct outside_row *row)
{
    return !row->of_server && are_many(row) &&
           trail_histogram_quantile(&row->spread, 0.5) < PEER_QUICK;
}

/* What the program, or a region, needs waits most of the time for answers from the network. */
void finding_slow_peer(struct findings *findings)
{
    const struct outside *outside = &findings->waits->outside;
    for (size_t i = 0; i < outside->count; i++) {
        const struct outside_row *row = &outside->rows[i];
        int64_t ns = blame_union_ns(&row->at_least_one);
        double least = row->of_server ? SERVER_SHARE : PEER_SHARE;
        /* One wait that took most of it is a slow answer. */
        if (row->start == 0 || row->deadline || ns < OUTSIDE_LEAST ||
            waits_for_peer(findings, row) < least || row->longest.ns > ns / 2 || asks_many(row) ||
            (is_answered(row) && wait_wants_all_cpus(findings)) ||
            !(row->in_region || wait_is_needed(findings, &row->longest, row->start, least) ||
              (server_of(row) && wait_is_needed(findings, &row->longest, server_of(row), least))))
            continue;
        const struct finding_of of =
            finding_saves("slow-peer", ns, &row->longest, row->function, row->wait);
        trail_string place = text_of(findings, row->place);
        finding_say(findings, &of,
                    "%.*s waited for answers from the network for %.0f %% of the time",
                    SHOWN(place), 100 * time_share(findings, ns));
        finding_explain(findings, "%s.", row_words(row).text);
        explain_answerer(findings, row);
        /* A lock that is held meanwhile makes others wait for the peer, too. */
        if (finding_names(findings, "lock-serialises", row->function))
            finding_last(findings)->weight /= 2;
    }
}

/* How often goroutines of the kind waited for this in all. */
static uint64_t all_waits(const struct findings *findings, trail_name start, trail_name reason)
{
    const struct wait_group *group = waits_find_group(findings->waits, start);
    for (size_t i = 0; group && i < group->row.wait_count; i++)
        if (group->waits[i].reason == reason)
            return group->waits[i].spread.count;
    return 0;
}

/* Whether those with this start function wait for work from `from`. */
static bool works_for(const struct findings *findings, trail_name start, trail_name from,
                      uint64_t least)
{
    const struct blame *blame = &findings->waits->blame;
    for (size_t i = 0; i < blame->pair_count; i++)
        if (blame->pairs[i].waiter == start && blame->pairs[i].waker == from)
            return blame->pairs[i].waits >= least;
    return false;
}

/* Returns a group that the row's waiters ask, if only those that they ask end their waits; or 0. */
static trail_name asked_by(const struct findings *findings, const struct outside_row *row)
{
    const struct blame *blame = &findings->waits->blame;
    trail_name asked = 0;
    for (size_t i = 0; i < blame->pair_count; i++) {
        const struct blame_pair *pair = &blame->pairs[i];
        if (pair->waiter == row->waiter && !works_for(findings, pair->waker, row->waiter, 1))
            return 0;
        if (pair->waker == row->waiter && pair->waiter != row->waiter &&
            pair->waits >= row->spread.count)
            asked = pair->waiter;
    }
    return asked;
}

/*
 * Whether a select of Go waits for an answer, or until it has taken too long: each time it has
 * asked just before, most are answered, and the others take as long as each other. What a loop does
 * at each tick has no answers; what it does when nothing has come has not been asked for.
 */
static bool is_timed_answer(const struct findings *findings, const struct outside_row *row)
{
    const trail_histogram *spread = &row->spread;
    return findings->waits->is_go && row->kind == WIRE_WAIT_SLEEP &&
           row->wait == findings->waits->select &&
           (double)row->asked >= ASKED_LEAST * (double)spread->count &&
           spread->max_ns - spread->min_ns <= spread->min_ns / 4 &&
           all_waits(findings, row->waiter, row->wait) >= 2 * spread->count &&
           asked_by(findings, row) != 0;
}

/* The function of a place, "main.work (main.go:42)"; nothing if it is not known. */
static trail_string function_of(const struct findings *findings, trail_name place)
{
    trail_string at = names_text(&findings->analysis->names, place);
    const char *line = at.size > 0 ? memmem(at.data, at.size, " (", 2) : NULL;
    return (trail_string){at.data, line ? (size_t)(line - at.data) : at.size};
}

/* Whether goroutines look leaked that the function of the place created, as those do which it no
 * longer waits for after a time-out. */
static bool leaks_at(const struct findings *findings, trail_name place)
{
    const struct waits *waits = findings->waits;
    trail_string at = function_of(findings, place);
    for (size_t i = 0; i < waits->count; i++) {
        const struct wait_group *group = waits->items[i];
        trail_string by = function_of(findings, group->created_at);
        if (at.size > 0 && by.size == at.size && memcmp(by.data, at.data, at.size) == 0 &&
            finding_names(findings, "leak", group->row.name))
            return true;
    }
    return false;
}

/* Waits that are needed, and that only the time-out of a context or a timer ends. */
void finding_deadlines(struct findings *findings)
{
    const struct outside *outside = &findings->waits->outside;
    for (size_t i = 0; i < outside->count; i++) {
        const struct outside_row *row = &outside->rows[i];
        int64_t ns = blame_union_ns(&row->at_least_one);
        /* One that most of it is may be the time that the program is to run for. */
        if (row->spread.count < QUEUE_WAITS || ns < OUTSIDE_LEAST ||
            time_share(findings, ns) < OUTSIDE_SHARE || row->longest.ns > ns / 2 ||
            !(row->deadline || is_timed_answer(findings, row)) ||
            !(row->in_region ||
              wait_is_needed(findings, &row->longest, row->deadline ? row->start : row->waiter,
                             OUTSIDE_SHARE)))
            continue;
        const struct finding_of of =
            finding_saves("time-out", ns, &row->longest, row->function, row->wait);
        trail_string place = text_of(findings, row->place), wait = text_of(findings, row->wait);
        finding_say(findings, &of, "%.*s waited until the time-out of a %s for %.0f %% of the time",
                    SHOWN(place), row->deadline ? "context" : "timer",
                    100 * time_share(findings, ns));
        finding_explain(findings,
                        "%s wait%s (%.*s) ended so, %s in all, the longest %s: nothing "
                        "else that would have ended them came in time.",
                        counted(row->spread.count).text, plural_s(row->spread.count), SHOWN(wait),
                        duration(row->spread.sum_ns).text, duration(row->longest.ns).text);
        finding_advise(findings, "Find out why no answer came, or use a shorter time-out.");
        /* What it leaves behind stays. */
        if (leaks_at(findings, row->place))
            finding_last(findings)->weight /= 4;
    }
}

/* What the end of a Go program needs waits in system calls most of the time. */
static void say_needed_call(struct findings *findings, const struct outside_row *row)
{
    int64_t ns = blame_union_ns(&row->at_least_one);
    if ((row->kind != WIRE_WAIT_KERNEL && row->kind != WIRE_WAIT_FILE_LOCK) || ns < OUTSIDE_LEAST ||
        time_share(findings, ns) < BUSY_SHARE ||
        !wait_is_needed(findings, &row->longest, row->waiter, BUSY_SHARE))
        return;
    const struct finding_of of =
        finding_saves("blocking-calls", ns, &row->longest, row->function, row->wait);
    trail_string place = text_of(findings, row->place), wait = text_of(findings, row->wait),
                 waiter = text_of(findings, row->waiter);
    finding_say(findings, &of, "%.*s waited %s %.*ss for %.0f %% of the time", SHOWN(place),
                row->kind == WIRE_WAIT_KERNEL ? "in" : "for", SHOWN(wait),
                100 * time_share(findings, ns));
    finding_explain(findings, "%s, of %.*s.",
                    several(row->spread.count, "call", row->spread.sum_ns, row->longest.ns).text,
                    SHOWN(waiter));
}

/* Goroutines of Go wait in system calls, each of which needs a thread of its own. */
void finding_blocking_calls(struct findings *findings)
{
    const struct outside *outside = &findings->waits->outside;
    for (size_t i = 0; findings->waits->is_go && i < outside->count; i++) {
        const struct outside_row *row = &outside->rows[i];
        int64_t ns = blame_union_ns(&row->at_least_one);
        bool calls = row->kind == WIRE_WAIT_KERNEL || row->kind == WIRE_WAIT_FILE ||
                     row->kind == WIRE_WAIT_FILE_LOCK || row->kind == WIRE_WAIT_CHILD;
        if (!calls || time_share(findings, ns) < OUTSIDE_SHARE || at_once(row) < CALLS_LEAST) {
            say_needed_call(findings, row);
            continue;
        }
        const struct finding_of of = {"blocking-calls", .gain_ns = ns, .moment = &row->longest,
                                      .function = row->function, .object = row->wait};
        trail_string place = text_of(findings, row->place), wait = text_of(findings, row->wait);
        finding_say(findings, &of,
                    "Blocking calls use up threads: %.1f %s on average waited in one at %.*s "
                    "(%.*s) during %.0f %% of the time",
                    at_once(row), word(findings, TERM_tasks), SHOWN(place), SHOWN(wait),
                    100 * time_share(findings, ns));
        finding_explain(
            findings, "Each needs a thread meanwhile. %s.",
            several(row->spread.count, "call", row->spread.sum_ns, row->longest.ns).text);
        finding_advise(findings, "Let fewer of them call it at the same time.");
    }
}

/* MARK: Forced collections */

/* A goroutine of a Go program asks for garbage collections, and waits until they end. */
void finding_forced_gc(struct findings *findings)
{
    const struct outside *outside = &findings->waits->outside;
    for (size_t i = 0; i < outside->count; i++) {
        const struct outside_row *row = &outside->rows[i];
        int64_t ns = blame_union_ns(&row->at_least_one);
        if (row->wait != findings->waits->collection || ns < OUTSIDE_LEAST ||
            time_share(findings, ns) < FORCED_SHARE)
            continue;
        const struct finding_of of =
            finding_saves("forced-gc", ns, &row->longest, row->function, row->wait);
        trail_string place = text_of(findings, row->place);
        finding_say(findings, &of,
                    "%.*s asked for garbage collections and waited for their end for %.0f %% of "
                    "the time",
                    SHOWN(place), 100 * time_share(findings, ns));
        finding_explain(findings, "%s.", row_words(row).text);
        finding_advise(findings, "Leave it to the runtime when to collect (GOGC, GOMEMLIMIT).");
    }
}
