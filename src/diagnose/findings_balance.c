/* Findings: initialisation that others wait for, and work divided unevenly. */
#include <inttypes.h>

#include "diagnose/findings.h"
#include "diagnose/findings_waits.h"
#include "diagnose/waits.h"

/* Thresholds. A share is a part of the time. */
#define ONCE_SHARE    0.2
#define ONCE_LEAST    INT64_C(100000000)
#define BALANCE_LEAST INT64_C(50000000)
#define BALANCE_SHARE 0.25
#define WATCH_TIMES   20                /* short sleeps until a worker has ended */
#define WATCH_MOST    INT64_C(20000000) /* a sleep, on average */
#define BALANCE_TIMES 2                 /* the busiest compared with the mean of the others */
#define SERVER_JOINED 0.1               /* its exit is waited for: it does not serve others */
#define LIMIT_SHARE   0.9               /* of the waits timed out */
#define ONE_SHARE     0.99              /* of the time, if others of its kind might do the same */
#define ROUNDS        3                 /* threads created, compared with those at once */
#define UNEVEN_LEAST  0.1               /* of the time in which others wait for the busiest one */

/* MARK: Once */

/* Whether others waited for that goroutine's initialisation, which cannot be divided. */
static bool is_initialiser(const struct findings *findings, int64_t goroutine)
{
    BLAME_EACH(row, &findings->waits->blame)
        if (row->once && row->goroutine.key == goroutine &&
            blame_union_ns(&row->held) >= ONCE_LEAST)
            return true;
    return false;
}

/* Others wait while one initialises what is initialised once. */
void finding_once(struct findings *findings)
{
    BLAME_EACH(row, &findings->waits->blame) {
        int64_t ns = blame_union_ns(&row->held);
        if (!row->once || row->function == 0 || ns < ONCE_LEAST ||
            time_share(findings, ns) < ONCE_SHARE)
            continue;
        const struct finding_of of =
            finding_saves("once", ns, &row->longest, row->function, row->wait);
        trail_string wait = text_of(findings, row->wait);
        wait = facts_of(findings, row->wait) ? wait : (trail_string){"sync.Once", 9};
        finding_say(findings, &of,
                    "An initialisation that runs once (%.*s) at %.*s held others up for %s",
                    SHOWN(wait), NAMED(findings, row->place), duration(ns).text);
        finding_explain(findings, "They waited for %s in all, the longest for %s.",
                        duration(row->ns).text, duration(row->longest.ns).text);
        wait_explain_own(findings, row);
        finding_advise(findings, "Initialise it before it is needed, or make that faster.");
    }
}

/* MARK: Balance */

/* Whether `a` is the better evidence: a barrier is, compared with the join at the end. */
static bool is_better(const struct findings *findings, const struct blame_row *a,
                      const struct blame_row *b)
{
    const struct wait_facts *x = facts_of(findings, a->wait), *y = facts_of(findings, b->wait);
    bool x_joins = x && x->kind == WIRE_WAIT_JOIN, y_joins = y && y->kind == WIRE_WAIT_JOIN;
    if (x_joins != y_joins)
        return y_joins;
    return blame_union_ns(&a->held) > blame_union_ns(&b->held);
}

/* The longest waits for the goroutine by others that need all of their kind. */
static const struct blame_row *waited_for(const struct findings *findings, int64_t goroutine)
{
    const struct blame_row *most = NULL;
    BLAME_EACH(row, &findings->waits->blame) {
        if (row->goroutine.key == goroutine && row->goroutine.ns > 0 &&
            wait_is_for_all(findings, row) &&
            time_share(findings, blame_union_ns(&row->held)) >= BALANCE_SHARE &&
            (!most || is_better(findings, row, most)))
            most = row;
    }
    return most;
}

/*
 * Where another goroutine slept for short, again and again, until the busiest of the group ended.
 */
static const struct outside_row *polls_for(const struct findings *findings,
                                           const struct wait_group *group)
{
    const struct outside_row *most = NULL;
    OUTSIDE_EACH(row, &findings->waits->outside) {
        const struct blame_union *slept = &row->at_least_one;
        if (row->kind != WIRE_WAIT_SLEEP || row->returns < WATCH_TIMES ||
            mean(row->spread.sum_ns, row->spread.count) > WATCH_MOST ||
            time_share(findings, blame_union_ns(slept)) < BALANCE_SHARE)
            continue;
        int64_t after = outside_slept_on_ns(row, ns_behind(group->life.begin_ns, group->life.ns));
        if (after >= -row->spread.max_ns && after <= row->spread.max_ns &&
            (!most || row->spread.sum_ns > most->spread.sum_ns))
            most = row;
    }
    return most;
}

/* The waits for the busiest goroutine of a group. */
struct awaited {
    trail_name wait, at; /* `at` 0: none */
    int64_t ns;
    const trail_longest *longest;
};

static struct awaited awaited_of(const struct findings *findings, const struct wait_group *group)
{
    const struct blame_row *row = waited_for(findings, group->busiest.goroutine);
    const struct outside_row *polls = row ? NULL : polls_for(findings, group);
    if (row)
        return (struct awaited){row->wait, row->at, blame_union_ns(&row->held), &row->longest};
    if (polls)
        return (struct awaited){polls->wait, polls->place, blame_union_ns(&polls->at_least_one),
                                &group->life};
    return (struct awaited){0};
}

/* Returns how many of the group can run at once. */
static int64_t at_once(const struct findings *findings, const struct wait_group *group)
{
    int64_t slots = (int64_t)findings->activity->sums.procs, workers = (int64_t)group->workers;
    return slots > 0 && slots < workers ? slots : workers;
}

/* One of several workers has most of the work, and others wait for it. */
void finding_imbalance(struct findings *findings)
{
    GROUPS_EACH(group, findings->waits) {
        int64_t most = group->busiest.ns, all = group->exec_ns;
        if (group->workers < 2 || most < BALANCE_LEAST ||
            finding_names(findings, "spins", group->row.name) ||
            share_of(most, findings->activity->sums.running_ns) < BALANCE_SHARE ||
            is_initialiser(findings, group->busiest.goroutine))
            continue;
        int64_t others = ns_between(most, all) / (int64_t)(group->workers - 1);
        int64_t slots = at_once(findings, group), even = all / slots;
        struct awaited row = awaited_of(findings, group);
        if (most / BALANCE_TIMES < others || row.at == 0)
            continue;
        int64_t uneven = ns_between(even, most);
        /* What it did alone, divided among all. */
        int64_t gain = ns_between(row.ns / slots, row.ns);
        if (share_of(uneven, row.ns) < UNEVEN_LEAST)
            continue;
        const struct finding_of of = finding_saves("imbalance", gain < uneven ? gain : uneven,
                                                   row.longest, group->row.name, row.wait);
        finding_say(findings, &of, "The work of %.*s is divided unevenly",
                    NAMED(findings, group->row.name));
        finding_explain(findings,
                        "%s %" PRId64 " ran for %s, the other %s for %s on average. Others waited "
                        "for it (%.*s at %.*s) for %s.",
                        word(findings, TERM_task), group->busiest.goroutine, duration(most).text,
                        counted(group->workers - 1).text, duration(others).text,
                        NAMED(findings, row.wait), NAMED(findings, row.at), duration(row.ns).text);
        finding_advise(findings, "Divide it evenly.");
    }
}

/*
 * Explains what the straggler waited for, if that took most of the time in which others waited for
 * it, or for all of a group. Of several times, others with the same start function may have been
 * it: the one that was waited for longest counts.
 */
static void explain_own_wait(struct findings *findings, const struct straggler *straggler)
{
    const struct blame_row *most = NULL;
    BLAME_EACH(row, &findings->waits->blame) {
        bool its =
            row->goroutine.key == straggler->longest.goroutine ||
            (straggler->times > 1 && row->start == straggler->start && row->at == straggler->at);
        if (!its || (!wait_is_for_all(findings, row) && row->wait != straggler->wait) ||
            row->outside.ns <= 0 || wait_own_share(row) < BUSY_SHARE)
            continue;
        if (!most || blame_union_ns(&row->held) > blame_union_ns(&most->held))
            most = row;
    }
    if (most)
        wait_explain_own(findings, most);
}

/*
 * One goroutine comes last to a barrier, or to a condition variable used as one, since it waits for
 * something else before; or the last one does so whichever it is, as in a barrier's completion.
 */
void finding_late(struct findings *findings)
{
    BLAME_EACH(row, &findings->waits->blame) {
        const struct wait_facts *facts = facts_of(findings, row->wait);
        int64_t ns = blame_union_ns(&row->held);
        bool barrier =
            (facts && facts->kind == WIRE_WAIT_BARRIER) || wait_is_own_barrier(findings, row);
        bool one = share_of(row->goroutine.ns, row->ns) >= ALIKE_SHARE;
        if (!barrier || !wait_of_holder(findings, row) || ns < BALANCE_LEAST ||
            !(one || wait_own_place(findings, row)) || time_share(findings, ns) < BALANCE_SHARE)
            continue;
        struct finding_of of =
            finding_saves("straggler", wait_own_ns(row, ns), &row->longest, row->start, row->wait);
        trail_string start = text_of(findings, row->start), wait = text_of(findings, row->wait);
        if (!one) { /* all may wait before they come: the waits of the last one bound nothing */
            of.weight_ns = of.gain_ns;
            of.gain_ns = 0;
            of.saves = false;
        }
        if (one) {
            finding_say(findings, &of, "One %s of %.*s held up %.*s", word(findings, TERM_task),
                        SHOWN(start), SHOWN(wait));
            finding_explain(findings, "%s %" PRId64 " came last.", word(findings, TERM_task),
                            row->goroutine.key);
        } else {
            finding_say(findings, &of, "%s of %.*s held each other up at %.*s",
                        word(findings, TERM_tasks), SHOWN(start), SHOWN(wait));
            finding_explain(findings, "They came last in turn.");
        }
        finding_explain(findings, "Others waited for %s at %.*s during %.0f %% of the time: %s.",
                        one ? "it" : "the last one", NAMED(findings, row->at),
                        100 * time_share(findings, ns),
                        several(row->waits, "wait", row->ns, row->longest.ns).text);
        wait_explain_own(findings, row);
    }
}

/*
 * Of goroutines that a WaitGroup is for, or that are waited for one by one, one ends long after all
 * others.
 */
void finding_straggler(struct findings *findings)
{
    IDMAP_VALUES(const struct straggler, straggler, &findings->waits->stragglers.map) {
        if (straggler->ns < BALANCE_LEAST || time_share(findings, straggler->ns) < BALANCE_SHARE ||
            finding_names(findings, "imbalance", straggler->start))
            continue;
        int64_t gain = straggler->ns < length_of(findings) ? straggler->ns : length_of(findings);
        const struct finding_of of =
            finding_saves("straggler", gain, &straggler->longest, straggler->start, 0);
        const struct wait_facts *facts = facts_of(findings, straggler->wait);
        bool sends = findings->waits->is_go && straggler->wait == findings->waits->receive,
             counts = facts && facts->kind != WIRE_WAIT_JOIN;
        finding_say(findings, &of, "One %s of %.*s held up the %s at %.*s",
                    word(findings, TERM_task), NAMED(findings, straggler->start),
                    counts                    ? "wait"
                    : !findings->waits->is_go ? "join"
                    : sends                   ? "receive"
                                              : "WaitGroup",
                    NAMED(findings, straggler->at));
        finding_explain(findings, "%s %" PRId64 " %s %s after all others created at %.*s%s.",
                        word(findings, TERM_task), straggler->longest.goroutine,
                        sends    ? "sent its result"
                        : counts ? "ended it"
                                 : "ended",
                        duration(straggler->longest.ns).text,
                        NAMED(findings, straggler->created_at),
                        sends || counts ? " had ended" : "");
        if (straggler->times > 1)
            finding_explain(findings, "This was the longest of %s times, %s in all.",
                            counted(straggler->times).text, duration(straggler->ns).text);
        explain_own_wait(findings, straggler);
    }
}

/*
 * The end of goroutines is waited for that sleep, and had begun to long before: if something asks
 * them to end, it is noticed late.
 */
void finding_sleeps_on(struct findings *findings)
{
    BLAME_EACH(row, &findings->waits->blame) {
        int64_t ns = blame_union_ns(&row->held);
        const struct wait_facts *facts = facts_of(findings, row->wait);
        if (!wait_is_for_all(findings, row) || (facts && facts->kind != WIRE_WAIT_JOIN) ||
            row->wait == findings->waits->condition ||
            (trail_name)row->outside.key != findings->waits->sleep ||
            !wait_of_holder(findings, row) || row->begun_ns < row->ns / 2 || ns < BALANCE_LEAST ||
            time_share(findings, ns) < BALANCE_SHARE ||
            finding_names(findings, "straggler", row->start))
            continue;
        /* The sleep may be the work: no gain is known. */
        const struct finding_of of = {.kind = "sleeper",
                                      .weight_ns = wait_own_ns(row, ns),
                                      .moment = &row->longest,
                                      .function = row->start,
                                      .object = row->wait};
        finding_say(findings, &of, "%.*s waited for the end of %.*s, which was asleep",
                    NAMED(findings, row->at), NAMED(findings, row->start));
        finding_explain(findings, "%s, %.0f %% of the time.",
                        several(row->waits, "wait", row->ns, row->longest.ns).text,
                        100 * time_share(findings, ns));
        wait_explain_own(findings, row);
        finding_explain(findings, "The sleep had begun before, and nothing ends a sleep early.");
        finding_advise(findings, "If it is asked to end meanwhile, let it wait for that, with a "
                                 "time limit, instead of sleeping.");
    }
}

/* Where the goroutine slept once for half of the longest of these waits; NULL: it did not. */
static const struct outside_row *slept_in(const struct findings *findings,
                                          const struct blame_row *row)
{
    OUTSIDE_EACH(slept, &findings->waits->outside) {
        if (slept->kind == WIRE_WAIT_SLEEP && slept->longest.goroutine == row->goroutine.key &&
            slept->longest.ns >= row->longest.ns / 2 && slept->longest.ns <= row->longest.ns * 2)
            return slept;
    }
    return NULL;
}

/* Whether another goroutine that the same one created has ended before that time. */
static bool has_ended_before(const struct findings *findings, const struct blame_row *row,
                             int64_t ns)
{
    const struct waits *waits = findings->waits;
    const struct wait_group *own = waits_find_group(waits, row->start);
    for (size_t i = 0; own && i < waits->count; i++) {
        const struct wait_group *group = waits->items[i];
        if (group != own && group->row.ended > 0 && group->row.created > 0 &&
            group->creator == own->creator && group->last_end_ns <= ns)
            return true;
    }
    return false;
}

/*
 * Of several different goroutines that run at the same time, one sleeps for long, while the one
 * that waits for its exit has nothing else to do, nor has any other. Short sleeps again and again
 * are a pace.
 */
void finding_late_sleeper(struct findings *findings)
{
    BLAME_EACH(row, &findings->waits->blame) {
        const struct wait_facts *facts = facts_of(findings, row->wait);
        int64_t ns = blame_union_ns(&row->serial);
        if (!facts || facts->kind != WIRE_WAIT_JOIN || ns < BALANCE_LEAST ||
            (trail_name)row->outside.key != findings->waits->sleep ||
            !wait_of_holder(findings, row) || time_share(findings, ns) < BALANCE_SHARE ||
            finding_names(findings, "straggler", row->start) ||
            finding_names(findings, "sleeper", row->start) ||
            finding_names(findings, "one-at-a-time", row->start))
            continue;
        const struct outside_row *slept = slept_in(findings, row);
        int64_t end_ns = row->longest.begin_ns + row->longest.ns / 2;
        if (!slept || !has_ended_before(findings, row, end_ns))
            continue;
        const struct finding_of of =
            finding_saves("straggler", wait_own_ns(row, ns), &row->longest, row->start, row->wait);
        finding_say(findings, &of, "%.*s held up %.*s", NAMED(findings, row->start),
                    NAMED(findings, row->at));
        finding_explain(
            findings,
            "Its exit was waited for during %.0f %% of the time (%s), while at most one "
            "%s worked, and another had ended.",
            100 * time_share(findings, ns),
            several(row->waits, "wait", row->ns, row->longest.ns).text, word(findings, TERM_task));
        wait_explain_own(findings, row);
    }
}

/*
 * Goroutines of Go wait for one of their own with a WaitGroup, now for this one, now for another,
 * as where one fetches what all of them need.
 */
void finding_wait_for_own(struct findings *findings)
{
    const struct waits *waits = findings->waits;
    if (!waits->is_go)
        return;
    BLAME_EACH(row, &waits->blame) {
        int64_t ns = blame_union_ns(&row->held);
        if (row->function == 0 || facts_of(findings, row->wait) ||
            !wait_is_for_all(findings, row) || row->wait == waits->condition ||
            row->waits < QUEUE_WAITS || share_of(row->alike_ns, row->direct_ns) < ALIKE_SHARE ||
            !wait_of_holder(findings, row) || time_share(findings, ns) < BUSY_SHARE)
            continue;
        const struct finding_of of =
            finding_saves("straggler", wait_own_ns(row, ns), &row->longest, row->start, row->wait);
        finding_say(findings, &of,
                    "%s of %.*s waited for one of them at %.*s for %.0f %% of the time",
                    word(findings, TERM_tasks), NAMED(findings, row->start),
                    NAMED(findings, row->at), 100 * time_share(findings, ns));
        finding_explain(findings, "%s, ended by %.*s.",
                        several(row->waits, "wait", row->ns, row->longest.ns).text,
                        NAMED(findings, row->place));
        wait_explain_own(findings, row);
        finding_advise(findings, "Make that faster, or begin it before others need it.");
    }
}

/*
 * Whether the program's end needs those that wait in this row. Threads of a C program may wait for
 * one at whose own pace they work, and end together: its exit must not be waited for.
 */
static bool needs_waiter(const struct findings *findings, const struct blame_row *row)
{
    return wait_is_needed(findings, &row->longest, row->waiter, BUSY_SHARE) &&
           (findings->waits->is_go ||
            time_share(findings, finding_exit_awaited_ns(findings, row->start)) < SERVER_JOINED);
}

/*
 * Whether timers ended most of the time of the waits of Go's goroutines in select, but at most half
 * of the waits: one that collects waits for more. What only a timer wakes keeps a pace.
 */
static bool waits_out_timer(const struct findings *findings, const struct blame_row *row,
                            const trail_wait *wait)
{
    uint64_t count = 0;
    int64_t ns = 0;
    if (wait->reason != findings->waits->select)
        return false;
    OUTSIDE_EACH(slept, &findings->waits->outside)
        if (slept->kind == WIRE_WAIT_SLEEP && slept->waiter == row->start &&
            slept->wait == wait->reason) {
            count += slept->spread.count;
            ns_add(&ns, slept->spread.sum_ns);
        }
    return count * 2 <= wait->spread.count && share_of(ns, wait->spread.sum_ns) >= LIMIT_SHARE;
}

/*
 * Whether what the goroutine that ended the waits waited for itself, but no other goroutine, mostly
 * ended at a time limit.
 */
static bool waits_out_limit(const struct findings *findings, const struct blame_row *row)
{
    trail_name kind = wait_kind_name(&findings->analysis->names, (trail_name)row->outside.key);
    const struct wait_group *group = waits_find_group(findings->waits, row->start);
    for (size_t i = 0; group && i < group->row.wait_count; i++)
        if (group->waits[i].reason == kind)
            return share_of((int64_t)group->waits[i].timed_out,
                            (int64_t)group->waits[i].spread.count) >= LIMIT_SHARE ||
                   waits_out_timer(findings, row, &group->waits[i]);
    return false;
}

/* Whether it kept others waiting for what it makes, and mostly waited itself meanwhile. */
static bool is_late_with_work(const struct findings *findings, const struct blame_row *row)
{
    bool of_one_kind = share_of(row->alike_ns, row->direct_ns) >= ALIKE_SHARE;
    return row->function != 0 && row->waits >= QUEUE_WAITS && wait_is_for_work(findings, row) &&
           row->goroutine.key != 1 && row->outside.ns > 0 && wait_own_share(row) >= BUSY_SHARE &&
           share_of(row->goroutine.ns, row->ns) >= (of_one_kind ? ONE_SHARE : ALIKE_SHARE) &&
           time_share(findings, blame_union_ns(&row->held)) >= BUSY_SHARE &&
           !wait_is_lent(findings, row->waiter, row->start);
}

static void say_sleeper(struct findings *findings, const struct blame_row *row, bool sleeps)
{
    int64_t ns = blame_union_ns(&row->held);
    double share = wait_own_share(row);
    const struct finding_of of = finding_saves("sleeper", ns, &row->longest, row->start, row->wait);
    trail_name place = sleeps ? wait_own_place(findings, row) : 0;
    trail_string own = text_of(findings, place ? place : (trail_name)row->outside.key);
    finding_say(findings, &of, "%.*s %s while others wait for %s", NAMED(findings, row->start),
                sleeps ? "sleeps" : "waits until a time limit",
                wait_is_for_work(findings, row) ? "what it makes" : "its exit");
    finding_explain(
        findings,
        "They waited at %.*s (%.*s) during %.0f %% of the time, %s; for %.0f %% of "
        "that it %s (%.*s).",
        NAMED(findings, row->at), NAMED(findings, row->wait), 100 * time_share(findings, ns),
        several(row->waits, "time", row->ns, row->longest.ns).text, 100 * (share < 1 ? share : 1),
        sleeps ? "slept" : "waited, mostly until the limit", SHOWN(own));
    if (!sleeps)
        finding_advise(findings, "Wake it as soon as there is something to do, or shorten the "
                                 "limit.");
    wait_put_before_locks(findings, row->wait);
}

/*
 * Whether the exit of threads that sleep is waited for again and again, each time of others that
 * are created for that. One that sleeps until the program ends may keep a pace.
 */
static bool is_of_rounds(const struct findings *findings, const struct blame_row *row)
{
    const struct wait_facts *facts = facts_of(findings, row->wait);
    const struct wait_group *group = waits_find_group(findings->waits, row->start);
    return facts && facts->kind == WIRE_WAIT_JOIN && group && group->row.created > 0 &&
           group->row.created >= ROUNDS * group->most_alive && wait_of_holder(findings, row) &&
           time_share(findings, blame_union_ns(&row->held)) >= BUSY_SHARE &&
           wait_is_needed(findings, &row->longest, row->waiter, BUSY_SHARE);
}

/*
 * What the program's end needs waits for a goroutine that sleeps. Where none needs what waits, it
 * may be a client that has nothing to do; and the main goroutine, or several, may pace others.
 */
void finding_sleeper(struct findings *findings)
{
    const struct waits *waits = findings->waits;
    BLAME_EACH(row, &waits->blame) {
        bool rounds = is_of_rounds(findings, row);
        if (!(rounds || is_late_with_work(findings, row)) ||
            finding_names(findings, "straggler", row->start) ||
            finding_names(findings, "pool-too-small", row->start) ||
            finding_names(findings, "one-at-a-time", row->start) ||
            finding_names(findings, "queue", row->start) ||
            (!waits->is_go && finding_names(findings, "sleeper", row->start)))
            continue;
        bool sleeps = (trail_name)row->outside.key == waits->sleep;
        if (sleeps ? rounds || needs_waiter(findings, row)
                   : !rounds && waits_out_limit(findings, row) && needs_waiter(findings, row))
            say_sleeper(findings, row, sleeps);
    }
}
