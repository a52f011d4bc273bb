/* Findings: queues, hand-offs, divided work, polling and waits for what is outside the program. */
#include <inttypes.h>
#include <stdio.h>

#include "analyze/findings.h"
#include "analyze/waits.h"

/* Thresholds; shares are of the time. */
#define POLL_TIMES         200              /* returns to a sleep */
#define POLL_MOST          INT64_C(5000000) /* a sleep, on average */
#define POLL_EXEC          50000 /* ran in between, on average; beside others it is 20 to 50 us */
#define POLL_SHARE         0.5
#define OUTSIDE_SHARE      0.3
#define OUTSIDE_LEAST      INT64_C(50000000)
#define CALLS_LEAST        8 /* blocking calls at once, on average */
#define ANSWER_COUNT       20
#define ANSWER_LEAST       INT64_C(50000000)
#define ANSWER_TIMES       10 /* compared with the 95th percentile */
#define ANSWER_SHARE       0.05
#define PEER_SHARE         0.5
#define SERVER_SHARE       0.4 /* the same of a C program, which is known to have connected to it */
#define QUEUE_SHARE        0.3
#define QUEUE_WAITS        3
#define ONCE_SHARE         0.2
#define ONCE_LEAST         INT64_C(100000000)
#define BALANCE_LEAST      INT64_C(50000000)
#define BALANCE_SHARE      0.25
#define WATCH_TIMES        20                /* short sleeps until a worker has ended */
#define WATCH_MOST         INT64_C(20000000) /* a sleep, on average */
#define BALANCE_TIMES      2                 /* the busiest compared with the mean of the others */
#define ALONE_LEAST        INT64_C(50000000)
#define ALONE_SHARE        0.3
#define ALONE_REST         0.1
#define ALONE_PARALLEL     1.3 /* goroutines with work, on average during the rest */
#define EACH_SHARE         0.5
#define EACH_LEAST         4
#define EACH_ALIVE         2 /* the next one is created while the one before ends */
#define ALIKE_SHARE        0.8
#define BUSY_SHARE         0.5
#define BUSY_MOST          0.8
#define ALL_CPUS           0.85
#define HELPER_SHARE       0.1 /* of what the main goroutine runs */
#define UNEVEN_LEAST       0.1 /* of the time in which others wait for the busiest one */
#define OUTLIVES           3   /* waits, on average, of those that filled a queue */
#define ASKED_SHARE        0.25
#define SPIN_COUNT         5
#define SPIN_SHARE         0.5
#define SPIN_PAUSE         INT64_C(1000000) /* of running, per value */
#define POOL_WAITS         10
#define POOL_RARELY        4     /* the pool waits for work at most once in so many waits for it */
#define POOL_IDLE          0.2   /* of its time, waiting for work */
#define POOL_MORE          0.5   /* than its threads wait for results, on average */
#define PRODUCER_WAITS     0.6   /* of its time, for something else than work */
#define CONSUMER_WAITS     0.8   /* of their time, for work */
#define HANDOFF_MOST       20000 /* time per hand-off */
#define HANDOFF_RARE       50000 /* the same, if hardly anything is done in between */
#define HANDOFF_EXEC       20000 /* which is: running, per hand-off */
#define HANDOFF_PERIOD     60000 /* the usual waits of two that answer each other */
#define HANDOFF_ALIKE      0.9   /* of two that do so, as many waits */
#define YIELDS_LEAST       10000
#define YIELD_MOST         20000 /* running, per yield */
#define SCHED_YIELDS_LEAST 1000
#define UNSEEN_WAITS       50
#define UNSEEN_SHARE       0.2 /* of the time of its threads, but for that without a CPU */
#define HANDOFF_SHARE      0.3

static const struct wait_facts *facts_of(const struct findings *findings, trail_name wait)
{
    return wait_facts_of(&findings->analysis->names, wait);
}

static int64_t mean(int64_t sum, uint64_t count)
{
    return count > 0 ? sum / (int64_t)count : 0;
}

/*
 * Whether a condition variable serves as a barrier: those that wait for it end each other's waits,
 * several at a time.
 */
static bool is_own_barrier(const struct findings *findings, const struct blame_row *row)
{
    const struct wait_facts *facts = facts_of(findings, row->wait);
    bool condition =
        facts ? facts->kind == WIRE_WAIT_CONDITION : row->wait == findings->waits->condition;
    return condition && row->together * 4 >= row->waits &&
           share_of(row->alike_ns, row->direct_ns) >= ALIKE_SHARE;
}

/* Whether the wait is for each of several goroutines. */
static bool waits_for_all(const struct findings *findings, const struct blame_row *row)
{
    const struct wait_facts *facts = facts_of(findings, row->wait);
    if (is_own_barrier(findings, row))
        return true;
    if (!facts)
        return !row->lock && !row->once && text_is(text_of(findings, row->wait), "sync");
    return facts->kind == WIRE_WAIT_BARRIER || facts->kind == WIRE_WAIT_JOIN ||
           facts->kind == WIRE_WAIT_OMP_BARRIER;
}

/* MARK: Sleeps and the world outside */

/* The time, but for that in which those that wait had no CPU. */
static int64_t time_but(const struct findings *findings, int64_t ready_ns)
{
    int64_t length = length_of(findings);
    return ready_ns < length / 2 ? length - ready_ns : length / 2;
}

/* Sleeps for short, looks, and sleeps again. */
void finding_polling(struct findings *findings)
{
    const struct outside *outside = &findings->waits->outside;
    for (size_t i = 0; i < outside->count; i++) {
        const struct outside_row *row = &outside->rows[i];
        const trail_histogram *spread = &row->spread;
        if (row->kind != WIRE_WAIT_SLEEP || row->returns < POLL_TIMES ||
            mean(spread->sum_ns, spread->count) > POLL_MOST ||
            mean(row->exec_ns, row->returns) > POLL_EXEC || row->woke * 4 > row->returns ||
            share_of(blame_union_ns(&row->at_least_one),
                     time_but(findings, ns_between(row->exec_ns, row->between_ns))) < POLL_SHARE)
            continue;
        const struct finding_of of = {"polling", .gain_ns = mean(spread->sum_ns, spread->count),
                                      .moment = &row->longest, .function = row->function};
        trail_string place = text_of(findings, row->place);
        const struct waits *waits = findings->waits;
        bool timer = row->wait == waits->receive || row->wait == waits->select;
        finding_say(findings, &of, "%.*s polls: it %s %" PRIu64 " times for %s on average",
                    SHOWN(place), timer ? "waited for a timer" : "slept", spread->count,
                    duration(mean(spread->sum_ns, spread->count)).text);
        finding_explain(
            findings, "It ran for %s in between. What it looks for is noticed up to %s late.",
            duration(mean(row->exec_ns, row->returns)).text, duration(spread->max_ns).text);
        finding_advise(findings, "Wait for it with a %s.",
                       waits->is_go ? "channel or condition variable"
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

/*
 * Whether those that wait there for the condition variable end the other waits as well, which they do
 * when they release the mutex.
 */
static bool ends_itself(const struct findings *findings, const struct place *place)
{
    const struct blame *blame = &findings->waits->blame;
    int64_t alike = 0, all = 0;
    for (size_t i = 0; place && i < blame->count; i++) {
        if (blame->rows[i].wait != place->lock)
            continue;
        ns_add(&alike, blame->rows[i].alike_ns);
        ns_add(&all, blame->rows[i].direct_ns);
    }
    return all > 0 && share_of(alike, all) >= ALIKE_SHARE;
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
            if (wait->timed_out < POLL_TIMES ||
                mean(spread->sum_ns, spread->count) > 2 * POLL_MOST ||
                share_of(spread->sum_ns, time_but(findings, group->ready.sum_ns)) < POLL_SHARE)
                continue;
            const struct place *place = condition_place(findings, wait);
            uint64_t part = ends_itself(findings, place) ? 4 : 2;
            if (wait->timed_out * part < spread->count)
                continue;
            const struct finding_of of = {
                "polling", .gain_ns = spread->sum_ns / (int64_t)spread->count,
                .moment = &wait->longest, .function = group->name, .object = wait->reason};
            trail_string name = text_of(findings, place ? place->name : group->name);
            trail_string reason = text_of(findings, place ? place->lock : wait->reason);
            finding_say(findings, &of,
                        "%.*s polls: %" PRIu64 " of %" PRIu64
                        " waits (%.*s) timed out, after %s on average",
                        SHOWN(name), wait->timed_out, spread->count, SHOWN(reason),
                        duration(mean(spread->sum_ns, spread->count)).text);
            finding_advise(findings, "Wake it when there is something to do, and wait without a "
                                     "time limit or with a longer one.");
        }
    }
}

/*
 * Whether the CPUs were in use, or would have been but for other programs: nothing is gained if those
 * that have work have more.
 */
static bool wants_all_cpus(const struct findings *findings)
{
    const trail_activity *sums = &findings->activity->sums;
    int64_t work = sums->running_ns;
    ns_add(&work, sums->runnable_ns);
    return sums->procs > 1 && share_of(work, length_of(findings)) > ALL_CPUS * (double)sums->procs;
}

/* A child process that is recorded, too. What it waits for itself comes first. */
static void say_child(struct findings *findings, const struct outside_row *row, int64_t ns)
{
    const struct finding_of of =
        finding_saves("outside", ns, &row->longest, row->function, row->wait);
    trail_string place = text_of(findings, row->place), start = text_of(findings, row->peer.start);
    if (wants_all_cpus(findings))
        return;
    finding_say(findings, &of, "%.*s waited for child processes for %.0f %% of the time",
                SHOWN(place), 100 * share_of(ns, length_of(findings)));
    finding_explain(
        findings, "%" PRIu64 " wait%s, %s in all, the longest %s, which %.*s ended by its exit.",
        row->spread.count, plural_s(row->spread.count), duration(row->spread.sum_ns).text,
        duration(row->longest.ns).text, SHOWN(start));
    finding_last(findings)->weight /= 4;
}

/* From which share of the time on it is reported: lower where programs hardly ever wait on purpose. */
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
            share_of(ns, length_of(findings)) < outside_least[row->kind])
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
                    100 * share_of(ns, length_of(findings)));
        finding_explain(findings, "%" PRIu64 " wait%s, %s in all, the longest %s.",
                        row->spread.count, plural_s(row->spread.count),
                        duration(row->spread.sum_ns).text, duration(row->longest.ns).text);
    }
}

/* SQLite waits until another connection releases its lock of a database. */
void finding_database(struct findings *findings)
{
    const struct outside *outside = &findings->waits->outside;
    for (size_t i = 0; i < outside->count; i++) {
        const struct outside_row *row = &outside->rows[i];
        int64_t ns = blame_union_ns(&row->at_least_one);
        if (!row->in_sqlite || ns < OUTSIDE_LEAST ||
            share_of(ns, length_of(findings)) < OUTSIDE_SHARE)
            continue;
        const struct finding_of of = finding_saves("database", ns, &row->longest, row->function, 0);
        trail_string place = text_of(findings, row->place);
        finding_say(findings, &of,
                    "%.*s waited for a locked SQLite database for %.0f %% of the time",
                    SHOWN(place), 100 * share_of(ns, length_of(findings)));
        finding_explain(findings,
                        "SQLite slept %" PRIu64 " time%s in its busy handler, %s in all, the "
                        "longest %s, while another connection held a lock.",
                        row->spread.count, plural_s(row->spread.count),
                        duration(row->spread.sum_ns).text, duration(row->longest.ns).text);
        finding_advise(findings, "Keep transactions that write short, without waits in them.");
    }
}

/* Whether that was most of the row's longest wait. */
static bool took_most(const struct outside_row *row, int64_t ns)
{
    return row->peer.start != 0 && ns >= row->longest.ns / 2;
}

/* Explains what ended the longest wait of the row, and what that did meanwhile. */
static void explain_peer(struct findings *findings, const struct outside_row *row)
{
    const struct outside_peer *peer = &row->peer;
    trail_string name = text_of(findings, peer->start), wait = text_of(findings, peer->wait),
                 at = text_of(findings, peer->place);
    if (took_most(row, peer->ns)) {
        finding_explain(findings,
                        "%.*s, which ended it, waited itself for %s of that (%.*s at %.*s).",
                        SHOWN(name), duration(peer->ns).text, SHOWN(wait), SHOWN(at));
    } else if (took_most(row, peer->ran_ns)) {
        finding_explain(findings, "%.*s, which ended it, ran for %s of that.", SHOWN(name),
                        duration(peer->ran_ns).text);
    } else if (peer->start != 0) {
        finding_explain(findings, "%.*s ended it.", SHOWN(name));
        finding_advise(findings, "See what that did then.");
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

/* One wait of many took far longer than nearly all others at the same place. */
void finding_slow_answer(struct findings *findings)
{
    const struct outside *outside = &findings->waits->outside;
    for (size_t i = 0; i < outside->count; i++) {
        const struct outside_row *row = &outside->rows[i];
        const trail_histogram *spread = &row->spread;
        int64_t most = row->longest.ns, usual = trail_histogram_quantile(spread, 0.95);
        if (row->deadline || spread->count < ANSWER_COUNT || most < ANSWER_LEAST ||
            most / ANSWER_TIMES < usual || share_of(most, length_of(findings)) < ANSWER_SHARE ||
            !is_for_answer(findings, row))
            continue;
        const struct finding_of of = finding_saves("slow-answer", ns_between(usual, most),
                                                   &row->longest, row->function, row->wait);
        trail_string place = text_of(findings, row->place), wait = text_of(findings, row->wait);
        finding_say(findings, &of,
                    "One wait of %.*s (%.*s) took %s, 95 %% of the %" PRIu64 " at most about %s",
                    SHOWN(place), SHOWN(wait), duration(most).text, spread->count,
                    duration(usual).text);
        explain_peer(findings, row);
    }
}

/*
 * Whether the main goroutine waits, or others wait for all goroutines with this start function to
 * end, for at least the share of the time. Looks at all rows: to be asked last.
 */
static bool is_needed(const struct findings *findings, const trail_longest *longest,
                      trail_name start, double share)
{
    const struct blame *blame = &findings->waits->blame;
    if (longest->goroutine == 1)
        return true;
    for (size_t i = 0; i < blame->count; i++) {
        const struct blame_row *row = &blame->rows[i];
        if (row->start == start && waits_for_all(findings, row) &&
            share_of(blame_union_ns(&row->held), length_of(findings)) >= share)
            return true;
    }
    return false;
}

/* Whether what answers is recorded. */
static bool is_answered(const struct outside_row *row)
{
    return row->answerer.ns > 0 && row->answerer.key > 0 &&
           row->answered_ns > row->spread.sum_ns / 2;
}

/*
 * Explains what answers, if it is recorded, and whose own reasons come first; else, what may help.
 */
static void explain_answerer(struct findings *findings, const struct outside_row *row)
{
    trail_string by = text_of(findings, (trail_name)row->answerer.key);
    if (is_answered(row)) {
        finding_explain(findings, "%.*s%s answers late.", SHOWN(by),
                        row->of_server ? "" : ", in the same program,");
        finding_last(findings)->weight /= 2;
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
    const struct waits *waits = findings->waits;
    return name < waits->by_name_capacity && waits->by_name[name]
               ? waits->by_name[name]->row.ready.sum_ns
               : 0;
}

/*
 * The share of the time in which answers are waited for. Of a C program, without that in which the
 * one that waits, or a recorded server, had no CPU.
 */
static double waits_for_peer(const struct findings *findings, const struct outside_row *row)
{
    int64_t ns = blame_union_ns(&row->at_least_one);
    if (!row->of_server)
        return share_of(ns, length_of(findings));
    return share_of(ns_between(ready_ns(findings, server_of(row)), ns),
                    time_but(findings, ready_ns(findings, row->start)));
}

/* What the program, or a region, needs waits most of the time for answers from the network. */
void finding_slow_peer(struct findings *findings)
{
    const struct outside *outside = &findings->waits->outside;
    int64_t length = length_of(findings);
    for (size_t i = 0; i < outside->count; i++) {
        const struct outside_row *row = &outside->rows[i];
        int64_t ns = blame_union_ns(&row->at_least_one);
        double least = row->of_server ? SERVER_SHARE : PEER_SHARE;
        /* One wait that took most of it is a slow answer. */
        if (row->start == 0 || row->deadline || ns < OUTSIDE_LEAST ||
            waits_for_peer(findings, row) < least || row->longest.ns > ns / 2 ||
            (is_answered(row) && wants_all_cpus(findings)) ||
            !(row->in_region || is_needed(findings, &row->longest, row->start, least) ||
              (server_of(row) && is_needed(findings, &row->longest, server_of(row), least))))
            continue;
        const struct finding_of of =
            finding_saves("slow-peer", ns, &row->longest, row->function, row->wait);
        trail_string place = text_of(findings, row->place);
        finding_say(findings, &of,
                    "%.*s waited for answers from the network for %.0f %% of the time",
                    SHOWN(place), 100 * share_of(ns, length));
        finding_explain(findings, "%" PRIu64 " wait%s, %s in all, the longest %s.",
                        row->spread.count, plural_s(row->spread.count),
                        duration(row->spread.sum_ns).text, duration(row->longest.ns).text);
        explain_answerer(findings, row);
        /* A lock that is held meanwhile makes others wait for the peer, too. */
        if (finding_names(findings, "lock-serialises", row->function))
            finding_last(findings)->weight /= 2;
    }
}

/* What is needed waits again and again until a context's time is over. */
void finding_deadlines(struct findings *findings)
{
    const struct outside *outside = &findings->waits->outside;
    for (size_t i = 0; i < outside->count; i++) {
        const struct outside_row *row = &outside->rows[i];
        int64_t ns = blame_union_ns(&row->at_least_one);
        /* One that most of it is may be the time that the program is to run for. */
        if (!row->deadline || row->spread.count < QUEUE_WAITS || ns < OUTSIDE_LEAST ||
            share_of(ns, length_of(findings)) < OUTSIDE_SHARE || row->longest.ns > ns / 2 ||
            !(row->in_region || is_needed(findings, &row->longest, row->start, OUTSIDE_SHARE)))
            continue;
        const struct finding_of of =
            finding_saves("time-out", ns, &row->longest, row->function, row->wait);
        trail_string place = text_of(findings, row->place), wait = text_of(findings, row->wait);
        finding_say(findings, &of,
                    "%.*s waited until the time-out of a context for %.0f %% of the time",
                    SHOWN(place), 100 * share_of(ns, length_of(findings)));
        finding_explain(findings,
                        "%" PRIu64 " wait%s (%.*s) ended so, %s in all, the longest %s: nothing "
                        "else that would have ended them came in time.",
                        row->spread.count, plural_s(row->spread.count), SHOWN(wait),
                        duration(row->spread.sum_ns).text, duration(row->longest.ns).text);
        finding_advise(findings, "Find out why no answer came, or use a shorter time-out.");
    }
}

/* Goroutines of Go wait in system calls, each of which needs a thread of its own. */
void finding_blocking_calls(struct findings *findings)
{
    const struct outside *outside = &findings->waits->outside;
    int64_t length = length_of(findings);
    for (size_t i = 0; findings->waits->is_go && i < outside->count; i++) {
        const struct outside_row *row = &outside->rows[i];
        int64_t ns = blame_union_ns(&row->at_least_one);
        bool calls = row->kind == WIRE_WAIT_KERNEL || row->kind == WIRE_WAIT_FILE ||
                     row->kind == WIRE_WAIT_CHILD;
        double at_once = share_of(row->spread.sum_ns, ns);
        if (!calls || share_of(ns, length) < OUTSIDE_SHARE || at_once < CALLS_LEAST)
            continue;
        const struct finding_of of = {"blocking-calls", .gain_ns = ns, .moment = &row->longest,
                                      .function = row->function, .object = row->wait};
        trail_string place = text_of(findings, row->place), wait = text_of(findings, row->wait);
        finding_say(findings, &of,
                    "Blocking calls use up threads: %.1f %s on average waited in one at %.*s "
                    "(%.*s) during %.0f %% of the time",
                    at_once, word(findings, TERM_tasks), SHOWN(place), SHOWN(wait),
                    100 * share_of(ns, length));
        finding_explain(
            findings,
            "Each needs a thread meanwhile. %" PRIu64 " calls, %s in all, the longest %s.",
            row->spread.count, duration(row->spread.sum_ns).text, duration(row->longest.ns).text);
        finding_advise(findings, "Let fewer of them call it at the same time.");
    }
}

/* MARK: Queues */

/* Whether the wait is for room in a queue. */
static bool is_for_room(const struct findings *findings, const struct blame_row *row)
{
    const struct wait_facts *facts = facts_of(findings, row->wait);
    return facts ? facts->kind == WIRE_WAIT_WRITE || facts->kind == WIRE_WAIT_SEND
                 : text_is(text_of(findings, row->wait), "chan send");
}

/* Whether what takes from a queue mostly waits for room itself: then it is that queue that is full. */
static bool passes_on(const struct findings *findings, const struct blame_row *row)
{
    const struct blame_row as = {.wait = (trail_name)row->outside.key};
    return row->outside.ns > 0 && row->outside.key > 0 && is_for_room(findings, &as) &&
           share_of(row->outside_ns, row->own_ns) >= BUSY_SHARE;
}

/* A queue is full, since the goroutine that takes from it is slow. */
void finding_queue(struct findings *findings)
{
    const struct blame *blame = &findings->waits->blame;
    for (size_t i = 0; i < blame->count; i++) {
        const struct blame_row *row = &blame->rows[i];
        int64_t ns = blame_union_ns(&row->held);
        if (row->function == 0 || row->waits < QUEUE_WAITS || !is_for_room(findings, row) ||
            share_of(row->alike_ns, row->direct_ns) >= ALIKE_SHARE || passes_on(findings, row) ||
            share_of(ns, length_of(findings)) < QUEUE_SHARE ||
            finding_names(findings, "pool-too-small", row->start))
            continue;
        const struct finding_of of =
            finding_saves("queue", ns, &row->longest, row->function, row->wait);
        trail_string place = text_of(findings, row->place), wait = text_of(findings, row->wait),
                     at = text_of(findings, row->at);
        finding_say(findings, &of, "%.*s takes from a queue more slowly than %.*s fills it",
                    SHOWN(place), SHOWN(at));
        finding_explain(findings,
                        "The latter waited for room (%.*s) for %.0f %% of the time: %" PRIu64
                        " waits, %s in all, the longest %s.",
                        SHOWN(wait), 100 * share_of(ns, length_of(findings)), row->waits,
                        duration(row->ns).text, duration(row->longest.ns).text);
        finding_advise(findings, "Make it faster, or let several take from the queue.");
    }
}

/* Whether many waits of this kind timed out: what ends the others need not be a signal. */
static bool times_out(const struct findings *findings, const struct blame_row *row)
{
    const struct waits *waits = findings->waits;
    const struct wait_group *group =
        row->waiter < waits->by_name_capacity ? waits->by_name[row->waiter] : NULL;
    for (size_t i = 0; group && i < group->row.wait_count; i++)
        if (group->waits[i].reason == wait_kind_name(&findings->analysis->names, row->wait))
            return group->waits[i].timed_out * 4 >= group->waits[i].spread.count;
    return false;
}

/*
 * Whether the waits are such as are for permits: for a semaphore, for a condition variable that each
 * time ended the wait of one, or for room in a channel.
 */
static bool is_for_permit(const struct findings *findings, const struct blame_row *row)
{
    const struct wait_facts *facts = facts_of(findings, row->wait);
    bool one_each = row->together * 4 < row->waits && !times_out(findings, row);
    return facts ? facts->kind == WIRE_WAIT_SEMAPHORE || facts->kind == WIRE_WAIT_SEND ||
                       (facts->kind == WIRE_WAIT_CONDITION && one_each)
                 : text_is(text_of(findings, row->wait), "chan send") ||
                       (row->wait == findings->waits->condition && one_each);
}

/* Goroutines of one kind wait for permits that others of them have. */
void finding_permits(struct findings *findings)
{
    static const trail_string channel = {"a channel used as a semaphore", 29},
                              condition = {"a sync.Cond used as a semaphore", 31};
    const struct blame *blame = &findings->waits->blame;
    for (size_t i = 0; i < blame->count; i++) {
        const struct blame_row *row = &blame->rows[i];
        int64_t ns = blame_union_ns(&row->held);
        if (!is_for_permit(findings, row) || row->waits < QUEUE_WAITS || row->function == 0 ||
            share_of(row->alike_ns, row->direct_ns) < ALIKE_SHARE ||
            share_of(ns, length_of(findings)) < QUEUE_SHARE)
            continue;
        const struct finding_of of =
            finding_saves("permits", ns, &row->longest, row->function, row->wait);
        trail_string place = text_of(findings, row->place), wait = text_of(findings, row->wait),
                     at = text_of(findings, row->at);
        wait = facts_of(findings, row->wait)             ? wait
               : row->wait == findings->waits->condition ? condition
                                                         : channel;
        finding_say(findings, &of, "Too few permits in %.*s", SHOWN(wait));
        finding_explain(
            findings,
            "The %s that use it waited for each other at %.*s during %.0f %% of the time, %" PRIu64
            " times, %s in all, the longest %s, until %.*s gave one back.",
            word(findings, TERM_tasks), SHOWN(at), 100 * share_of(ns, length_of(findings)),
            row->waits, duration(row->ns).text, duration(row->longest.ns).text, SHOWN(place));
        finding_advise(findings, "Allow more, or give each back sooner.");
    }
}

/* Whether these are waits in which work is handed over. */
static bool is_for_work(const struct findings *findings, const struct blame_row *row)
{
    const struct wait_facts *facts = facts_of(findings, row->wait);
    trail_string text = text_of(findings, row->wait);
    return facts ? facts->kind == WIRE_WAIT_CONDITION || facts->kind == WIRE_WAIT_SEMAPHORE ||
                       facts->kind == WIRE_WAIT_READ || facts->kind == WIRE_WAIT_FUTURE ||
                       facts->kind == WIRE_WAIT_RECEIVE
                 : text_is(text, "chan receive") || text_is(text, "sync.(*Cond).Wait");
}

/* Whether hardly any CPU is left for what would be divided. */
static bool uses_all_cpus(const struct findings *findings)
{
    const trail_activity *sums = &findings->activity->sums;
    return share_of(sums->running_ns, length_of(findings)) > ALL_CPUS * (double)sums->procs &&
           sums->procs > 1;
}

/*
 * Whether the main goroutine, which has had work for that time, only has one helper there: making the
 * helper wait less would gain nothing.
 */
static bool is_for_helper(const struct findings *findings, const struct blame_row *row,
                          int64_t busy_ns)
{
    const struct waits *waits = findings->waits;
    const struct wait_group *group =
        row->waiter < waits->by_name_capacity ? waits->by_name[row->waiter] : NULL;
    return row->goroutine.key == 1 && group && group->workers == 1 &&
           share_of(group->exec_ns, busy_ns) < HELPER_SHARE;
}

/* Others wait for what one goroutine makes, which has work nearly all the time. */
void finding_bottleneck(struct findings *findings)
{
    const struct blame *blame = &findings->waits->blame;
    int64_t length = length_of(findings);
    for (size_t i = 0; i < blame->count; i++) {
        const struct blame_row *row = &blame->rows[i];
        int64_t ns = blame_union_ns(&row->held);
        if (row->function == 0 || row->waits < QUEUE_WAITS || !is_for_work(findings, row) ||
            share_of(row->goroutine.ns, row->ns) < ALIKE_SHARE || share_of(ns, length) < BUSY_SHARE)
            continue;
        int64_t busy = 1000 * (int64_t)(uintptr_t)idmap_find(&findings->waits->busy,
                                                             (uint64_t)row->goroutine.key);
        if (share_of(busy, length) < BUSY_MOST || uses_all_cpus(findings) ||
            is_own_barrier(findings, row) || is_for_helper(findings, row, busy))
            continue;
        const struct finding_of of =
            finding_saves("bottleneck", ns, &row->longest, row->start, row->wait);
        trail_string name = text_of(findings, row->start), wait = text_of(findings, row->wait),
                     at = text_of(findings, row->at), by = text_of(findings, row->place);
        finding_say(findings, &of,
                    "%.*s is the bottleneck: %s %" PRId64 " had work for %.0f %% of the time",
                    SHOWN(name), word(findings, TERM_task), row->goroutine.key,
                    100 * share_of(busy, length));
        finding_explain(findings,
                        "Others waited for it at %.*s (%.*s) during %.0f %%: %" PRIu64
                        " waits, %s in all, the longest %s, ended by %.*s.",
                        SHOWN(at), SHOWN(wait), 100 * share_of(ns, length), row->waits,
                        duration(row->ns).text, duration(row->longest.ns).text, SHOWN(by));
        finding_advise(findings, "Make it faster, or divide its work.");
    }
}

/*
 * How long goroutines of a group did what: in all, but for the time that they were ready, which
 * other programs make longer; waiting for work; waiting, but not for work, input or locks.
 */
struct group_time {
    int64_t all, work, others;
    uint64_t work_waits;
    const trail_wait *most; /* of the others, the longest in all */
};

static struct group_time time_of(const struct findings *findings, const struct wait_group *group)
{
    struct group_time time = {.all = group->exec_ns};
    for (size_t i = 0; i < group->row.wait_count; i++) {
        const trail_wait *wait = &group->waits[i];
        const struct wait_facts *facts = facts_of(findings, wait->reason);
        unsigned traits = facts ? wire_wait_kinds[facts->kind].traits : 0;
        ns_add(&time.all, wait->spread.sum_ns);
        if (waits_hands_over(findings->waits, wait->reason)) {
            ns_add(&time.work, wait->spread.sum_ns);
            time.work_waits += wait->spread.count;
        } else if (!(traits & (WIRE_WAIT_LOCK | WIRE_WAIT_IDLE)) &&
                   !text_is(text_of(findings, wait->reason), "sync") &&
                   !text_is(text_of(findings, wait->reason), "network")) {
            ns_add(&time.others, wait->spread.sum_ns);
            time.most =
                time.most && time.most->spread.sum_ns >= wait->spread.sum_ns ? time.most : wait;
        }
    }
    return time;
}

/* How many waits for work or results of goroutines with this start function others ended. */
static uint64_t waits_ended(const struct blame *blame, trail_name waiter)
{
    uint64_t count = 0;
    for (size_t i = 0; i < blame->pair_count; i++)
        count += blame->pairs[i].waiter == waiter ? blame->pairs[i].waits : 0;
    return count;
}

/*
 * Whether those that end the waits of `pair` also took work from those that wait. What a client gets
 * from others is no such work.
 */
static bool takes_work(const struct blame *blame, const struct blame_pair *pair)
{
    uint64_t key = (uint64_t)pair->waker << 32 | pair->waiter;
    uintptr_t number = (uintptr_t)idmap_find(&blame->pair_numbers, key);
    if (pair->waiter == pair->waker || number == 0)
        return false;
    uint64_t taken = blame->pairs[number - 1].waits;
    return taken * POOL_RARELY <= pair->waits &&
           (double)taken >= ASKED_SHARE * (double)waits_ended(blame, pair->waker);
}

/*
 * Whether those that end the waits of `pair` end waits for room in a channel of work as well as for
 * results, of Go's goroutines: what waits for both has asked for what it gets.
 */
static bool is_asked(const struct findings *findings, const struct blame_pair *pair)
{
    const struct blame *blame = &findings->waits->blame;
    bool room = false, results = false;
    for (size_t i = 0; findings->waits->is_go && i < blame->count; i++) {
        const struct blame_row *row = &blame->rows[i];
        if (row->start != pair->waker || row->waiter != pair->waiter ||
            pair->waiter == pair->waker || row->waits < POOL_WAITS)
            continue;
        room |= is_for_room(findings, row);
        results |= !is_for_room(findings, row) && is_for_work(findings, row);
    }
    return room && results;
}

/*
 * Others wait for what a pool makes, whose goroutines always have work and use no CPU for it. That
 * they waited for work from these others a few times shows that this is where it comes from: one that
 * makes something now and then, and makes others work, is no pool. What waits for a result has asked
 * for it, and there must be more of these than the pool can work for at the same time.
 */
void finding_pool_too_small(struct findings *findings)
{
    const struct waits *waits = findings->waits;
    const struct blame *blame = &waits->blame;
    int64_t length = length_of(findings);
    for (size_t i = 0; i < blame->pair_count; i++) {
        const struct blame_pair *pair = &blame->pairs[i];
        const struct wait_group *pool = waits->by_name[pair->waker];
        int64_t ns = blame_union_ns(&pair->waiting);
        /* Goroutines of a connection wait for the next request. */
        if (pair->waits < POOL_WAITS || share_of(ns, length) < BUSY_SHARE ||
            (waits->is_go && text_begins(text_of(findings, pair->waiter), "net/http.")) ||
            !(waits_for_result(waits, pair->wait)
                  ? share_of(pair->ns, ns) >= (double)pool->workers + POOL_MORE
                  : waits_hands_over(waits, pair->wait) &&
                        (takes_work(blame, pair) || is_asked(findings, pair))))
            continue;
        struct group_time time = time_of(findings, pool);
        if (!time.most || share_of(time.work, time.all) > POOL_IDLE ||
            share_of(time.others, time.all) < BUSY_SHARE)
            continue;
        const struct finding_of of =
            finding_saves("pool-too-small", ns, &pair->longest, pair->waker, pair->wait);
        trail_string name = text_of(findings, pair->waker), wait = text_of(findings, pair->wait),
                     at = text_of(findings, pair->at), why = text_of(findings, time.most->reason);
        finding_say(findings, &of,
                    "%.*s is the bottleneck: its pool of %" PRIu64 " %s is too small", SHOWN(name),
                    pool->workers, word(findings, pool->workers == 1 ? TERM_task : TERM_tasks));
        finding_explain(findings,
                        "The pool hardly waited for work (%s of %s), but %.0f %% of the time for "
                        "other things (mostly %.*s). Others waited for it at %.*s (%.*s) during "
                        "%.0f %% of the time: %" PRIu64 " waits, %s in all, the longest %s.",
                        duration(time.work).text, duration(time.all).text,
                        100 * share_of(time.others, time.all), SHOWN(why), SHOWN(at), SHOWN(wait),
                        100 * share_of(ns, length), pair->waits, duration(pair->ns).text,
                        duration(pair->longest.ns).text);
        finding_advise(findings, "Let more %s take from the queue, or make it faster.",
                       word(findings, TERM_tasks));
    }
}

/* For how long others waited for the goroutines of a group to exit. */
static int64_t exit_awaited_ns(const struct findings *findings, trail_name name)
{
    const struct blame *blame = &findings->waits->blame;
    int64_t most = 0;
    for (size_t i = 0; i < blame->count; i++) {
        const struct blame_row *row = &blame->rows[i];
        const struct wait_facts *facts = facts_of(findings, row->wait);
        int64_t ns = blame_union_ns(&row->held);
        if (facts && facts->kind == WIRE_WAIT_JOIN && row->start == name && ns > most)
            most = ns;
    }
    return most;
}

/* For how long goroutines with the start function `waiter` waited for those of `name` to exit. */
static int64_t exit_awaited_by_ns(const struct findings *findings, trail_name waiter,
                                  trail_name name)
{
    const struct blame *blame = &findings->waits->blame;
    int64_t sum = 0;
    for (size_t i = 0; i < blame->count; i++) {
        const struct blame_row *row = &blame->rows[i];
        const struct wait_facts *facts = facts_of(findings, row->wait);
        if (facts && facts->kind == WIRE_WAIT_JOIN && row->start == name && row->waiter == waiter)
            ns_add(&sum, blame_union_ns(&row->held));
    }
    return sum;
}

/* Whether those that end the waits of `pair` still had work when those that wait had ended, or had
 * nothing to do any more but to wait for their exit. */
static bool outlives(const struct findings *findings, const struct blame_pair *pair)
{
    const struct waits *waits = findings->waits;
    int64_t after = ns_between(waits->by_name[pair->waiter]->last_end_ns,
                               waits->by_name[pair->waker]->last_end_ns);
    int64_t joined = exit_awaited_by_ns(findings, pair->waiter, pair->waker);
    return (joined > after ? joined : after) / OUTLIVES >= mean(pair->ns, pair->waits);
}

/*
 * A queue is full, and what takes from it waits for something else most of the time, but hardly ever
 * for work. It still had some when those that fill the queue had ended: else it could be the one
 * that makes work.
 */
void finding_slow_consumer(struct findings *findings)
{
    const struct waits *waits = findings->waits;
    const struct blame *blame = &waits->blame;
    int64_t length = length_of(findings);
    for (size_t i = 0; i < blame->pair_count; i++) {
        const struct blame_pair *pair = &blame->pairs[i];
        const struct wait_facts *facts = facts_of(findings, pair->wait);
        int64_t ns = blame_union_ns(&pair->waiting);
        if (pair->waits < POOL_WAITS || pair->waiter == pair->waker ||
            share_of(ns, length) < BUSY_SHARE || !facts ||
            !(facts->kind == WIRE_WAIT_CONDITION || facts->kind == WIRE_WAIT_SEMAPHORE) ||
            !outlives(findings, pair) ||
            exit_awaited_by_ns(findings, pair->waker, pair->waiter) > 0 ||
            finding_names(findings, "futile-wakeups", pair->waiter) ||
            finding_names(findings, "pool-too-small", pair->waker))
            continue;
        struct group_time time = time_of(findings, waits->by_name[pair->waker]);
        if (!time.most || share_of(time.work, time.all) > POOL_IDLE ||
            share_of(time.others, time.all) < BUSY_SHARE)
            continue;
        const struct finding_of of =
            finding_saves("queue", ns, &pair->longest, pair->waker, pair->wait);
        trail_string name = text_of(findings, pair->waker), wait = text_of(findings, pair->wait),
                     at = text_of(findings, pair->at), why = text_of(findings, time.most->reason);
        finding_say(findings, &of, "%.*s takes from a queue more slowly than %.*s fills it",
                    SHOWN(name), SHOWN(at));
        finding_explain(findings,
                        "The latter waited for room (%.*s) for %.0f %% of the time: %" PRIu64
                        " waits, %s in all, the longest %s. Meanwhile the former waited itself "
                        "for %.0f %% of its time (mostly %.*s).",
                        SHOWN(wait), 100 * share_of(ns, length), pair->waits,
                        duration(pair->ns).text, duration(pair->longest.ns).text,
                        100 * share_of(time.others, time.all), SHOWN(why));
        finding_advise(findings, "Make it faster, or let several take from the queue.");
    }
}

/*
 * One goroutine makes the work of others, which wait for nearly all of the time, while it mostly
 * sleeps or waits for a file. A server also waits for work, but its end is not what others wait for.
 */
void finding_slow_producer(struct findings *findings)
{
    const struct waits *waits = findings->waits;
    const struct blame *blame = &waits->blame;
    int64_t length = length_of(findings);
    for (size_t i = 0; i < blame->pair_count; i++) {
        const struct blame_pair *pair = &blame->pairs[i];
        const struct wait_group *made_by = waits->by_name[pair->waker];
        const struct wait_group *made_for = waits->by_name[pair->waiter];
        if (pair->waits < POOL_WAITS || pair->waiter == pair->waker || made_by->workers != 1 ||
            made_by->row.created != 1 || !waits_hands_over(waits, pair->wait))
            continue;
        struct group_time makes = time_of(findings, made_by), takes = time_of(findings, made_for);
        int64_t ns = blame_union_ns(&pair->waiting);
        if (!makes.most || makes.work_waits > 0 || outlives(findings, pair) ||
            share_of(makes.others, makes.all) < PRODUCER_WAITS ||
            share_of(takes.work, takes.all) < CONSUMER_WAITS ||
            share_of(ns, length) < CONSUMER_WAITS ||
            (share_of(exit_awaited_ns(findings, pair->waker), length) < BUSY_SHARE &&
             share_of(exit_awaited_ns(findings, pair->waiter), length) < BUSY_SHARE))
            continue;
        int64_t gain = makes.others < length ? makes.others : length;
        const struct finding_of of =
            finding_saves("slow-producer", gain, &pair->longest, pair->waker, pair->wait);
        trail_string name = text_of(findings, pair->waker), wait = text_of(findings, pair->wait),
                     at = text_of(findings, pair->at), why = text_of(findings, makes.most->reason),
                     waiters = text_of(findings, pair->waiter);
        finding_say(findings, &of,
                    "%.*s is the bottleneck, a slow producer: it waited itself for %.0f %% of its "
                    "time (mostly %.*s)",
                    SHOWN(name), 100 * share_of(makes.others, makes.all), SHOWN(why));
        finding_explain(findings,
                        "Meanwhile, the %s of %.*s waited for work from it at %.*s (%.*s) for %.0f "
                        "%% of their time: %" PRIu64 " waits, %s in all, the longest %s.",
                        word(findings, TERM_tasks), SHOWN(waiters), SHOWN(at), SHOWN(wait),
                        100 * share_of(takes.work, takes.all), pair->waits, duration(pair->ns).text,
                        duration(pair->longest.ns).text);
        finding_advise(findings,
                       "Let it wait for several things at the same time, or let several "
                       "%s produce.",
                       word(findings, TERM_tasks));
    }
}

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
    for (size_t n = 0; n < group->row.wait_count; n++) {
        const trail_wait *wait = &group->waits[n];
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

/* The time, but for that in which the program had work and no CPU; roughly, if several had work. */
static int64_t time_with_cpus(const struct findings *findings)
{
    const trail_activity *sums = &findings->activity->sums;
    int64_t length = length_of(findings), ns = ns_between(sums->runnable_ns, length);
    if (ns < sums->running_ns)
        ns = sums->running_ns;
    return ns < length ? ns : length;
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

/* Explains where it waited for what is handed over, and where that comes from, if these are known. */
static void explain_handed(struct findings *findings, const struct handed *most, int64_t ns)
{
    const struct outside_row *row = handed_row(findings, most);
    const struct place *place = handed_place(findings, most);
    trail_name for_what = place        ? place->lock
                          : most->wait ? most->wait->reason
                                       : most->group->brief_for;
    trail_string reason = text_of(findings, for_what),
                 where = text_of(findings, row     ? row->place
                                           : place ? place->name
                                                   : 0),
                 from = text_of(findings, row ? row->peer.start : 0);
    char at[200] = "";
    if (row || place)
        (void)snprintf(at, sizeof at, " at %.*s", SHOWN(where));
    finding_explain(findings,
                    "It waited (%.*s%s) %" PRIu64
                    " times, once every %s, %s in all with locks and the time until it ran again.",
                    SHOWN(reason), at, most->count,
                    duration(mean(length_of(findings), most->count)).text, duration(ns).text);
    if (row && row->peer.start)
        finding_explain(findings, "%.*s hands it over.", SHOWN(from));
}

/* Goroutines hand over work so often that the switches take most of the time. */
void finding_handoffs(struct findings *findings)
{
    const struct waits *waits = findings->waits;
    struct handed most = {0};
    for (size_t i = 0; i < waits->count; i++) {
        struct handed handed = handed_to(findings, waits->items[i]);
        if (handed.count > most.count &&
            !finding_names(findings, "futile-wakeups", waits->items[i]->row.name))
            most = handed;
    }
    int64_t length = length_of(findings);
    if (most.count < HANDOFF_TIMES)
        return;
    bool brief = mean(most.group->exec_ns, most.count) <= HANDOFF_EXEC;
    int64_t ns = handed_ns(findings, most.group);
    if ((mean(time_with_cpus(findings), most.count) > (brief ? HANDOFF_RARE : HANDOFF_MOST) &&
         !answers_back(findings, &most)) ||
        share_of(ns, length) < HANDOFF_SHARE)
        return;
    const struct finding_of of = finding_saves(
        "hand-offs", ns < length ? ns : length, most.wait ? &most.wait->longest : NULL,
        most.group->row.name, most.wait ? most.wait->reason : most.group->brief_for);
    trail_string name = text_of(findings, of.function);
    finding_say(findings, &of, "%.*s is handed work in pieces that are too small", SHOWN(name));
    explain_handed(findings, &most, ns);
    finding_advise(findings, "Hand over several pieces at a time.");
}

/* MARK: Once */

/* The place where the goroutine slept longest, or the only one where any did; 0: unknown. */
static trail_name sleeps_at(const struct findings *findings, int64_t goroutine)
{
    const struct outside *outside = &findings->waits->outside;
    trail_name place = 0;
    size_t places = 0;
    for (size_t i = 0; i < outside->count; i++) {
        if (outside->rows[i].kind != WIRE_WAIT_SLEEP)
            continue;
        place = outside->rows[i].place;
        if (outside->rows[i].longest.goroutine == goroutine)
            return place;
        places++;
    }
    return places == 1 ? place : 0;
}

/* Whether others waited for that goroutine's initialisation, which is no work to be divided. */
static bool is_initialiser(const struct findings *findings, int64_t goroutine)
{
    const struct blame *blame = &findings->waits->blame;
    for (size_t i = 0; i < blame->count; i++)
        if (blame->rows[i].once && blame->rows[i].goroutine.key == goroutine &&
            blame_union_ns(&blame->rows[i].held) >= ONCE_LEAST)
            return true;
    return false;
}

/* The part of the time in which the goroutine that others waited for waited itself. */
static double own_share(const struct blame_row *row)
{
    return share_of(row->outside_ns, row->own_ns);
}

/* Whether it did so for most of that time, for something else than a CPU. */
static bool waited_itself(const struct findings *findings, const struct blame_row *row)
{
    return row->outside.ns > 0 && own_share(row) >= BUSY_SHARE &&
           (trail_name)row->outside.key != findings->waits->ready;
}

/* Explains what it waited for, if it did. */
static void explain_own(struct findings *findings, const struct blame_row *row)
{
    double share = own_share(row);
    trail_name for_what = (trail_name)row->outside.key;
    if (!waited_itself(findings, row))
        return;
    bool slept = for_what == findings->waits->sleep;
    trail_name place = slept ? sleeps_at(findings, row->goroutine.key) : 0;
    trail_string wait = text_of(findings, for_what), at = text_of(findings, place);
    finding_explain(findings, "For %.0f %% of that time it waited itself (%.*s%s%.*s).",
                    100 * (share < 1 ? share : 1), SHOWN(wait), place ? " at " : "",
                    place ? SHOWN_SIZE(at) : 0, at.data);
}

/* Others wait while one initialises what is initialised once. */
void finding_once(struct findings *findings)
{
    const struct blame *blame = &findings->waits->blame;
    for (size_t i = 0; i < blame->count; i++) {
        const struct blame_row *row = &blame->rows[i];
        int64_t ns = blame_union_ns(&row->held);
        if (!row->once || row->function == 0 || ns < ONCE_LEAST ||
            share_of(ns, length_of(findings)) < ONCE_SHARE)
            continue;
        const struct finding_of of =
            finding_saves("once", ns, &row->longest, row->function, row->wait);
        trail_string place = text_of(findings, row->place), wait = text_of(findings, row->wait);
        wait = facts_of(findings, row->wait) ? wait : (trail_string){"sync.Once", 9};
        finding_say(findings, &of,
                    "An initialisation that runs once (%.*s) at %.*s held others up for %s",
                    SHOWN(wait), SHOWN(place), duration(ns).text);
        finding_explain(findings, "They waited for %s in all, the longest for %s.",
                        duration(row->ns).text, duration(row->longest.ns).text);
        explain_own(findings, row);
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
    const struct blame *blame = &findings->waits->blame;
    const struct blame_row *most = NULL;
    for (size_t i = 0; i < blame->count; i++) {
        const struct blame_row *row = &blame->rows[i];
        if (row->goroutine.key == goroutine && row->goroutine.ns > 0 &&
            waits_for_all(findings, row) &&
            share_of(blame_union_ns(&row->held), length_of(findings)) >= BALANCE_SHARE &&
            (!most || is_better(findings, row, most)))
            most = row;
    }
    return most;
}

/* Where another goroutine slept for short, again and again, until the busiest of the group ended. */
static const struct outside_row *polls_for(const struct findings *findings,
                                           const struct wait_group *group)
{
    const struct outside *outside = &findings->waits->outside;
    const struct outside_row *most = NULL;
    for (size_t i = 0; i < outside->count; i++) {
        const struct outside_row *row = &outside->rows[i];
        const struct blame_union *slept = &row->at_least_one;
        if (row->kind != WIRE_WAIT_SLEEP || row->returns < WATCH_TIMES || slept->count == 0 ||
            mean(row->spread.sum_ns, row->spread.count) > WATCH_MOST ||
            share_of(blame_union_ns(slept), length_of(findings)) < BALANCE_SHARE)
            continue;
        int64_t late = ns_between(group->busiest_end_ns, slept->last[slept->count - 1].end);
        if (late >= -row->spread.max_ns && late <= row->spread.max_ns &&
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
                                &group->busiest};
    return (struct awaited){0};
}

/* One of several workers has most of the work, and others wait for it. */
void finding_imbalance(struct findings *findings)
{
    const struct waits *waits = findings->waits;
    for (size_t i = 0; i < waits->count; i++) {
        const struct wait_group *group = waits->items[i];
        int64_t most = group->busiest.ns, all = group->exec_ns;
        if (group->workers < 2 || most < BALANCE_LEAST ||
            finding_names(findings, "spins", group->row.name) ||
            share_of(most, findings->activity->sums.running_ns) < BALANCE_SHARE ||
            is_initialiser(findings, group->busiest.goroutine))
            continue;
        int64_t others = ns_between(most, all) / (int64_t)(group->workers - 1);
        int64_t even = all / (int64_t)group->workers;
        struct awaited row = awaited_of(findings, group);
        if (most / BALANCE_TIMES < others || row.at == 0)
            continue;
        int64_t uneven = ns_between(even, most);
        int64_t gain = part_of(row.ns, share_of(uneven, most));
        if (share_of(uneven, row.ns) < UNEVEN_LEAST)
            continue;
        const struct finding_of of = finding_saves("imbalance", gain < uneven ? gain : uneven,
                                                   row.longest, group->row.name, row.wait);
        trail_string name = text_of(findings, group->row.name);
        trail_string wait = text_of(findings, row.wait), at = text_of(findings, row.at);
        finding_say(findings, &of, "The work of %.*s is divided unevenly", SHOWN(name));
        finding_explain(findings,
                        "%s %" PRId64 " ran for %s, the other %" PRIu64
                        " for %s on average. Others waited for it (%.*s at %.*s) for %s.",
                        word(findings, TERM_task), group->busiest.goroutine, duration(most).text,
                        group->workers - 1, duration(others).text, SHOWN(wait), SHOWN(at),
                        duration(row.ns).text);
        finding_advise(findings, "Divide it evenly.");
    }
}

/* Explains what the goroutine waited for, if that took most of the time in which others waited for it. */
static void explain_own_wait(struct findings *findings, int64_t goroutine)
{
    const struct blame *blame = &findings->waits->blame;
    for (size_t i = 0; i < blame->count; i++) {
        const struct blame_row *row = &blame->rows[i];
        double share = share_of(row->outside_ns, row->own_ns);
        if (row->goroutine.key != goroutine || !waits_for_all(findings, row) ||
            row->outside.ns <= 0 || share < BUSY_SHARE)
            continue;
        explain_own(findings, row);
        return;
    }
}

/*
 * One goroutine comes last to a barrier, or to a condition variable used as one, since it waits for
 * something else before.
 */
void finding_late(struct findings *findings)
{
    const struct blame *blame = &findings->waits->blame;
    for (size_t i = 0; i < blame->count; i++) {
        const struct blame_row *row = &blame->rows[i];
        const struct wait_facts *facts = facts_of(findings, row->wait);
        int64_t ns = blame_union_ns(&row->held);
        bool barrier = (facts && facts->kind == WIRE_WAIT_BARRIER) || is_own_barrier(findings, row);
        if (!barrier || !waited_itself(findings, row) || ns < BALANCE_LEAST ||
            share_of(row->goroutine.ns, row->ns) < ALIKE_SHARE ||
            share_of(ns, length_of(findings)) < BALANCE_SHARE)
            continue;
        const struct finding_of of = finding_saves("straggler", part_of(ns, own_share(row)),
                                                   &row->longest, row->start, row->wait);
        trail_string start = text_of(findings, row->start), wait = text_of(findings, row->wait),
                     at = text_of(findings, row->at);
        finding_say(findings, &of, "One %s of %.*s held up %.*s", word(findings, TERM_task),
                    SHOWN(start), SHOWN(wait));
        finding_explain(findings,
                        "%s %" PRId64 " came last. Others waited for it at %.*s during %.0f %% of "
                        "the time: %" PRIu64 " waits, %s in all, the longest %s.",
                        word(findings, TERM_task), row->goroutine.key, SHOWN(at),
                        100 * share_of(ns, length_of(findings)), row->waits, duration(row->ns).text,
                        duration(row->longest.ns).text);
        explain_own(findings, row);
    }
}

/* Of goroutines that a WaitGroup is for, or whose exit is waited for, one ends long after all others. */
void finding_straggler(struct findings *findings)
{
    const struct idmap *stragglers = &findings->waits->stragglers.map;
    IDMAP_EACH(slot, stragglers) {
        const struct straggler *straggler = slot->value;
        if (straggler->ns < BALANCE_LEAST ||
            share_of(straggler->ns, length_of(findings)) < BALANCE_SHARE ||
            finding_names(findings, "imbalance", straggler->start))
            continue;
        int64_t gain = straggler->ns < length_of(findings) ? straggler->ns : length_of(findings);
        const struct finding_of of =
            finding_saves("straggler", gain, &straggler->longest, straggler->start, 0);
        trail_string start = text_of(findings, straggler->start),
                     created = text_of(findings, straggler->created_at),
                     at = text_of(findings, straggler->at);
        finding_say(findings, &of, "One %s of %.*s held up the %s at %.*s",
                    word(findings, TERM_task), SHOWN(start),
                    findings->waits->is_go ? "WaitGroup" : "join", SHOWN(at));
        finding_explain(findings, "%s %" PRId64 " ended %s after all others created at %.*s.",
                        word(findings, TERM_task), straggler->longest.goroutine,
                        duration(straggler->longest.ns).text, SHOWN(created));
        if (straggler->times > 1)
            finding_explain(findings, "This was the longest of %" PRIu64 " times, %s in all.",
                            straggler->times, duration(straggler->ns).text);
        explain_own_wait(findings, straggler->longest.goroutine);
    }
}

/*
 * Goroutines of Go wait for one of their own with a WaitGroup, now for this one, now for another, as
 * where one fetches what all of them need.
 */
void finding_wait_for_own(struct findings *findings)
{
    const struct waits *waits = findings->waits;
    for (size_t i = 0; waits->is_go && i < waits->blame.count; i++) {
        const struct blame_row *row = &waits->blame.rows[i];
        int64_t ns = blame_union_ns(&row->held);
        if (row->function == 0 || facts_of(findings, row->wait) || !waits_for_all(findings, row) ||
            row->wait == waits->condition || row->waits < QUEUE_WAITS ||
            share_of(row->alike_ns, row->direct_ns) < ALIKE_SHARE ||
            !waited_itself(findings, row) || share_of(ns, length_of(findings)) < BUSY_SHARE)
            continue;
        const struct finding_of of = finding_saves("straggler", part_of(ns, own_share(row)),
                                                   &row->longest, row->start, row->wait);
        trail_string start = text_of(findings, row->start), at = text_of(findings, row->at),
                     by = text_of(findings, row->place);
        finding_say(findings, &of,
                    "%s of %.*s waited for one of them at %.*s for %.0f %% of the time",
                    word(findings, TERM_tasks), SHOWN(start), SHOWN(at),
                    100 * share_of(ns, length_of(findings)));
        finding_explain(findings, "%" PRIu64 " wait%s, %s in all, the longest %s, ended by %.*s.",
                        row->waits, plural_s(row->waits), duration(row->ns).text,
                        duration(row->longest.ns).text, SHOWN(by));
        explain_own(findings, row);
        finding_advise(findings, "Make that faster, or begin it before others need it.");
    }
}

/*
 * What the program's end needs waits for a goroutine that sleeps. Where none needs what waits, it
 * may be a client that has nothing to do; and the main goroutine may pace others.
 */
void finding_sleeper(struct findings *findings)
{
    const struct waits *waits = findings->waits;
    int64_t length = length_of(findings);
    for (size_t i = 0; waits->is_go && i < waits->blame.count; i++) {
        const struct blame_row *row = &waits->blame.rows[i];
        int64_t ns = blame_union_ns(&row->held);
        double share = share_of(row->outside_ns, row->own_ns);
        if (row->function == 0 || row->waits < QUEUE_WAITS || !is_for_work(findings, row) ||
            row->goroutine.key == 1 || row->outside.ns <= 0 ||
            (trail_name)row->outside.key != waits->sleep || share < BUSY_SHARE ||
            share_of(row->alike_ns, row->direct_ns) >= ALIKE_SHARE ||
            share_of(ns, length) < BUSY_SHARE ||
            finding_names(findings, "pool-too-small", row->start) ||
            !is_needed(findings, &row->longest, row->waiter, BUSY_SHARE))
            continue;
        const struct finding_of of =
            finding_saves("sleeper", ns, &row->longest, row->start, row->wait);
        trail_name place = sleeps_at(findings, row->goroutine.key);
        trail_string name = text_of(findings, row->start), wait = text_of(findings, row->wait),
                     at = text_of(findings, row->at),
                     asleep = text_of(findings, place ? place : waits->sleep);
        finding_say(findings, &of, "%.*s sleeps while others wait for what it makes", SHOWN(name));
        finding_explain(findings,
                        "They waited at %.*s (%.*s) during %.0f %% of the time, %" PRIu64
                        " times, %s in all, the longest %s; for %.0f %% of that it slept (%.*s).",
                        SHOWN(at), SHOWN(wait), 100 * share_of(ns, length), row->waits,
                        duration(row->ns).text, duration(row->longest.ns).text,
                        100 * (share < 1 ? share : 1), SHOWN(asleep));
    }
}

/* MARK: Alone */

/* Threads yield again and again, until something has changed. */
static void say_sched_yields(struct findings *findings, const struct wait_group *group)
{
    int64_t ns = group->yield_ns, length = length_of(findings);
    if (group->yields < SCHED_YIELDS_LEAST || share_of(ns, length) < QUEUE_SHARE)
        return;
    const struct finding_of of = {"spins", .gain_ns = ns < length ? ns : length,
                                  .moment = &group->busiest, .function = group->row.name};
    trail_string at = text_of(findings, group->yield_at ? group->yield_at : group->row.name);
    trail_string name = text_of(findings, group->row.name);
    finding_say(findings, &of,
                "%.*s spins: %s of %.*s yielded (sched_yield) %" PRIu64 " times in a row",
                SHOWN(at), word(findings, TERM_tasks), SHOWN(name), group->yields);
    finding_explain(findings, "That took %s in all, and they looked for a change in between.",
                    duration(ns).text);
    finding_advise(findings, "Wait for it with a mutex, condition variable or futex, which leaves "
                             "the CPU to others.");
}

/* Goroutines of a Go program yield again and again, until something has changed. */
static void say_yields(struct findings *findings, const struct wait_group *group)
{
    int64_t ns = group->exec_ns;
    if (group->yield_ns > 0) {
        say_sched_yields(findings, group);
        return;
    }
    if (group->yields < YIELDS_LEAST || mean(ns, group->yields) > YIELD_MOST ||
        share_of(ns, length_of(findings)) < QUEUE_SHARE)
        return;
    const struct finding_of of = {"spins", .gain_ns = ns, .moment = &group->busiest,
                                  .function = group->row.name};
    trail_string name = text_of(findings, group->row.name);
    finding_say(findings, &of, "%.*s spins: it yielded (runtime.Gosched) %" PRIu64 " times",
                SHOWN(name), group->yields);
    finding_explain(findings, "It ran for %s, and yielded once every %s.", duration(ns).text,
                    duration(mean(ns, group->yields)).text);
    finding_advise(findings, "Wait for what it looks for, with a channel or a condition variable.");
}

/* A goroutine of a Go program receives without waiting, in a loop. */
void finding_spins(struct findings *findings)
{
    const struct spinner *spinner = &findings->waits->spinner;
    int64_t ns = spinner->exec_ns;
    for (size_t i = 0; i < findings->waits->count; i++)
        say_yields(findings, findings->waits->items[i]);
    if (spinner->count < SPIN_COUNT || mean(ns, spinner->count) < SPIN_PAUSE ||
        share_of(ns, length_of(findings)) < SPIN_SHARE)
        return;
    trail_longest moment = {ns, spinner->begin_ns, spinner->goroutine};
    const struct finding_of of = {"spins", .gain_ns = ns, .moment = &moment,
                                  .function = spinner->name};
    trail_string name = text_of(findings, spinner->name);
    finding_say(findings, &of,
                "%.*s spins: %s %" PRId64
                " ran for %s and never waited, while others sent to it now and then",
                SHOWN(name), word(findings, TERM_task), spinner->goroutine, duration(ns).text);
    finding_explain(findings, "It ended at least %" PRIu64 " waits to send within %s each.",
                    spinner->count, duration(BLAME_OTHERS_NS).text);
    finding_advise(findings, "A select without a default case waits for values.");
}

/* What `ns` of serial work can gain, were it spread over all Ps. */
static int64_t spread_gain(const struct findings *findings, int64_t ns)
{
    uint64_t procs = findings->activity->sums.procs;
    return procs > 1 ? ns - ns / (int64_t)procs : 0;
}

/* For how long goroutines of Go's runtime ran, such as those of the garbage collector. */
static int64_t runtime_ns(const struct findings *findings)
{
    const struct waits *waits = findings->waits;
    int64_t sum = 0;
    for (size_t i = 0; i < waits->count; i++)
        if (finding_is_runtime(findings, waits->items[i]->row.name)) {
            ns_add(&sum, waits->items[i]->exec_ns);
            ns_add(&sum, waits->items[i]->row.ready.sum_ns);
        }
    return sum;
}

/* Whether another finding says why one goroutine has work alone. */
static bool is_explained(const struct findings *findings)
{
    static const char *const kinds[] = {"gc-share", "imbalance", "bottleneck", "spins"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (finding_was_said(findings, kinds[i]))
            return true;
    return false;
}

/* The threads of gcc's OpenMP, whose waits are not recorded; NULL: there are none. */
static const struct wait_group *gcc_openmp(const struct findings *findings)
{
    const struct waits *waits = findings->waits;
    for (size_t i = 0; i < waits->count; i++)
        if (text_begins(text_of(findings, waits->items[i]->row.name), "libgomp.so"))
            return waits->items[i];
    return NULL;
}

/* The threads of OpenMP waited while one alone had work. */
static void say_openmp(struct findings *findings, const struct wait_group *openmp,
                       const struct alone_sum *most, int64_t gain_ns)
{
    bool worker = most->name == openmp->row.name;
    const struct finding_of of = {worker ? "imbalance" : "serial-phase", .saves = true,
                                  .gain_ns = gain_ns, .moment = &most->longest,
                                  .function = worker && openmp->created_at ? openmp->created_at
                                                                           : most->name};
    static const trail_string a_worker = {"One of OpenMP's threads", 23};
    trail_string name = worker ? a_worker : text_of(findings, most->name),
                 at = text_of(findings, openmp->created_at);
    finding_say(findings, &of,
                "%.*s alone had work for %.0f %% of the time, while the others waited", SHOWN(name),
                100 * share_of(most->ns, length_of(findings)));
    finding_explain(
        findings,
        "%" PRIu64 " phase%s of 5 ms or more, %s in all, the longest %s, with the parallel region "
        "at %.*s. %s.",
        most->count, plural_s(most->count), duration(most->ns).text,
        duration(most->longest.ns).text, SHOWN(at),
        worker
            ? "The work is divided unevenly"
            : "Either the work between two barriers is divided unevenly, or this part is serial");
    finding_advise(findings, "%s--openmp records the waits at barriers.",
                   worker ? "Use a dynamic schedule or smaller pieces; " : "");
}

/* The program runs in parallel, but for phases in which one goroutine alone has work. */
void finding_serial_phase(struct findings *findings)
{
    const struct activity *activity = findings->activity;
    const struct alone_sum *most = NULL;
    int64_t alone = 0, length = length_of(findings), work = activity->sums.running_ns;
    ns_add(&work, activity->sums.runnable_ns);
    work = ns_between(runtime_ns(findings), work);
    for (size_t i = 0; i < activity->alone_count; i++) {
        const struct alone_sum *sum = &activity->alone_sums[i];
        ns_add(&alone, sum->ns);
        most = most && most->ns >= sum->ns ? most : sum;
    }
    if (!most || most->ns < ALONE_LEAST || share_of(most->ns, length) < ALONE_SHARE ||
        share_of(ns_between(alone, length), length) < ALONE_REST || is_explained(findings) ||
        share_of(ns_between(alone, work), ns_between(alone, length)) < ALONE_PARALLEL)
        return;
    const struct wait_group *openmp = gcc_openmp(findings);
    if (openmp) {
        say_openmp(findings, openmp, most, spread_gain(findings, most->ns));
        return;
    }
    const struct finding_of of = finding_saves("serial-phase", spread_gain(findings, most->ns),
                                               &most->longest, most->name, 0);
    trail_string name = text_of(findings, most->name);
    finding_say(
        findings, &of,
        "%.*s alone had work for %.0f %% of the time, in a program that runs in parallel otherwise",
        SHOWN(name), 100 * share_of(most->ns, length));
    finding_explain(findings, "%" PRIu64 " phase%s of 5 ms or more, %s in all, the longest %s.",
                    most->count, plural_s(most->count), duration(most->ns).text,
                    duration(most->longest.ns).text);
    finding_advise(findings, "Divide this work among the %" PRIu64 " %s.", activity->sums.procs,
                   word(findings, TERM_slots));
}

/*
 * For how long others waited for goroutines with this start function to exit; or for what each of
 * them sends or does once.
 */
static int64_t joined_ns(const struct findings *findings, const struct wait_group *group)
{
    const struct blame *blame = &findings->waits->blame;
    int64_t most = 0;
    for (size_t i = 0; i < blame->count; i++) {
        const struct blame_row *row = &blame->rows[i];
        const struct wait_facts *facts = facts_of(findings, row->wait);
        int64_t ns = blame_union_ns(&row->held);
        bool joins = facts && facts->kind == WIRE_WAIT_JOIN && row->function == group->row.name;
        bool result = !facts || facts->kind == WIRE_WAIT_FUTURE;
        bool each = result && !row->lock && row->start == group->row.name &&
                    row->waiter == group->creator && share_of(row->alike_ns, row->direct_ns) == 0 &&
                    row->waits * 5 >= group->row.created * 4 && row->waits <= group->row.created;
        if ((each || (joins && group->most_alive == 1)) && ns > most)
            most = ns;
    }
    return most;
}

/* For how long goroutines with this start function had work alone. */
static int64_t alone_ns(const struct activity *activity, trail_name name)
{
    for (size_t i = 0; i < activity->alone_count; i++)
        if (activity->alone_sums[i].name == name)
            return activity->alone_sums[i].ns;
    return 0;
}

/* Workers are created, and each is waited for before the next is created. */
void finding_one_at_a_time(struct findings *findings)
{
    const struct waits *waits = findings->waits;
    int64_t length = length_of(findings);
    for (size_t i = 0; i < waits->count; i++) {
        const struct wait_group *group = waits->items[i];
        if (group->most_alive > EACH_ALIVE || group->row.created < EACH_LEAST)
            continue;
        int64_t joined = joined_ns(findings, group);
        int64_t alone = group->most_alive == 1 ? alone_ns(findings->activity, group->row.name) : 0;
        int64_t ns = joined > alone ? joined : alone;
        int64_t gain = ns - ns / (int64_t)group->row.created;
        if (share_of(ns, length) < EACH_SHARE)
            continue;
        const struct finding_of of =
            finding_saves("one-at-a-time", gain, &group->busiest, group->row.name, 0);
        char name[STARTED_SIZE];
        finding_say(findings, &of, "%" PRIu64 " %s of %s ran one at a time", group->row.created,
                    word(findings, TERM_tasks),
                    finding_put_started(findings, group->row.name, name));
        finding_explain(findings,
                        "Each was created when the one before was done. They had work alone, or "
                        "others waited for them, during %.0f %% of the time.",
                        100 * share_of(ns, length));
        finding_advise(findings, "Run them at the same time.");
    }
}

/* Threads wait again and again in calls of a library that the recorder does not see. */
void finding_unseen(struct findings *findings)
{
    const struct waits *waits = findings->waits;
    int64_t length = length_of(findings);
    for (size_t i = 0; i < waits->count; i++) {
        const struct wait_group *group = waits->items[i];
        struct group_time time = time_of(findings, group);
        ns_add(&time.all, group->unseen_ns);
        if (group->unseen < UNSEEN_WAITS || share_of(group->unseen_ns, time.all) < UNSEEN_SHARE ||
            share_of(group->unseen_ns, length) < UNSEEN_SHARE || group == gcc_openmp(findings) ||
            finding_names(findings, "futile-wakeups", group->row.name))
            continue;
        const struct finding_of of = {
            "unseen-waits", .gain_ns = group->unseen_ns < length ? group->unseen_ns : length,
            .moment = &group->busiest, .function = group->row.name};
        char name[STARTED_SIZE];
        finding_say(findings, &of,
                    "%s of %s waited in the kernel %" PRIu64
                    " times, in calls that are not recorded",
                    word(findings, TERM_tasks),
                    finding_put_started(findings, group->row.name, name), group->unseen);
        finding_explain(findings,
                        "These waits took %s, %.0f %% of the time of its %" PRIu64
                        " %s. Usually they are for a lock in the C library: of allocation (malloc, "
                        "free), stdio or the loader.",
                        duration(group->unseen_ns).text, 100 * share_of(group->unseen_ns, time.all),
                        group->workers,
                        word(findings, group->workers == 1 ? TERM_task : TERM_tasks));
        finding_advise(findings, "'perf record -e syscalls:sys_enter_futex -g' shows for which.");
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
            share_of(ns, length_of(findings)) < OUTSIDE_SHARE)
            continue;
        const struct finding_of of =
            finding_saves("forced-gc", ns, &row->longest, row->function, row->wait);
        trail_string place = text_of(findings, row->place);
        finding_say(findings, &of,
                    "%.*s asked for garbage collections and waited for their end for %.0f %% of "
                    "the time",
                    SHOWN(place), 100 * share_of(ns, length_of(findings)));
        finding_explain(findings, "%" PRIu64 " wait%s, %s in all, the longest %s.",
                        row->spread.count, plural_s(row->spread.count),
                        duration(row->spread.sum_ns).text, duration(row->longest.ns).text);
        finding_advise(findings, "Leave it to the runtime when to collect (GOGC, GOMEMLIMIT).");
    }
}
