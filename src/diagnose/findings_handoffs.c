/* Findings: work handed over in small pieces, spinning, and signals that reach too few. */
#include <inttypes.h>
#include <stdio.h>

#include "diagnose/findings.h"
#include "diagnose/findings_waits.h"
#include "diagnose/waits.h"

/* Thresholds. A share is a part of the time. */
#define SPIN_COUNT         5
#define SPIN_SHARE         0.5
#define SPIN_PAUSE         INT64_C(1000000) /* of running, per value */
#define HANDOFF_MOST       20000            /* time per hand-off */
#define HANDOFF_RARE       50000            /* the same, if hardly anything is done in between */
#define HANDOFF_EXEC       20000            /* which is: running, per hand-off */
#define TINY_MOST          5000             /* running, per goroutine that is created */
#define THREAD_COST        10               /* to create one, in goroutines */
#define HANDOFF_PERIOD     60000            /* the usual waits of two that answer each other */
#define HANDOFF_ALIKE      0.9              /* of two that do so, as many waits */
#define YIELDS_LEAST       10000
#define YIELD_MOST         20000 /* running, per yield */
#define SCHED_YIELDS_LEAST 1000
#define HANDOFF_SHARE      0.3 /* of the time that they lived */
#define HANDOFF_LEAST      0.1
#define MISSED_ROUNDS      2
#define MISSED_SHARE       0.8 /* of the waits that timed out */
#define MISSED_LATE        0.2
#define FUTILE_LEAST       100

/* Whether all waits of this name are for locks that others hold. */
static bool is_lock(const struct findings *findings, trail_name wait)
{
    const struct wait_facts *facts = facts_of(findings, wait);
    return facts ? wire_wait_kinds[facts->kind].traits & WIRE_WAIT_HELD
                 : text_is(text_of(findings, wait), "sync");
}

/* Waits in which work is handed over, of the goroutines of a group. */
struct handed {
    const struct wait_group *group;
    const trail_wait *wait; /* the most frequent; NULL: all were too short for events */
    uint64_t count;         /* of these, and of those too short for events */
};

static struct handed handed_to(const struct findings *findings, const struct wait_group *group)
{
    struct handed handed = {group, NULL, group->brief};
    EACH(const trail_wait, wait, group->waits, group->row.wait_count) {
        uint64_t count = group->brief + wait->spread.count;
        if (waits_hands_over(findings->waits, wait->reason) && count > handed.count)
            handed = (struct handed){group, wait, count};
    }
    return handed;
}

/* For how long they waited for work and for locks, and until they ran again. */
static int64_t handed_ns(const struct findings *findings, const struct wait_group *group)
{
    int64_t ns = group->row.ready.sum_ns;
    ns_add(&ns, group->brief_ns);
    for (size_t n = 0; n < group->row.wait_count; n++)
        if (waits_hands_over(findings->waits, group->waits[n].reason) ||
            is_lock(findings, group->waits[n].reason))
            ns_add(&ns, group->waits[n].spread.sum_ns);
    return ns;
}

/*
 * The time, but for that in which the program had work and no CPU; roughly, if several had work. In
 * Go, many are ready at once for Ps that run. At least the time that it ran for, on all CPUs.
 */
static int64_t time_with_cpus(const struct findings *findings)
{
    const trail_activity *sums = &findings->activity->sums;
    int64_t lacked = findings->waits->is_go ? findings->activity->unused_ns : sums->runnable_ns;
    int64_t ns = ns_between(lacked, length_of(findings));
    return ns < sums->running_ns ? sums->running_ns : ns;
}

/*
 * Whether threads of a C program wait about as often as others do, and the usual waits of both are
 * so short that neither does much in between: they answer each other. What other programs do makes
 * the mean longer, and the time that they run for, but not the median.
 */
static bool answers_back(const struct findings *findings, const struct handed *most)
{
    const struct waits *waits = findings->waits;
    for (size_t i = 0; i < waits->count && most->wait; i++) {
        struct handed other = handed_to(findings, waits->items[i]);
        if (other.group != most->group && other.wait && facts_of(findings, other.wait->reason) &&
            (double)other.count >= HANDOFF_ALIKE * (double)most->count &&
            trail_histogram_quantile(&most->wait->spread, 0.5) +
                    trail_histogram_quantile(&other.wait->spread, 0.5) <=
                HANDOFF_PERIOD)
            return true;
    }
    return false;
}

static bool same_moment(const trail_longest *a, const trail_longest *b)
{
    return a->goroutine == b->goroutine && a->begin_ns == b->begin_ns;
}

/* The row of the group's longest such wait, if most of them are there; NULL: unknown. */
static const struct outside_row *handed_row(const struct findings *findings,
                                            const struct handed *most)
{
    const struct outside *outside = &findings->waits->outside;
    for (size_t i = 0; i < outside->count && most->wait; i++)
        if (same_moment(&outside->rows[i].longest, &most->wait->longest) &&
            outside->rows[i].spread.count > most->count / 2)
            return &outside->rows[i];
    return NULL;
}

/* The same with the place of waits for one condition variable. */
static const struct place *handed_place(const struct findings *findings, const struct handed *most)
{
    const struct waits *waits = findings->waits;
    for (size_t i = 0; i < waits->place_count && most->wait; i++)
        if (same_moment(&waits->all[i]->longest, &most->wait->longest) && waits->all[i]->lock &&
            waits->all[i]->waits > most->count / 2)
            return waits->all[i];
    return NULL;
}

/* The time up to the end of the last of the group: a program may do other things after that. */
static int64_t lived_ns(const struct findings *findings, const struct wait_group *group)
{
    int64_t ns = ns_between(findings->analysis->span.begin_ns, group->last_end_ns);
    return group->workers > 0 && ns > 0 ? ns : length_of(findings);
}

/*
 * Explains where it waited for what is handed over, and where that comes from, if these are known.
 */
static void explain_handed(struct findings *findings, const struct handed *most, int64_t ns)
{
    const struct outside_row *row = handed_row(findings, most);
    const struct place *place = handed_place(findings, most);
    trail_name for_what = place        ? place->lock
                          : most->wait ? most->wait->reason
                                       : most->group->brief_for;
    trail_string where = text_of(findings, row     ? row->place
                                           : place ? place->name
                                                   : 0),
                 from = text_of(findings, row ? row->peer.start : 0);
    char at[200] = "";
    if (row || place)
        (void)snprintf(at, sizeof at, " at %.*s", SHOWN(where));
    finding_explain(findings,
                    "It waited (%.*s%s) %s times, once every %s, %s in all with locks and the time "
                    "until it ran again.",
                    NAMED(findings, for_what), at, counted(most->count).text,
                    duration(mean(lived_ns(findings, most->group), most->count)).text,
                    duration(ns).text);
    if (row && row->peer.start)
        finding_explain(findings, "%.*s hands it over.", SHOWN(from));
}

/* Goroutines hand over work so often that the switches take most of the time. */
void finding_handoffs(struct findings *findings)
{
    struct handed most = {0}, other = {0};
    GROUPS_EACH(group, findings->waits) {
        struct handed handed = handed_to(findings, group);
        if (finding_names(findings, "futile-wakeups", group->row.name))
            continue;
        if (handed.count > most.count) {
            other = most;
            most = handed;
        } else if (handed.count > other.count)
            other = handed;
    }
    int64_t length = length_of(findings);
    if (most.count < HANDOFF_TIMES)
        return;
    bool brief = mean(most.group->exec_ns, most.count) <= HANDOFF_EXEC;
    int64_t ns = handed_ns(findings, most.group);
    if ((mean(time_with_cpus(findings), most.count) > (brief ? HANDOFF_RARE : HANDOFF_MOST) &&
         !answers_back(findings, &most)) ||
        share_of(ns, lived_ns(findings, most.group)) < HANDOFF_SHARE ||
        time_share(findings, ns) < HANDOFF_LEAST)
        return;
    /* If hardly anything is done in between, running is mostly for the hand-over. */
    int64_t gain = ns;
    ns_add(&gain, brief ? most.group->exec_ns : 0);
    struct finding_of of = finding_saves(
        "hand-offs", gain < length ? gain : length, most.wait ? &most.wait->longest : NULL,
        most.group->row.name, most.wait ? most.wait->reason : most.group->brief_for);
    of.weight_ns = ns < length ? ns : length;
    finding_say(findings, &of, "%.*s is handed work in pieces that are too small",
                NAMED(findings, of.function));
    explain_handed(findings, &most, ns);
    if (other.count > most.count / 2) {
        finding_explain(findings, "%.*s waited %s times, too.",
                        NAMED(findings, other.group->row.name), counted(other.count).text);
    }
    finding_advise(findings, "Hand over several pieces at a time.");
}

/*
 * The most that fewer goroutines would save: the time, but for what they run, and what the one that
 * creates them waits for besides.
 */
static int64_t creating_ns(const struct findings *findings, const struct wait_group *group)
{
    const struct wait_group *creator =
        group->creator ? waits_find_group(findings->waits, group->creator) : NULL;
    int64_t ns = ns_between(group->exec_ns, length_of(findings));
    if (creator && creator->workers == 1)
        ns = ns_between(wait_time_of(findings, creator).others, ns);
    return ns;
}

/* Goroutines are created for so little work each that this takes most of the time. Those that wait
 * meanwhile may be needed for that. */
void finding_tiny(struct findings *findings)
{
    const struct waits *waits = findings->waits;
    int64_t length = length_of(findings), cost = waits->is_go ? 1 : THREAD_COST;
    GROUPS_EACH(group, waits) {
        uint64_t created = group->row.created;
        if (created < HANDOFF_TIMES / (uint64_t)cost ||
            mean(group->exec_ns, created) > TINY_MOST * cost ||
            mean(ns_between(group->row.ready.sum_ns, group->lived_ns), group->workers) >
                HANDOFF_MOST * cost ||
            mean(length, created) > HANDOFF_MOST * cost)
            continue;
        int64_t ns = creating_ns(findings, group);
        if (ns <= 0)
            continue;
        const struct finding_of of = {"hand-offs", .gain_ns = ns, .moment = &group->life,
                                      .function = group->row.name};
        finding_say(findings, &of, "%s %s of %s were created for pieces of work that are too small",
                    counted(created).text, word(findings, TERM_tasks),
                    finding_started(findings, group->row.name).text);
        finding_explain(findings,
                        "Each ran for %s on average, and one was created every %s, at %.*s.",
                        duration(mean(group->exec_ns, created)).text,
                        duration(mean(length, created)).text, NAMED(findings, group->created_at));
        finding_advise(findings, "Let a few %s do several pieces each.",
                       word(findings, TERM_tasks));
    }
}

/* MARK: Spinning */

/* Threads yield again and again, until something has changed. */
static void say_sched_yields(struct findings *findings, const struct wait_group *group)
{
    int64_t ns = group->yield_ns, length = length_of(findings);
    if (group->yields < SCHED_YIELDS_LEAST || time_share(findings, ns) < QUEUE_SHARE)
        return;
    const struct finding_of of = {"spins", .gain_ns = ns < length ? ns : length,
                                  .moment = &group->life, .function = group->row.name};
    trail_string at = text_of(findings, group->yield_at ? group->yield_at : group->row.name);
    finding_say(findings, &of, "%.*s spins: %s of %.*s yielded (sched_yield) %s times in a row",
                SHOWN(at), word(findings, TERM_tasks), NAMED(findings, group->row.name),
                counted(group->yields).text);
    finding_explain(findings, "That took %s in all, and they looked for a change in between.",
                    duration(ns).text);
    finding_advise(findings, "Wait for it with a mutex, condition variable or futex, which leaves "
                             "the CPU to others.");
}

/*
 * Whether goroutines of the group ask for collections, in which runtime.GC yields while it sweeps.
 */
static bool collects(const struct findings *findings, const struct wait_group *group)
{
    OUTSIDE_EACH(row, &findings->waits->outside)
        if (row->wait == findings->waits->collection && row->waiter == group->row.name)
            return true;
    return false;
}

/* Goroutines of a Go program yield again and again, until something has changed. */
static void say_yields(struct findings *findings, const struct wait_group *group)
{
    const trail_histogram *ready = &group->row.ready;
    int64_t ns = group->exec_ns, with_ready = ns, length = length_of(findings);
    ns_add(&with_ready, ready->sum_ns);
    if (group->yield_ns > 0) {
        say_sched_yields(findings, group);
        return;
    }
    /* If nothing else runs in between, its thread looks for something that does. */
    if (mean(ready->sum_ns, ready->count) <= YIELD_MOST)
        ns = with_ready;
    if (group->yields < YIELDS_LEAST || mean(group->exec_ns, group->yields) > YIELD_MOST ||
        time_share(findings, ns) < QUEUE_SHARE || collects(findings, group) ||
        finding_is_runtime(findings, group->row.name))
        return;
    const struct finding_of of = {"spins", .gain_ns = ns < length ? ns : length,
                                  .moment = &group->life, .function = group->row.name};
    finding_say(findings, &of, "%.*s spins: it yielded (runtime.Gosched) %s times",
                NAMED(findings, group->row.name), counted(group->yields).text);
    finding_explain(findings, "It ran for %s, and was ready for %s; it yielded once every %s.",
                    duration(group->exec_ns).text, duration(ready->sum_ns).text,
                    duration(mean(with_ready, group->yields)).text);
    finding_advise(findings, "Wait for what it looks for, with a channel or a condition variable.");
}

/* A goroutine of a Go program receives without waiting, in a loop. */
void finding_spins(struct findings *findings)
{
    const struct spinner *spinner = &findings->waits->spinner;
    int64_t ns = spinner->exec_ns;
    GROUPS_EACH(group, findings->waits)
        say_yields(findings, group);
    if (spinner->count < SPIN_COUNT || mean(ns, spinner->count) < SPIN_PAUSE ||
        time_share(findings, ns) < SPIN_SHARE)
        return;
    trail_longest moment = {ns, spinner->begin_ns, spinner->goroutine};
    const struct finding_of of = {"spins", .gain_ns = ns, .moment = &moment,
                                  .function = spinner->name};
    finding_say(findings, &of,
                "%.*s spins: %s %" PRId64
                " ran for %s and never waited, while others sent to it now and then",
                NAMED(findings, spinner->name), word(findings, TERM_task), spinner->goroutine,
                duration(ns).text);
    finding_explain(findings, "It ended at least %s waits to send within %s each.",
                    counted(spinner->count).text, duration(BLAME_OTHERS_NS).text);
    finding_advise(findings, "A select without a default case waits for values.");
}

/* Whether others wait for goroutines that wait for the condition variable themselves. */
static bool holds_others_up(const struct findings *findings, const struct condition *condition)
{
    if (condition->longest.goroutine == 1)
        return true;
    BLAME_EACH(row, &findings->waits->blame) {
        if (wait_of_holder(findings, row) && (trail_name)row->outside.key == condition->wait &&
            time_share(findings, blame_union_ns(&row->held)) >= MISSED_LATE)
            return true;
    }
    return false;
}

/*
 * A signal wakes one of several that wait for a condition variable, and the others time out. Where
 * several signals came meanwhile, or none waits for them, they may have had nothing to do.
 */
void finding_missed_signals(struct findings *findings)
{
    IDMAP_VALUES(const struct condition, condition, &findings->waits->conditions.map) {
        int64_t ns = blame_union_ns(&condition->late);
        if (condition->rounds < MISSED_ROUNDS ||
            (double)condition->missed < MISSED_SHARE * (double)condition->timed_out ||
            time_share(findings, ns) < MISSED_LATE || !holds_others_up(findings, condition))
            continue;
        const struct finding_of of = finding_saves("missed-signal", ns, &condition->longest,
                                                   condition->missing.function, condition->wait);
        finding_say(findings, &of,
                    "%s waits for %.*s at %.*s timed out after a signal for one of them",
                    counted(condition->missed).text, NAMED(findings, condition->wait),
                    NAMED(findings, condition->at));
        finding_explain(findings,
                        "%.*s ended another %s's wait for it meanwhile, %s times. These waited for "
                        "up to %s more, and others for them.",
                        NAMED(findings, condition->missing.place), word(findings, TERM_task),
                        counted(condition->rounds).text, duration(condition->longest.ns).text);
        finding_advise(findings, "Wake all that wait if the change is for all of them.");
    }
}

/* Woken, no work done, waiting again at the same place. */
void finding_futile_wakeups(struct findings *findings)
{
    const struct waits *waits = findings->waits;
    for (size_t i = 0; i < waits->place_count; i++) {
        const struct place *place = waits->all[i];
        if (place->kind != PLACE_CONDITION || place->futile < FUTILE_LEAST ||
            place->futile < place->woken / 2 ||
            (place->most_waiters < 2 && place->waits >= HANDOFF_TIMES))
            continue;
        int64_t ns = blame_union_ns(&place->futile_for), length = length_of(findings);
        const struct finding_of of = {"futile-wakeups", .gain_ns = ns < length ? ns : length,
                                      .moment = &place->longest, .function = place->waiter,
                                      .object = place->lock};
        finding_say(findings, &of, "At %.*s, %s of %s wake-ups had no effect",
                    NAMED(findings, place->name), counted(place->futile).text,
                    counted(place->woken).text);
        finding_explain(findings,
                        "Each time, the %s woke no other and waited there again within %s. At most "
                        "%s waited there at the same time.",
                        word(findings, TERM_task), place->most_waiters > 1 ? "30 us" : "10 us",
                        counted(place->most_waiters).text);
        finding_advise(findings, "Wake one instead of all, or only when the condition holds.");
    }
}
