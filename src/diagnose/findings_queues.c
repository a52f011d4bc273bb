/* Findings: queues, pools and permits. */
#include <inttypes.h>
#include <stdio.h>

#include "diagnose/findings.h"
#include "diagnose/findings_waits.h"
#include "diagnose/wait_sums.h"
#include "diagnose/waits.h"
#include "words/place.h"
#include "words/process_name.h"

/* Thresholds. A share is a part of the time. */
#define BUSY_MOST      0.8
#define HELPER_SHARE   0.1 /* of what the main goroutine runs */
#define OUTLIVES       3   /* waits, on average, of those that filled a queue */
#define STAGE_MAKES    0.25 /* of the waits; those for stages that waited for room themselves count */
#define STAGE_BACK     0.1 /* of the waits, ended by the one that has waited there, too */
#define ASKED_SHARE    0.25
#define POOLED_BACK    0.9 /* of the waits, ended by those that wait, too; else one makes work */
#define POOLED_LEAST   3   /* goroutines: of two, each may answer the other */
#define DIALS_RARELY   4   /* waits for a connection for each that is made */
#define POOL_WAITS     10
#define POOL_RARELY    4    /* the pool waits for work at most once in so many waits for it */
#define POOL_IDLE      0.2  /* of its time, waiting for work */
#define POOL_OF_CPU    2    /* threads at most for each CPU: more are meant to wait */
#define POOL_MORE      0.5  /* than its threads wait for results, on average */
#define PRODUCER_WAITS 0.25 /* of its time, for something else than work */
#define PRODUCER_RUNS  0.2  /* of its time: less is not mentioned */
#define CONSUMER_WAITS 0.8  /* of their time, for work */

/*
 * Whether what takes from a queue mostly waits for room itself: then it is that queue that is full.
 */
static bool passes_on(const struct findings *findings, const struct blame_row *row)
{
    const struct blame_row as = {.wait = (trail_name)row->outside.key};
    return row->outside.ns > 0 && row->outside.key > 0 && wait_is_for_room(findings, &as) &&
           wait_own_share(row) >= BUSY_SHARE;
}

/* `by` takes from a queue, and what fills it at `at` waited for room for `ns`. */
static void say_full(struct findings *findings, const struct finding_of *of, trail_name by,
                     trail_name at, int64_t ns, struct several waits)
{
    finding_say(findings, of, "%.*s takes from a queue more slowly than %.*s fills it",
                NAMED(findings, by), NAMED(findings, at));
    finding_explain(findings, "The latter waited for room (%.*s) for %.0f %% of the time: %s.",
                    NAMED(findings, of->object), 100 * time_share(findings, ns), waits.text);
    finding_advise(findings, "Make it faster, or let several take from the queue.");
    wait_put_before_locks(findings, of->object);
}

/*
 * Whether requests of net/http wait for connections of others, since no more may be made: those
 * that are being made would have goroutines of their own.
 */
static bool is_host_limit(const struct findings *findings, const struct blame_row *row)
{
    const struct waits *waits = findings->waits;
    uint64_t dials = 0;
    if (row->wait != waits->pools[WAITS_POOL_HTTP] ||
        !text_is(text_of(findings, row->start), "net/http.(*persistConn).readLoop"))
        return false;
    GROUPS_EACH(group, waits) {
        trail_string name = text_of(findings, group->row.name);
        if (text_begins(name, "net/http.(*Transport).startDialConnFor") ||
            text_begins(name, "net/http.(*Transport).dialConnFor"))
            dials += group->row.created;
    }
    return dials * DIALS_RARELY <= row->waits;
}

/*
 * Whether one goroutine makes the room in a channel, and has hardly waited for such room: it is a
 * stage of a pipeline whose stages have one start function. Users of permits take turns.
 */
static bool is_stage(const struct findings *findings, const struct blame_row *row)
{
    const struct wait_group *group = waits_find_group(findings->waits, row->waiter);
    return wait_is_for_room(findings, row) && row->start == row->waiter && group &&
           group->workers >= POOLED_LEAST &&
           share_of(row->goroutine.ns, row->direct_ns) >= STAGE_MAKES &&
           share_of(row->back_ns, row->direct_ns) < STAGE_BACK;
}

/*
 * Whether what ends these waits is one that has waited so itself: it gives a permit back. That does
 * each of several goroutines, too, that the one that waits has created for this.
 */
static bool gives_back(const struct findings *findings, const struct blame_row *row)
{
    const struct wait_group *group = waits_find_group(findings->waits, row->start);
    const struct wait_sums *there = wait_sums_there(&findings->sums, row);
    if (is_stage(findings, row))
        return false;
    if (share_of(row->alike_ns, row->direct_ns) >= ALIKE_SHARE || is_host_limit(findings, row) ||
        wait_is_lent(findings, row->waiter, row->start))
        return true;
    if (!wait_is_for_room(findings, row))
        return false;
    if (group && group->creator == row->waiter && row->waits <= group->row.created)
        return true;
    return share_of(there->alike_ns, there->direct_ns) >= BUSY_SHARE;
}

/* Whether what a queue of Go delays would get no CPU earlier. Of a C program, what is ready may be
 * so because of other programs. */
static bool fills_cpus(const struct findings *findings, const struct blame_row *row)
{
    return !facts_of(findings, row->wait) && wait_wants_all_cpus(findings);
}

/*
 * Whether Go's goroutines take something from a channel, use it while they wait for something
 * outside, and put it back elsewhere. Members of a ring pass it on where they received it.
 */
static bool is_for_pooled(const struct findings *findings, const struct blame_row *row)
{
    const struct waits *waits = findings->waits;
    const struct wait_group *group = waits_find_group(waits, row->start);
    trail_name in = stacks_function(&findings->analysis->stacks, row->waited_in);
    return (row->wait == waits->receive || row->wait == waits->select) && group &&
           group->workers >= POOLED_LEAST && wait_of_holder(findings, row) &&
           share_of(row->back_ns, row->direct_ns) >= POOLED_BACK && in != 0 && in != row->function;
}

/* Collects the kinds that wait most of their time for something from a pool: where they take from
 * a queue, more of them would not help. */
static void find_pool_users(struct findings *findings, struct idmap *users)
{
    BLAME_EACH(row, &findings->waits->blame) {
        const struct wait_group *group = waits_find_group(findings->waits, row->waiter);
        if (group && is_for_pooled(findings, row) &&
            share_of(row->direct_ns, wait_time_of(findings, group).all) >= BUSY_SHARE &&
            !idmap_put(users, row->waiter, findings))
            findings->failed = true;
    }
}

/* A queue is full, since the goroutine that takes from it is slow. */
void finding_queue(struct findings *findings)
{
    struct idmap pool_users = {0};
    find_pool_users(findings, &pool_users);
    BLAME_EACH(row, &findings->waits->blame) {
        int64_t ns = blame_union_ns(&row->held);
        if (row->function == 0 || row->waits < QUEUE_WAITS ||
            time_share(findings, ns) < QUEUE_SHARE || !wait_is_for_room(findings, row) ||
            gives_back(findings, row) || passes_on(findings, row) ||
            idmap_find(&pool_users, row->start) || fills_cpus(findings, row) ||
            finding_names(findings, "pool-too-small", row->start))
            continue;
        const struct finding_of of =
            finding_saves("queue", ns, &row->longest, row->function, row->wait);
        say_full(findings, &of, row->place, row->at, ns,
                 several(row->waits, "wait", row->ns, row->longest.ns));
        wait_explain_own_of(findings, row, "the former");
    }
    idmap_free(&pool_users);
}

/* Whether many waits of this kind timed out: what ends the others need not be a signal. */
static bool times_out(const struct findings *findings, const struct blame_row *row)
{
    const struct wait_group *group = waits_find_group(findings->waits, row->waiter);
    for (size_t i = 0; group && i < group->row.wait_count; i++)
        if (group->waits[i].reason == wait_kind_name(&findings->analysis->names, row->wait))
            return group->waits[i].timed_out * 4 >= group->waits[i].spread.count;
    return false;
}

/*
 * Whether the waits are such as are for permits: for a semaphore, for a condition variable that
 * each time ended the wait of one, or for room in a channel.
 */
static bool is_for_permit(const struct findings *findings, const struct blame_row *row)
{
    const struct wait_facts *facts = facts_of(findings, row->wait);
    bool one_each = row->together * 4 < row->waits && !times_out(findings, row);
    return facts
               ? facts->kind == WIRE_WAIT_SEMAPHORE || facts->kind == WIRE_WAIT_SEND ||
                     (facts->kind == WIRE_WAIT_CONDITION && one_each)
               : row->wait == findings->waits->send || waits_is_pool(findings->waits, row->wait) ||
                     (row->wait == findings->waits->condition && one_each) ||
                     is_for_pooled(findings, row);
}

/* Goroutines of one kind wait for permits that others of them have. */
void finding_permits(struct findings *findings)
{
    static const trail_string channel = {"a channel used as a semaphore", 29},
                              condition = {"a sync.Cond used as a semaphore", 31},
                              pooled = {"a channel used as a pool", 24};
    BLAME_EACH(row, &findings->waits->blame) {
        int64_t ns = blame_union_ns(&row->held);
        if (row->function == 0 || row->waits < QUEUE_WAITS ||
            time_share(findings, ns) < QUEUE_SHARE || !is_for_permit(findings, row) ||
            !gives_back(findings, row) || fills_cpus(findings, row))
            continue;
        const struct finding_of of =
            finding_saves("permits", ns, &row->longest, row->function, row->wait);
        char in[PLACE_TEXT_SIZE];
        trail_string wait = text_of(findings, row->wait),
                     at = wait_put_at(findings, row, in, sizeof in);
        wait = row->wait == findings->waits->send        ? channel
               : row->wait == findings->waits->condition ? condition
               : is_for_pooled(findings, row)            ? pooled
                                                         : wait;
        finding_say(findings, &of, "Too few permits in %.*s", SHOWN(wait));
        finding_explain(findings,
                        "The %s that use it waited for one at %.*s during %.0f %% of the time, %s, "
                        "until %.*s gave one back.",
                        word(findings, TERM_tasks), SHOWN(at), 100 * time_share(findings, ns),
                        several(row->waits, "time", row->ns, row->longest.ns).text,
                        NAMED(findings, row->place));
        wait_explain_own(findings, row);
        finding_advise(findings, "Allow more, or give each back sooner.");
    }
}

/* Whether hardly any CPU is left for what would be divided. */
static bool uses_all_cpus(const struct findings *findings)
{
    const trail_activity *sums = &findings->activity->sums;
    return time_share(findings, sums->running_ns) > ALL_CPUS * (double)sums->procs &&
           sums->procs > 1;
}

/*
 * Whether the main goroutine, which has had work for that time, only has one helper there, or
 * several that waited once, as until they are to end: making these wait less would gain nothing.
 */
static bool is_for_helper(const struct findings *findings, const struct blame_row *row,
                          int64_t busy_ns)
{
    const struct wait_group *group = waits_find_group(findings->waits, row->waiter);
    return row->goroutine.key == 1 && group &&
           (group->workers == 1 || row->waits <= group->workers) &&
           share_of(group->exec_ns, busy_ns) < HELPER_SHARE;
}

/* Whether what waits needs what it waits for: where it waits for any event, it may only serve. */
static bool is_wanted(const struct findings *findings, const struct blame_row *row)
{
    return !wait_is_for_any(facts_of(findings, row->wait)) ||
           wait_is_needed(findings, &row->longest, row->waiter, BUSY_SHARE);
}

/* For how long the goroutine that ended the waits had work. */
static int64_t busy_ns(const struct findings *findings, const struct blame_row *row)
{
    return 1000 *
           (int64_t)(uintptr_t)idmap_find(&findings->waits->busy, (uint64_t)row->goroutine.key);
}

static bool is_bottleneck(const struct findings *findings, const struct blame_row *row)
{
    if (row->function == 0 || row->waits < QUEUE_WAITS || !wait_is_for_work(findings, row) ||
        share_of(row->goroutine.ns, row->ns) < ALIKE_SHARE ||
        time_share(findings, blame_union_ns(&row->held)) < BUSY_SHARE)
        return false;
    int64_t busy = busy_ns(findings, row);
    return time_share(findings, busy) >= BUSY_MOST && !uses_all_cpus(findings) &&
           !wait_is_own_barrier(findings, row) && !is_for_helper(findings, row, busy) &&
           is_wanted(findings, row);
}

/* Whether others waited for the same goroutine for longer, as on another connection, or on the
 * other side of a queue. */
static bool is_said_elsewhere(const struct findings *findings, const struct blame_row *row)
{
    int64_t ns = blame_union_ns(&row->held);
    BLAME_EACH(other, &findings->waits->blame) {
        int64_t longer = blame_union_ns(&other->held);
        if (other != row && other->goroutine.key == row->goroutine.key &&
            (longer > ns || (longer == ns && other < row)) && is_bottleneck(findings, other))
            return true;
    }
    return false;
}

/* Others wait for what one goroutine makes, which has work nearly all the time. */
void finding_bottleneck(struct findings *findings)
{
    BLAME_EACH(row, &findings->waits->blame) {
        if (!is_bottleneck(findings, row) || is_said_elsewhere(findings, row))
            continue;
        int64_t ns = blame_union_ns(&row->held), busy = busy_ns(findings, row);
        const struct finding_of of =
            finding_saves("bottleneck", ns, &row->longest, row->start, row->wait);
        const struct wait_group *group = waits_find_group(findings->waits, row->start);
        char who[96] = "it";
        if (!group || group->workers != 1)
            (void)snprintf(who, sizeof who, "%s %" PRId64, word(findings, TERM_task),
                           row->goroutine.key);
        finding_say(findings, &of, "%.*s is the bottleneck: %s had work for %.0f %% of the time",
                    NAMED(findings, row->start), who, 100 * time_share(findings, busy));
        finding_explain(
            findings, "Others waited for it at %.*s (%.*s) during %.0f %%: %s, ended by %.*s.",
            NAMED(findings, row->at), NAMED(findings, row->wait), 100 * time_share(findings, ns),
            several(row->waits, "wait", row->ns, row->longest.ns).text,
            NAMED(findings, row->place));
        finding_advise(findings, "Make it faster, or divide its work.");
    }
}

/* How many waits for work or results of goroutines with this start function others ended. */
static uint64_t waits_ended(const struct blame *blame, trail_name waiter)
{
    uint64_t count = 0;
    PAIRS_EACH(pair, blame)
        count += pair->waiter == waiter ? pair->waits : 0;
    return count;
}

/*
 * Whether those that end the waits of `pair` also took work from those that wait. What a client
 * gets from others is no such work, and one that waits for room gives some.
 */
static bool takes_work(const struct findings *findings, const struct blame_pair *pair)
{
    const struct blame *blame = &findings->waits->blame;
    const struct blame_pair *back = wait_pair(findings, pair->waker, pair->waiter);
    const struct blame_row as = {.wait = back ? back->wait : 0};
    if (pair->waiter == pair->waker || !back || wait_is_for_room(findings, &as) ||
        wait_is_lent(findings, pair->waiter, pair->waker))
        return false;
    uint64_t taken = back->waits;
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
        room |= wait_is_for_room(findings, row);
        results |= !wait_is_for_room(findings, row) && wait_is_for_work(findings, row);
    }
    return room && results;
}

/*
 * Whether several Go goroutines at once take work from the channel in which `pair` waits for room.
 */
static bool makes_room(const struct findings *findings, const struct blame_pair *pair)
{
    const struct waits *waits = findings->waits;
    const struct wait_group *pool = waits->by_name[pair->waker];
    if (!waits->is_go || pair->waiter == pair->waker || pool->workers < 2 ||
        (pool->row.created > 0 && pool->most_alive < pool->workers))
        return false;
    BLAME_EACH(row, &waits->blame) {
        if (row->start == pair->waker && row->waiter == pair->waiter && row->waits >= POOL_WAITS &&
            wait_is_for_room(findings, row) && !gives_back(findings, row))
            return true;
    }
    return false;
}

/* Whether a group hardly waits for work, but for something else. */
static bool is_held_up(const struct group_time *time)
{
    return time->most && share_of(time->work, time->all) <= POOL_IDLE &&
           share_of(time->others, time->all) >= BUSY_SHARE;
}

/*
 * The time of a pool of which `asker` wants more results at once than it can make. Reads that
 * neither `asker` nor a group that it feeds ended then count as waits for something else, such as a
 * server.
 */
static struct group_time time_when_asked(const struct findings *findings,
                                         const struct wait_group *pool, trail_name asker)
{
    struct group_time time = wait_time_of(findings, pool);
    EACH(const trail_wait, wait, pool->waits, pool->row.wait_count) {
        const struct wait_facts *facts = facts_of(findings, wait->reason);
        int64_t read_ns = wait->spread.sum_ns;
        if (!facts || facts->kind != WIRE_WAIT_READ)
            continue;
        PAIRS_EACH(pair, &findings->waits->blame) {
            if (pair->waiter == pool->row.name &&
                (pair->waker == asker || wait_pair(findings, pair->waker, asker)))
                ns_add(&read_ns, -pair->ns);
        }
        if (read_ns <= 0)
            continue;
        ns_add(&time.work, -read_ns);
        ns_add(&time.others, read_ns);
        if (!time.most || time.most->spread.sum_ns < wait->spread.sum_ns)
            time.most = wait;
    }
    return time;
}

/* Whether these are waits for results, or answers over pipes and connections: each has been asked
 * for, and is waited for alone. */
static bool is_for_answers(const struct findings *findings, trail_name wait)
{
    const struct wait_facts *facts = facts_of(findings, wait);
    return facts && (facts->kind == WIRE_WAIT_READ || facts->kind == WIRE_WAIT_FUTURE);
}

/*
 * What faster wakers of `pair` may save: its waits, and the time for which they still worked after
 * the waiters had ended.
 */
static int64_t pair_gain(const struct findings *findings, const struct blame_pair *pair)
{
    const struct waits *waits = findings->waits;
    int64_t gain = blame_union_ns(&pair->waiting), length = length_of(findings);
    int64_t ended = waits->by_name[pair->waiter]->last_end_ns,
            after = ns_between(ended, waits->by_name[pair->waker]->last_end_ns);
    if (ended != 0 && after > 0)
        ns_add(&gain, after);
    return gain < length ? gain : length;
}

/* The pool hardly waited for work, and others waited for it at `at` for `ns`. */
static void say_too_small(struct findings *findings, const struct finding_of *of,
                          const struct wait_group *pool, const struct group_time *time,
                          trail_name at, int64_t ns, struct several waits)
{
    const struct outside_row *mostly_in = wait_mostly_in(findings, pool, time->most);
    trail_string in = mostly_in ? text_of(findings, mostly_in->function) : (trail_string){"", 0};
    finding_say(findings, of, "%.*s is the bottleneck: its pool of %s %s is too small",
                NAMED(findings, of->function), counted(pool->workers).text,
                word(findings, pool->workers == 1 ? TERM_task : TERM_tasks));
    finding_explain(findings,
                    "The pool hardly waited for work (%s of %s), but %.0f %% of the time for "
                    "other things (mostly %.*s%s%.*s). Others waited for it at %.*s (%.*s) during "
                    "%.0f %% of the time: %s.",
                    duration(time->work).text, duration(time->all).text,
                    100 * share_of(time->others, time->all), NAMED(findings, time->most->reason),
                    in.size ? " in " : "", SHOWN(in), NAMED(findings, at),
                    NAMED(findings, of->object), 100 * time_share(findings, ns), waits.text);
    finding_advise(findings, "Let more %s take from the queue, or make it faster.",
                   word(findings, TERM_tasks));
    wait_put_before_locks(findings, of->object);
}

/*
 * Others wait for what a pool makes, whose goroutines always have work and use no CPU for it. That
 * they waited for work from these others a few times shows that this is where it comes from: one
 * that makes something now and then, and makes others work, is no pool. What waits for a result has
 * asked for it, and there must be more of these than the pool can work for at the same time.
 */
void finding_pool_too_small(struct findings *findings)
{
    const struct waits *waits = findings->waits;
    PAIRS_EACH(pair, &waits->blame) {
        const struct wait_group *pool = waits->by_name[pair->waker];
        int64_t ns = blame_union_ns(&pair->waiting);
        bool result = waits_for_result(waits, pair->wait);
        /* Goroutines of a connection wait for the next request. */
        if (pair->waits < POOL_WAITS || time_share(findings, ns) < BUSY_SHARE ||
            (waits->is_go && text_begins(text_of(findings, pair->waiter), "net/http.")) ||
            (is_for_answers(findings, pair->wait) &&
             share_of(pair->ns, ns) < (double)pool->workers + POOL_MORE) ||
            !(result || (waits_hands_over(waits, pair->wait) &&
                         (takes_work(findings, pair) || is_asked(findings, pair) ||
                          makes_room(findings, pair)))))
            continue;
        struct group_time time =
            result ? time_when_asked(findings, pool, pair->waiter) : wait_time_of(findings, pool);
        if (!is_held_up(&time))
            continue;
        const struct finding_of of = finding_saves("pool-too-small", pair_gain(findings, pair),
                                                   &pair->longest, pair->waker, pair->wait);
        say_too_small(findings, &of, pool, &time, pair->at, ns,
                      several(pair->waits, "wait", pair->ns, pair->longest.ns));
    }
}

/* The row with the longest waits of others for what the goroutines of a pool do, or for their exit;
 * NULL: none. */
static const struct blame_row *awaits(const struct findings *findings,
                                      const struct wait_group *pool)
{
    const struct blame_row *most = NULL;
    BLAME_EACH(row, &findings->waits->blame) {
        if (row->start == pool->row.name && row->waiter != pool->row.name && !row->lock &&
            (!most || blame_union_ns(&row->held) > blame_union_ns(&most->held)))
            most = row;
    }
    return most;
}

/*
 * Whether the threads of a pool, few for each CPU, mostly sleep or wait for files or the like, in
 * many pieces. Clients with pauses of their own wait for each answer.
 */
static bool is_small_pool(const struct findings *findings, const struct wait_group *pool,
                          const struct group_time *time)
{
    const struct waits *waits = findings->waits;
    if (pool->workers < 2 || pool->workers > POOL_OF_CPU * findings->activity->sums.procs ||
        pool->row.created != pool->workers || !is_held_up(time) ||
        time->work_waits * POOL_RARELY > time->most->spread.count ||
        time->most->spread.count < POOL_WAITS * pool->workers)
        return false;
    const struct wait_facts *facts = facts_of(findings, time->most->reason);
    return time->most->reason == waits->sleep ||
           (facts && (facts->kind == WIRE_WAIT_FILE || facts->kind == WIRE_WAIT_FAULT ||
                      facts->kind == WIRE_WAIT_CHILD || facts->kind == WIRE_WAIT_CONNECT ||
                      facts->kind == WIRE_WAIT_LOOKUP));
}

/*
 * Returns the row of the sleeps of goroutines of Go that only sleep, but for locks, and wake no
 * other in between; NULL: they take part in what others do, or the sleep is in a loop of their own,
 * which may be a pace. The others may take work from a channel that was never empty, which is in no
 * trace.
 */
static const struct outside_row *only_sleeps(const struct findings *findings,
                                             const struct wait_group *group,
                                             const struct group_time *time)
{
    const struct waits *waits = findings->waits;
    for (size_t i = 0; i < group->row.wait_count; i++)
        if (&group->waits[i] != time->most && group->waits[i].reason != waits->sync)
            return NULL;
    const struct outside_row *in = wait_mostly_in(findings, group, time->most);
    return waits->is_go && in && in->woke == 0 && in->created == 0 && in->called ? in : NULL;
}

/* Goroutines slept for one piece of work after the other, as far as is known, and others waited for
 * their end at `at`. */
static void say_few_sleep(struct findings *findings, const struct finding_of *of,
                          const struct wait_group *pool, const struct group_time *time,
                          const struct outside_row *in, trail_name at)
{
    const trail_histogram *spread = &in->spread;
    finding_say(findings, of,
                "The %s %s of %.*s slept for %.0f %% of their time at %.*s, while their end was "
                "waited for at %.*s",
                counted(pool->workers).text, word(findings, TERM_tasks),
                NAMED(findings, of->function), 100 * share_of(spread->sum_ns, time->all),
                NAMED(findings, in->place), NAMED(findings, at));
    finding_explain(findings, "%s.",
                    several(spread->count, "sleep", spread->sum_ns, in->longest.ns).text);
    finding_advise(findings, "If they take work from a queue, let more %s do so.",
                   word(findings, TERM_tasks));
}

/*
 * The same where all work was handed over before the first results: another one waits for all of
 * it, or for the end of the pool's threads. Those that never waited for work need not be a pool.
 */
void finding_few_workers(struct findings *findings)
{
    const struct waits *waits = findings->waits;
    GROUPS_EACH(pool, waits) {
        struct group_time time = wait_time_of(findings, pool);
        if (!is_small_pool(findings, pool, &time) || wait_wants_all_cpus(findings))
            continue;
        const struct blame_row *row = awaits(findings, pool);
        bool took = !waits->is_go && time.work_waits > 0;
        const struct outside_row *in = took ? NULL : only_sleeps(findings, pool, &time);
        if (!row || time_share(findings, blame_union_ns(&row->held)) < BUSY_SHARE ||
            finding_names(findings, "pool-too-small", pool->row.name) ||
            !(took || (in && wait_is_for_all(findings, row))))
            continue;
        int64_t ns = blame_union_ns(&row->held);
        struct finding_of of =
            finding_saves("pool-too-small", ns / 2, &row->longest, pool->row.name, row->wait);
        if (!took) { /* it is not known that more would share the work */
            of.weight_ns = of.gain_ns;
            of.gain_ns = 0;
            of.saves = false;
        }
        if (took)
            say_too_small(findings, &of, pool, &time, row->at, ns,
                          several(row->waits, "wait", row->ns, row->longest.ns));
        else
            say_few_sleep(findings, &of, pool, &time, in, row->at);
    }
}

/* For how long goroutines with the start function `waiter` waited for those of `name` to exit. */
static int64_t exit_awaited_by_ns(const struct findings *findings, trail_name waiter,
                                  trail_name name)
{
    int64_t sum = 0;
    BLAME_EACH(row, &findings->waits->blame) {
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
 * A queue is full, and what takes from it waits for something else most of the time, but hardly
 * ever for work. It still had some when those that fill the queue had ended: else it could be the
 * one that makes work.
 */
void finding_slow_consumer(struct findings *findings)
{
    const struct waits *waits = findings->waits;
    PAIRS_EACH(pair, &waits->blame) {
        const struct wait_facts *facts = facts_of(findings, pair->wait);
        int64_t ns = blame_union_ns(&pair->waiting);
        if (pair->waits < POOL_WAITS || pair->waiter == pair->waker ||
            time_share(findings, ns) < BUSY_SHARE || !facts ||
            !(facts->kind == WIRE_WAIT_CONDITION || facts->kind == WIRE_WAIT_SEMAPHORE) ||
            !outlives(findings, pair) ||
            exit_awaited_by_ns(findings, pair->waker, pair->waiter) > 0 ||
            finding_names(findings, "futile-wakeups", pair->waiter) ||
            finding_names(findings, "pool-too-small", pair->waker))
            continue;
        struct group_time time = wait_time_of(findings, waits->by_name[pair->waker]);
        if (!is_held_up(&time))
            continue;
        const struct finding_of of = finding_saves("queue", pair_gain(findings, pair),
                                                   &pair->longest, pair->waker, pair->wait);
        say_full(findings, &of, pair->waker, pair->at, ns,
                 several(pair->waits, "wait", pair->ns, pair->longest.ns));
        finding_explain(findings,
                        "Meanwhile the former spent %.0f %% of its time waiting (mostly %.*s).",
                        100 * share_of(time.others, time.all), NAMED(findings, time.most->reason));
    }
}

/* Whether most sleeps of a group are until points in time. */
static bool sleeps_until(const struct findings *findings, trail_name start)
{
    uint64_t all = 0, until = 0;
    OUTSIDE_EACH(row, &findings->waits->outside) {
        if (row->kind != WIRE_WAIT_SLEEP || row->waiter != start)
            continue;
        all += row->spread.count;
        until += row->until;
    }
    return until * 2 > all;
}

/*
 * Whether what makes the work sleeps most of the time to keep a pace: in another process, a client
 * at its own, or until points in time.
 */
static bool is_paced(const struct findings *findings, const struct blame_pair *pair,
                     const trail_wait *most)
{
    struct process_name waiter, waker;
    if (most->reason != findings->waits->sleep)
        return false;
    return sleeps_until(findings, pair->waker) ||
           (process_name_of(text_of(findings, pair->waiter), &waiter) &&
            process_name_of(text_of(findings, pair->waker), &waker) && waiter.pid != waker.pid);
}

/* Says that, how long it waited and ran, and where it waited. */
static void say_slow_producer(struct findings *findings, const struct finding_of *of,
                              const struct wait_group *group, const struct group_time *time)
{
    double ran = share_of(group->exec_ns, time->all);
    const struct outside_row *in = wait_mostly_in(findings, group, time->most);
    trail_string place = in ? text_of(findings, in->place) : (trail_string){"", 0};
    char running[40] = "";
    if (ran >= PRODUCER_RUNS)
        (void)snprintf(running, sizeof running, ", and %.0f %% running", 100 * ran);
    finding_say(findings, of,
                "%.*s is the bottleneck, a slow producer: it spent %.0f %% of its time waiting "
                "(mostly %.*s%s%.*s)%s",
                NAMED(findings, of->function), 100 * share_of(time->others, time->all),
                NAMED(findings, time->most->reason), place.size ? " at " : "", SHOWN(place),
                running);
}

/*
 * One goroutine makes the work of others, which wait for nearly all of the time, while it mostly
 * sleeps or waits for a file. A server also waits for work, but its end is not what others wait
 * for.
 */
void finding_slow_producer(struct findings *findings)
{
    const struct waits *waits = findings->waits;
    PAIRS_EACH(pair, &waits->blame) {
        const struct wait_group *made_by = waits->by_name[pair->waker];
        const struct wait_group *made_for = waits->by_name[pair->waiter];
        if (pair->waits < POOL_WAITS || pair->waiter == pair->waker || made_by->workers != 1 ||
            made_by->row.created != 1 || !waits_hands_over(waits, pair->wait))
            continue;
        struct group_time makes = wait_time_of(findings, made_by),
                          takes = wait_time_of(findings, made_for);
        int64_t ns = blame_union_ns(&pair->waiting);
        if (!makes.most || makes.work_waits > 0 || outlives(findings, pair) ||
            is_paced(findings, pair, makes.most) ||
            share_of(makes.others, makes.all) < PRODUCER_WAITS ||
            share_of(takes.work, takes.all) < CONSUMER_WAITS ||
            time_share(findings, ns) < CONSUMER_WAITS ||
            (time_share(findings, finding_exit_awaited_ns(findings, pair->waker)) < BUSY_SHARE &&
             time_share(findings, finding_exit_awaited_ns(findings, pair->waiter)) < BUSY_SHARE) ||
            finding_names(findings, "bottleneck", pair->waker))
            continue;
        bool runs = share_of(made_by->exec_ns, makes.all) >= PRODUCER_RUNS;
        int64_t gain = runs || makes.others > ns ? ns : makes.others;
        const struct finding_of of =
            finding_saves("slow-producer", gain, &pair->longest, pair->waker, pair->wait);
        say_slow_producer(findings, &of, made_by, &makes);
        finding_explain(findings,
                        "Meanwhile, the %s of %.*s waited for work from it at %.*s (%.*s) for %.0f "
                        "%% of their time: %s.",
                        word(findings, TERM_tasks), NAMED(findings, pair->waiter),
                        NAMED(findings, pair->at), NAMED(findings, pair->wait),
                        100 * share_of(takes.work, takes.all),
                        several(pair->waits, "wait", pair->ns, pair->longest.ns).text);
        finding_advise(findings, "Let it %s, or let several %s produce.",
                       makes.most->reason == waits->sleep
                           ? "be woken by what it sleeps for"
                           : "wait for several things at the same time",
                       word(findings, TERM_tasks));
    }
}
