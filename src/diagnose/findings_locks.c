/* Findings: which function held a lock that others waited for. */
#include <stdio.h>
#include <string.h>

#include "diagnose/findings.h"
#include "diagnose/findings_waits.h"
#include "diagnose/wait_sums.h"
#include "diagnose/waits.h"
#include "diagnose/why_ready.h"
#include "words/wrappers.h"

#define LOCK_SHARE 0.2
#define MOST_LOCKS 3
#define HOLD_SHARE 0.05 /* one wait for a lock that is held for long once */
#define LOCK_WAITS 10
#define LOCK_LEAST INT64_C(100000000) /* fewer waits count if they took this long in all */
/* From this share on, what the holder waited for meanwhile is why it held the lock for so long. */
#define OUTSIDE_SHARE 0.4
#define STARVED_LEAST INT64_C(50000000)
#define LACKED_SHARE  0.5 /* of its holds, without a CPU */
#define MOST_RAN      0.1 /* kept the holder from a CPU */

/* Whether there are enough waits for the lock to be worth a finding. */
static bool is_much(const struct findings *findings, const struct blame_row *row)
{
    return wait_sums_of_lock(&findings->sums, row)->lock_waits >= LOCK_WAITS ||
           row->ns >= LOCK_LEAST;
}

/*
 * Whether most of these waits are those of writers that readers keep out: no hold of these is long.
 */
static bool is_starved(const struct findings *findings, const struct blame_row *row)
{
    const struct rwlock *lock = wait_sums_of_lock(&findings->sums, row)->rwlock;
    return lock && lock->waiter == row->waiter && lock->ns >= row->ns / 2 && lock->kept_out > 0;
}

/* Whether the lock was held by a known function. */
static bool is_held(const struct findings *findings, const struct blame_row *row)
{
    return row->lock && row->function != 0 && !is_starved(findings, row);
}

struct finding_words finding_lock(const struct findings *findings, trail_name name)
{
    struct finding_words words;
    trail_string wait = text_of(findings, name);
    bool named = wait_facts_of(&findings->analysis->names, name) != NULL ||
                 memchr(wait.data, ' ', wait.size) != NULL;
    (void)snprintf(words.text, sizeof words.text, "%.*s", named ? SHOWN_SIZE(wait) : 6,
                   named ? wait.data : "a lock");
    return words;
}

const struct wait_group *finding_busiest_but(const struct findings *findings, trail_name name)
{
    const struct wait_group *most = NULL;
    GROUPS_EACH(group, findings->waits)
        if (group->row.name != name && (!most || group->exec_ns > most->exec_ns))
            most = group;
    return most && time_share(findings, most->exec_ns) >= MOST_RAN ? most : NULL;
}

/* Explains how much of the CPUs other programs used, if that is recorded and not little. */
static void explain_others(struct findings *findings)
{
    double used = why_ready_used_by_others(findings->analysis->reader);
    if (used > 0)
        finding_explain(findings, "Other programs used up to %.1f CPUs.", used);
}

/* Whether the program has not taken the lock itself: a function of a library did. */
static bool is_of_library(const struct findings *findings, const struct blame_row *row)
{
    trail_string wait = text_of(findings, row->wait);
    return memmem(wait.data, wait.size, " (in ", 5) || memmem(wait.data, wait.size, " (stream", 8);
}

/* Whether it is the lock of an interpreter or of a language's runtime. */
static bool is_runtime_lock(const struct findings *findings, const struct blame_row *row)
{
    const struct wait_facts *facts = wait_facts_of(&findings->analysis->names, row->wait);
    return facts && facts->kind == WIRE_WAIT_INTERPRETER;
}

/* Whether the function that released the lock is an interpreter's, which all its threads call. */
static bool is_runtime(const struct findings *findings, trail_name function)
{
    return frame_rank(NULL, text_of(findings, function), (trail_string){0}) == FRAME_RUNTIME;
}

/* Explains why the holder held it so long, and what to do; or only that. */
static void advise(struct findings *findings, const struct blame_row *row)
{
    double share = wait_own_share(row);
    bool waits = row->outside.ns > 0 && share >= OUTSIDE_SHARE;
    if (is_runtime_lock(findings, row)) {
        finding_advise(findings,
                       "Only one %s at a time runs code under it: divide the work among processes, "
                       "or do it in calls that release it.",
                       word(findings, TERM_task));
        return;
    }
    if (!waits && !is_of_library(findings, row)) {
        finding_advise(findings, "Hold it for a shorter time, or divide what it protects.");
        return;
    }
    double percent = 100 * (share < 1 ? share : 1);
    if (waits && (trail_name)row->outside.key == findings->waits->ready) {
        const struct wait_group *busiest = finding_busiest_but(findings, row->start);
        trail_string other =
            names_text(&findings->analysis->names, busiest ? busiest->row.name : 0);
        finding_explain(findings, "For %.0f %% of that time the holder was ready but had no CPU.",
                        percent);
        if (other.size > 0)
            finding_explain(findings, "%.*s ran most.", SHOWN(other));
        explain_others(findings);
        finding_advise(findings, "Give it a higher priority, or let fewer %s run at the same time.",
                       word(findings, TERM_tasks));
        return;
    }
    if (waits)
        finding_explain(findings, "For %s%.0f %% of that time the holder was itself waiting (%s).",
                        wait_own_least(row), percent, wait_own(findings, row).text);
    if (is_of_library(findings, row))
        finding_advise(findings,
                       "It is a library's lock: do less while it is held, or let fewer %s "
                       "call these functions.",
                       word(findings, TERM_tasks));
    else
        finding_advise(findings, "Release the lock before that wait.");
}

/* Returns the process of a start function, "store (4711)"; empty: there is only one. */
static trail_string process_of(const struct findings *findings, trail_name start)
{
    static const char end[] = "): ";
    trail_string text = text_of(findings, start);
    const char *at = memmem(text.data, text.size, end, strlen(end));
    return (trail_string){text.data, at ? (size_t)(at + 1 - text.data) : 0};
}

/* Writes " of store (4711)" if the holder was in another process than the waiters. */
static void put_process(const struct findings *findings, const struct blame_row *row, char *text,
                        size_t size)
{
    trail_string holder = process_of(findings, row->start),
                 waiter = process_of(findings, row->waiter);
    *text = '\0';
    if (holder.size > 0 &&
        (holder.size != waiter.size || memcmp(holder.data, waiter.data, holder.size) != 0))
        (void)snprintf(text, size, " of %.*s", SHOWN(holder));
}

/* What may be saved of `ns` if all that is done then fills the CPUs instead. */
static int64_t gain_of(const struct findings *findings, int64_t ns)
{
    const trail_activity *sums = &findings->activity->sums;
    if (findings->waits->inferred || sums->procs == 0)
        return ns;
    int64_t idle = ns_between(sums->running_ns / (int64_t)sums->procs, length_of(findings));
    return idle <= 0 ? 0 : idle < ns ? idle : ns;
}

static void say_lock(struct findings *findings, const char *kind, const struct blame_row *row,
                     const char *effect)
{
    int64_t held = blame_held_ns(row);
    struct finding_of of =
        finding_saves(kind, gain_of(findings, held), &row->longest, row->function, row->wait);
    of.weight_ns = held;
    bool nameless = is_runtime_lock(findings, row) || is_runtime(findings, row->function);
    trail_string place = text_of(findings, nameless ? row->start : row->place);
    /* An rwlock has a name of its own, for both ways to take it. */
    bool inferred = !row->named && wait_facts_of(&findings->analysis->names, row->wait) == NULL;
    char process[200], of_all[120] = "", longest[120] = "";
    put_process(findings, row, process, sizeof process);
    int64_t all_ns = wait_sums_of_lock(&findings->sums, row)->lock_ns;
    if (strcmp(duration(all_ns).text, duration(row->ns).text) != 0)
        (void)snprintf(of_all, sizeof of_all, " (of %s for this lock)", duration(all_ns).text);
    if (row->waits > 1)
        (void)snprintf(longest, sizeof longest, ", the longest %s", duration(row->longest.ns).text);
    if ((trail_name)row->outside.key == findings->waits->ready &&
        wait_own_share(row) >= OUTSIDE_SHARE && held > findings->holder_ready_ns)
        findings->holder_ready_ns = held;
    finding_say(findings, &of, "%.*s%s held %s%s for %s while others waited", SHOWN(place), process,
                finding_lock(findings, row->wait).text,
                inferred ? " (inferred from its release)" : "", duration(held).text);
    finding_explain(findings, "%s. %s wait%s took %s%s%s at %.*s.", effect,
                    counted(row->waits).text, plural_s(row->waits), duration(row->ns).text, of_all,
                    longest, NAMED(findings, row->at));
    if (row->caller) {
        finding_explain(findings, "The last holder was called by %.*s.",
                        NAMED(findings, row->caller));
    }
    advise(findings, row);
}

/* Readers take an rwlock for which a writer waits already. */
void finding_writer_starved(struct findings *findings)
{
    const struct rwlock *worst = NULL;
    IDMAP_VALUES(const struct rwlock, lock, &findings->waits->rwlocks.map) {
        if (lock->kept_out > 0 &&
            (!worst || lock->ns > worst->ns || (lock->ns == worst->ns && lock->wait < worst->wait)))
            worst = lock;
    }
    if (!worst || worst->ns < STARVED_LEAST ||
        time_share(findings, blame_union_ns(&worst->beyond)) < LOCK_SHARE)
        return;
    const struct finding_of of = finding_saves("writer-starved", blame_union_ns(&worst->beyond),
                                               &worst->longest, worst->function, worst->wait);
    finding_say(findings, &of, "Readers kept %.*s waiting for %.*s to write, for %s",
                NAMED(findings, worst->at), NAMED(findings, worst->wait), duration(worst->ns).text);
    finding_explain(findings,
                    "In %s of %s wait%s, the longest %s, others took it to read after the wait "
                    "had begun, last at %.*s. Their holds overlap: none was longer than %s.",
                    counted(worst->kept_out).text, counted(worst->waits).text,
                    plural_s(worst->waits), duration(worst->longest.ns).text,
                    NAMED(findings, worst->reader), duration(worst->longest_hold_ns).text);
    finding_advise(findings, "Let writers come first "
                             "(PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP), or take it to read "
                             "less often.");
}

/* There was a waiter, and at most one goroutine worked meanwhile. */
void finding_lock_serialises(struct findings *findings)
{
    const struct blame_row *worst[MOST_LOCKS] = {0};
    BLAME_EACH(row, &findings->waits->blame) {
        if (!is_held(findings, row) ||
            time_share(findings, blame_union_ns(&row->serial)) < LOCK_SHARE ||
            !is_much(findings, row))
            continue;
        const struct blame_row *rest = row;
        for (size_t n = 0; n < MOST_LOCKS && rest; n++) {
            const struct blame_row *other = worst[n];
            if (other && blame_held_ns(other) >= blame_held_ns(rest))
                continue;
            worst[n] = rest;
            rest = other;
        }
    }
    for (size_t i = 0; i < MOST_LOCKS && worst[i]; i++) {
        char effect[160];
        (void)snprintf(effect, sizeof effect,
                       "For %.0f %% of the time, others waited for it and at most one %s worked",
                       100 * time_share(findings, blame_union_ns(&worst[i]->serial)),
                       word(findings, TERM_task));
        say_lock(findings, "lock-serialises", worst[i], effect);
    }
}

/*
 * Much of the time in which goroutines had work they waited for one lock, though others worked
 * meanwhile: then it does not serialise, but costs.
 */
void finding_lock_contention(struct findings *findings)
{
    const struct blame_row *worst = NULL;
    trail_activity activity;
    trail_analysis_activity(findings->analysis, &activity);
    int64_t busy = activity.running_ns;
    ns_add(&busy, activity.runnable_ns);
    BLAME_EACH(row, &findings->waits->blame) {
        if (!row->lock)
            continue;
        ns_add(&busy, row->ns);
        if (is_held(findings, row) && (!worst || row->ns > worst->ns))
            worst = row;
    }
    if (!worst)
        return;
    double share = share_of(worst->ns, busy);
    if (share < LOCK_SHARE || time_share(findings, worst->ns) < LOCK_SHARE ||
        time_share(findings, blame_union_ns(&worst->serial)) >= LOCK_SHARE ||
        !is_much(findings, worst))
        return;
    char effect[160];
    (void)snprintf(effect, sizeof effect,
                   "They waited for it for %.0f %% of the time in which %s had work", 100 * share,
                   word(findings, TERM_tasks));
    say_lock(findings, "lock-contention", worst, effect);
}

/* Whether another finding has the lock that the function held. */
static bool has_lock(const struct findings *findings, trail_name function)
{
    return finding_names(findings, "lock-serialises", function) ||
           finding_names(findings, "lock-contention", function) ||
           finding_names(findings, "long-hold", function);
}

/*
 * One wait for a lock took long, though it hardly shows in the sum of them: a request was slow. Not
 * where the holder only had no CPU, unless the program's own threads had all.
 */
void finding_long_hold(struct findings *findings)
{
    const struct blame_row *worst = NULL;
    bool by_others = !why_ready_not_by_others(findings->analysis->reader);
    BLAME_EACH(row, &findings->waits->blame) {
        bool no_cpu = by_others && (trail_name)row->outside.key == findings->waits->ready &&
                      wait_own_share(row) >= OUTSIDE_SHARE;
        if (is_held(findings, row) && !no_cpu && (!worst || row->longest.ns > worst->longest.ns))
            worst = row;
    }
    if (!worst || worst->longest.ns < LOCK_LEAST ||
        time_share(findings, worst->longest.ns) < HOLD_SHARE || has_lock(findings, worst->function))
        return;
    char effect[80];
    (void)snprintf(effect, sizeof effect, "The longest wait took %.0f %% of the time",
                   100 * time_share(findings, worst->longest.ns));
    say_lock(findings, "long-hold", worst, effect);
}

/* For how long the holder of a lock that others waited for was ready but had no CPU. */
static int64_t not_running_ns(const struct findings *findings, const struct blame_row *row)
{
    double share = wait_own_share(row);
    bool no_cpu = (trail_name)row->outside.key == findings->waits->ready && share >= LACKED_SHARE;
    return is_held(findings, row) && no_cpu ? part_of(blame_held_ns(row), share) : 0;
}

/* The holder of a lock has no CPU while others wait for the lock. */
void finding_holder_not_running(struct findings *findings)
{
    const struct blame_row *worst = NULL;
    int64_t most = 0;
    BLAME_EACH(row, &findings->waits->blame) {
        int64_t ns = not_running_ns(findings, row);
        if (ns > most && is_much(findings, row)) {
            worst = row;
            most = ns;
        }
    }
    /* In Go, others of the program have its Ps then, and do their work. */
    if (!worst || time_share(findings, most) < LOCK_SHARE || has_lock(findings, worst->function) ||
        (!facts_of(findings, worst->wait) && wait_wants_all_cpus(findings)))
        return;
    const struct wait_group *busiest = finding_busiest_but(findings, worst->start);
    struct finding_of of =
        finding_saves("holder-not-running", most, &worst->longest, worst->function, worst->wait);
    of.note = !busiest || busiest->exec_ns < most;
    finding_say(findings, &of,
                "%.*s held %s for %s while others waited, and was ready without a CPU for most "
                "of that",
                NAMED(findings, worst->place), finding_lock(findings, worst->wait).text,
                duration(blame_held_ns(worst)).text);
    finding_explain(findings, "%s at %.*s.",
                    several(worst->waits, "wait", worst->ns, worst->longest.ns).text,
                    NAMED(findings, worst->at));
    advise(findings, worst);
}
