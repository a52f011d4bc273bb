/* Findings: answers of peers that are slow, or one that is, and runs that are. */
#include <stdio.h>
#include <string.h>

#include "diagnose/findings_outside.h"
#include "diagnose/findings_waits.h"
#include "diagnose/waits.h"

/* Thresholds. A share is a part of the time. */
#define ANSWER_COUNT  20
#define ANSWER_LEAST  INT64_C(50000000)
#define ANSWER_TIMES  10 /* compared with the 95th percentile */
#define ANSWER_SHARE  0.05
#define RUN_BESIDE    5 /* usual runs before and after a long one */
#define RUN_TIMES     20
#define RUN_SHARE     0.1
#define PEER_SHARE    0.5
#define PEER_QUICK    INT64_C(40000000)
#define DELAYED_LEAST INT64_C(38000000) /* waits for a delayed acknowledgement of Linux */
#define DELAYED_MOST  INT64_C(60000000)
#define SERVER_SHARE  0.4 /* the same of a C program, which is known to have connected to it */

/* Whether that was most of the row's longest wait. */
static bool took_most(const struct outside_row *row, int64_t ns)
{
    return row->peer.start != 0 && ns >= row->longest.ns / 2;
}

/* Whether goroutines with this start function waited for the lock. */
static bool waits_for_lock(const struct findings *findings, trail_name start, trail_name lock)
{
    BLAME_EACH(row, &findings->waits->blame)
        if (row->wait == lock && row->waiter == start)
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
    trail_string name = text_of(findings, peer->start);
    const trail_finding *lock = lock_behind(findings, row);
    if (took_most(row, peer->ns)) {
        finding_explain(findings,
                        "%.*s, which ended it, was itself waiting for %s of that (%.*s at %.*s).",
                        SHOWN(name), duration(peer->ns).text, NAMED(findings, peer->wait),
                        NAMED(findings, peer->place));
    } else if (took_most(row, peer->ran_ns)) {
        finding_explain(findings, "%.*s, which ended it, ran for %s of that.", SHOWN(name),
                        duration(peer->ran_ns).text);
    } else if (lock) {
        finding_explain(findings, "%.*s ended it, and waited for %.*s before.", SHOWN(name),
                        NAMED(findings, lock->object));
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
    OUTSIDE_EACH(row, &findings->waits->outside) {
        const trail_histogram *spread = &row->spread;
        int64_t most = row->longest.ns, usual = trail_histogram_quantile(spread, 0.95);
        if (row->deadline || spread->count < ANSWER_COUNT || most < ANSWER_LEAST ||
            most / ANSWER_TIMES < usual || time_share(findings, most) < ANSWER_SHARE ||
            !is_for_answer(findings, row) || !is_usual(row) || is_for_cpu(findings, &row->longest))
            continue;
        const struct finding_of of = finding_saves("slow-answer", ns_between(usual, most),
                                                   &row->longest, row->function, row->wait);
        finding_say(findings, &of,
                    "%.*s waited %s once (%.*s); 95 %% of its %s waits took at most about %s",
                    NAMED(findings, row->place), duration(most).text, NAMED(findings, row->wait),
                    counted(spread->count).text, duration(usual).text);
        explain_peer(findings, row);
    }
}

/* A slow answer that one waited for which ran so long meanwhile follows from that. */
static void put_after(struct findings *findings, const struct outside_row *of)
{
    OUTSIDE_EACH(row, &findings->waits->outside) {
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
    /* Where context switches are missing, it may have had no CPU. */
    if (findings->waits->inferred)
        return;
    OUTSIDE_EACH(row, &findings->waits->outside) {
        const trail_histogram *runs = &row->runs;
        int64_t most = row->longest_run.ns, usual = trail_histogram_quantile(runs, 0.95);
        if (runs->count < ANSWER_COUNT || row->runs_before < RUN_BESIDE ||
            runs->count - row->runs_before <= RUN_BESIDE || most < ANSWER_LEAST ||
            most / RUN_TIMES < usual || time_share(findings, most) < RUN_SHARE ||
            works_at_times(row, usual))
            continue;
        const struct finding_of of = finding_saves("slow-run", ns_between(usual, most),
                                                   &row->longest_run, row->function, row->wait);
        finding_say(findings, &of,
                    "%.*s ran for %s between two waits (%.*s at %.*s), 95 %% of the %s times at "
                    "most about %s",
                    NAMED(findings, row->runner), duration(most).text, NAMED(findings, row->wait),
                    NAMED(findings, row->place), counted(runs->count).text, duration(usual).text);
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
    trail_string by = text_of(findings, (trail_name)row->answerer.key);
    if (is_answered(row) && is_delayed(findings, row)) {
        finding_explain(findings,
                        "Meanwhile %.*s waited for the rest of the request (%.*s at %.*s). Nagle's "
                        "algorithm holds small parts back until those before are acknowledged, "
                        "which takes 40 ms.",
                        SHOWN(by), NAMED(findings, row->peer.wait),
                        NAMED(findings, row->peer.place));
        finding_advise(findings, "Send each request in one write, or set TCP_NODELAY.");
    } else if (is_answered(row)) {
        const struct outside_row *behind = asked_meanwhile(findings, row);
        trail_string asks = behind ? text_of(findings, behind->place) : (trail_string){.data = ""};
        char slept[200] = "";
        if (row->slept_at.ns > row->answered_ns / 2)
            (void)snprintf(slept, sizeof slept, "; it slept meanwhile (%.*s)",
                           NAMED(findings, (trail_name)row->slept_at.key));
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
    return !row->of_server && outside_are_many(row) &&
           trail_histogram_quantile(&row->spread, 0.5) < PEER_QUICK;
}

/* What the program, or a region, needs waits most of the time for answers from the network. */
void finding_slow_peer(struct findings *findings)
{
    OUTSIDE_EACH(row, &findings->waits->outside) {
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
        finding_say(findings, &of,
                    "%.*s waited for answers from the network for %.0f %% of the time",
                    NAMED(findings, row->place), 100 * time_share(findings, ns));
        finding_explain(findings, "%s.", outside_words(row).text);
        explain_answerer(findings, row);
        /* A lock that is held meanwhile makes others wait for the peer, too. */
        if (finding_names(findings, "lock-serialises", row->function))
            finding_last(findings)->weight /= 2;
    }
}
