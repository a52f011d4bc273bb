/* Findings: waits for what is outside the program, and calls that block. */
#include <stdio.h>
#include <string.h>

#include "diagnose/findings_outside.h"
#include "diagnose/findings_waits.h"
#include "diagnose/waits.h"
#include "words/process_name.h"

/* Thresholds. A share is a part of the time. */
#define OUTSIDE_SHARE 0.3
#define CALLS_LEAST   8   /* blocking calls at once, on average */
#define ASKED_LEAST   0.8 /* of the time-outs */

/* Whether a lock is held over these waits, for which others wait most of the time. */
static bool is_held_over(const struct findings *findings, const struct outside_row *row)
{
    const struct names *names = &findings->analysis->names;
    BLAME_EACH(lock, &findings->waits->blame) {
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
/*
 * Names what waited to read from a pipe in another process meanwhile, as the caller of a shell
 * does: the ends of all processes that have the pipe end that.
 */
static void explain_reader(struct findings *findings, const struct outside_row *row,
                           const struct process_name *own)
{
    OUTSIDE_EACH(of, &findings->waits->outside) {
        const struct wait_facts *its = facts_of(findings, of->wait);
        struct process_name other;
        if (of->kind != WIRE_WAIT_READ || of->peer.start != 0 || !its ||
            !text_begins(names_text(&findings->analysis->names, its->object), "pipe:") ||
            common_ns(&of->longest, &row->longest) < row->longest.ns / 2 ||
            !process_name_of(text_of(findings, of->waiter), &other) || other.pid == own->pid)
            continue;
        finding_explain(findings, "Meanwhile, %.*s waited (%.*s).", NAMED(findings, of->place),
                        NAMED(findings, of->wait));
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
    const struct blame_row *most = NULL;
    struct process_name caller;
    BLAME_EACH(of, &findings->waits->blame) {
        if (of->start == row->waiter && of->longest.ns >= row->longest.ns / 2 &&
            process_name_of(text_of(findings, of->waiter), &caller) && caller.pid != own->pid &&
            (!most || of->longest.ns > most->longest.ns))
            most = of;
    }
    if (!most)
        return (struct calls){0};
    OUTSIDE_EACH(of, &findings->waits->outside) {
        if (of->longest.goroutine == most->longest.goroutine &&
            of->longest.begin_ns == most->longest.begin_ns)
            return (struct calls){of->function, of->place, most->wait};
    }
    return (struct calls){0, most->at, most->wait};
}

/* Whether what the child process did is the wait of another row: for children of its own. */
static bool passes_wait_on(const struct findings *findings, const struct outside_row *row,
                           int64_t ns)
{
    OUTSIDE_EACH(of, &findings->waits->outside) {
        if (of != row && of->kind == WIRE_WAIT_CHILD && of->waiter == row->peer.start &&
            blame_union_ns(&of->at_least_one) >= ns / 2)
            return true;
    }
    return false;
}

/* A child process that is recorded, too. What it waits for itself comes first. */
static void say_child(struct findings *findings, const struct outside_row *row, int64_t ns)
{
    struct finding_of of = finding_saves("outside", ns, &row->longest, row->function, row->wait);
    trail_string place = text_of(findings, row->place), waiter = text_of(findings, row->waiter);
    struct process_name own;
    bool known = process_name_of(waiter, &own);
    struct calls calls = known ? calls_of(findings, row, &own) : (struct calls){0};
    trail_string at = text_of(findings, calls.place);
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
    finding_explain(findings, "%s, which %.*s ended by its exit.", outside_words(row).text,
                    NAMED(findings, row->peer.start));
    if (row->peer.wait && row->peer.place && row->peer.ns >= row->longest.ns / 2) {
        finding_explain(findings,
                        "The latter was itself waiting for %s of the longest (%.*s at %.*s).",
                        duration(row->peer.ns).text, NAMED(findings, row->peer.wait),
                        NAMED(findings, row->peer.place));
    }
    finding_last(findings)->weight /= passes_wait_on(findings, row, ns) ? 8 : 4;
    if (leads)
        return;
    if (calls.place)
        finding_explain(findings, "Meanwhile, %.*s (%.*s) waited for %.*s.", SHOWN(at),
                        NAMED(findings, calls.wait), SHOWN(waiter));
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
    OUTSIDE_EACH(row, outside) {
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
        char what[240] = "child processes";
        if (row->kind != WIRE_WAIT_CHILD)
            (void)snprintf(what, sizeof what, "something outside the program (%.*s)",
                           NAMED(findings, row->wait));
        finding_say(findings, &of, "%.*s waited for %s for %.0f %% of the time",
                    NAMED(findings, row->place), what, 100 * time_share(findings, ns));
        finding_explain(findings, "%s.", outside_words(row).text);
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
    OUTSIDE_EACH(row, &findings->waits->outside) {
        const struct wait_facts *its = facts_of(findings, row->wait);
        int64_t ns = blame_union_ns(&row->at_least_one);
        if (row->kind != WIRE_WAIT_WRITE || !its ||
            !text_is(names_text(&findings->analysis->names, its->object), "syslog") ||
            ns < OUTSIDE_LEAST || time_share(findings, ns) < OUTSIDE_SHARE ||
            !outside_are_many(row))
            continue;
        const struct finding_of of =
            finding_saves("lock-contention", ns, &row->longest, row->function, row->wait);
        finding_say(findings, &of,
                    "Threads wait for each other in syslog at %.*s for %.0f %% of "
                    "the time",
                    NAMED(findings, row->place), 100 * time_share(findings, ns));
        finding_explain(
            findings,
            "One at a time writes to the log, under a lock of the C library. On average "
            "%.1f waited. %s.",
            outside_at_once(row), outside_words(row).text);
        finding_advise(findings, "Log less, or let one thread do it for all.");
    }
}

/* SQLite waits until another connection releases its lock of a database. */
void finding_database(struct findings *findings)
{
    OUTSIDE_EACH(row, &findings->waits->outside) {
        int64_t ns = blame_union_ns(&row->at_least_one);
        if (!row->in_sqlite || ns < OUTSIDE_LEAST || time_share(findings, ns) < OUTSIDE_SHARE)
            continue;
        const struct finding_of of = finding_saves("database", ns, &row->longest, row->function, 0);
        finding_say(findings, &of,
                    "%.*s waited for a locked SQLite database for %.0f %% of the time",
                    NAMED(findings, row->place), 100 * time_share(findings, ns));
        finding_explain(findings,
                        "SQLite slept %s time%s in its busy handler, %s in all, the "
                        "longest %s, while another connection held a lock.",
                        counted(row->spread.count).text, plural_s(row->spread.count),
                        duration(row->spread.sum_ns).text, duration(row->longest.ns).text);
        finding_advise(findings, "Keep transactions that write short, without waits in them.");
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
    PAIRS_EACH(pair, &findings->waits->blame)
        if (pair->waiter == start && pair->waker == from)
            return pair->waits >= least;
    return false;
}

/* Returns a group that the row's waiters ask, if only those that they ask end their waits; or 0. */
static trail_name asked_by(const struct findings *findings, const struct outside_row *row)
{
    trail_name asked = 0;
    PAIRS_EACH(pair, &findings->waits->blame) {
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
    trail_string at = function_of(findings, place);
    GROUPS_EACH(group, findings->waits) {
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
    OUTSIDE_EACH(row, &findings->waits->outside) {
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
        finding_say(findings, &of, "%.*s waited until the time-out of a %s for %.0f %% of the time",
                    NAMED(findings, row->place), row->deadline ? "context" : "timer",
                    100 * time_share(findings, ns));
        finding_explain(findings,
                        "%s wait%s (%.*s) ended so, %s in all, the longest %s: nothing "
                        "else that would have ended them came in time.",
                        counted(row->spread.count).text, plural_s(row->spread.count),
                        NAMED(findings, row->wait), duration(row->spread.sum_ns).text,
                        duration(row->longest.ns).text);
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
    finding_say(findings, &of, "%.*s waited %s %.*ss for %.0f %% of the time",
                NAMED(findings, row->place), row->kind == WIRE_WAIT_KERNEL ? "in" : "for",
                NAMED(findings, row->wait), 100 * time_share(findings, ns));
    finding_explain(findings, "%s, of %.*s.",
                    several(row->spread.count, "call", row->spread.sum_ns, row->longest.ns).text,
                    NAMED(findings, row->waiter));
}

/* Goroutines of Go wait in system calls, each of which needs a thread of its own. */
void finding_blocking_calls(struct findings *findings)
{
    if (!findings->waits->is_go)
        return;
    OUTSIDE_EACH(row, &findings->waits->outside) {
        int64_t ns = blame_union_ns(&row->at_least_one);
        bool calls = row->kind == WIRE_WAIT_KERNEL || row->kind == WIRE_WAIT_FILE ||
                     row->kind == WIRE_WAIT_FILE_LOCK || row->kind == WIRE_WAIT_CHILD;
        if (!calls || time_share(findings, ns) < OUTSIDE_SHARE ||
            outside_at_once(row) < CALLS_LEAST) {
            say_needed_call(findings, row);
            continue;
        }
        const struct finding_of of = {"blocking-calls", .gain_ns = ns, .moment = &row->longest,
                                      .function = row->function, .object = row->wait};
        finding_say(findings, &of,
                    "Blocking calls use up threads: %.1f %s on average waited in one at %.*s "
                    "(%.*s) during %.0f %% of the time",
                    outside_at_once(row), word(findings, TERM_tasks), NAMED(findings, row->place),
                    NAMED(findings, row->wait), 100 * time_share(findings, ns));
        finding_explain(
            findings, "Each needs a thread meanwhile. %s.",
            several(row->spread.count, "call", row->spread.sum_ns, row->longest.ns).text);
        finding_advise(findings, "Let fewer of them call it at the same time.");
    }
}
