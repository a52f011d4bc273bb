/* Counts sleeps and waits for what is outside the program, by function: see outside.h. */
#include "diagnose/outside.h"

#include <stdlib.h>

#include "analyze/goroutines.h"
#include "base/grow.h"

/* Each sleep of an exponential back-off is twice as long as the one before, plus some delay. */
#define DOUBLE_LEAST 1.8
#define DOUBLE_MOST  2.3

void outside_init(struct outside *outside)
{
    outside->now = OBJECTS_OF(struct outside_now);
}

static void drop_rows(struct outside *outside)
{
    for (size_t i = 0; i < outside->count; i++) {
        trail_histogram_free(&outside->rows[i].spread);
        trail_histogram_free(&outside->rows[i].runs);
    }
    outside->count = 0;
}

void outside_free(struct outside *outside)
{
    drop_rows(outside);
    free(outside->rows);
    intern_free(&outside->keys);
    objects_free(&outside->now);
}

void outside_clear(struct outside *outside)
{
    objects_clear(&outside->now);
    intern_clear(&outside->keys);
    drop_rows(outside);
}

void outside_forget(struct outside *outside, int64_t goroutine)
{
    objects_drop(&outside->now, (uint64_t)goroutine);
}

void outside_was_until(struct outside *outside, int64_t goroutine)
{
    const struct outside_now *now = objects_find(&outside->now, (uint64_t)goroutine);
    struct outside_row *row = now && now->row ? &outside->rows[now->row - 1] : NULL;
    if (row && !now->waits && row->kind == WIRE_WAIT_SLEEP)
        row->until++;
}

void outside_break(struct outside *outside, int64_t goroutine)
{
    struct outside_now *now = objects_find(&outside->now, (uint64_t)goroutine);
    if (now)
        now->row = now->woke = 0;
}

void outside_woke(struct outside *outside, int64_t goroutine)
{
    struct outside_now *now = objects_find(&outside->now, (uint64_t)goroutine);
    if (now)
        now->woke++;
}

void outside_created(struct outside *outside, int64_t goroutine)
{
    struct outside_now *now = objects_find(&outside->now, (uint64_t)goroutine);
    if (now)
        now->created++;
}

/* Returns the number of the row, from 1; 0 if out of memory. */
static size_t row_of(struct outside *outside, const struct outside_wait *wait)
{
    const uint32_t key[] = {wait->kind,      wait->function,  wait->caller,
                            wait->in_sqlite, wait->of_server, wait->deadline};
    bool fresh;
    if (!GROW(outside->rows, outside->capacity, outside->count + 1))
        return 0;
    size_t number = (size_t)intern_put(&outside->keys, key, sizeof key, &fresh);
    if (number != 0 && fresh)
        outside->rows[outside->count++] = (struct outside_row){
            .kind = wait->kind,
            .function = wait->function,
            .called = wait->called,
            .in_sqlite = wait->in_sqlite,
            .of_server = wait->of_server,
            .deadline = wait->deadline,
        };
    return number;
}

/* Counts what a goroutine ran between two waits in the row. Returns false if out of memory. */
static bool count_run(struct outside_row *row, const struct outside_now *now,
                      const struct outside_wait *wait)
{
    int64_t ns = ns_between(now->exec_ns, wait->exec_ns);
    row->returns++;
    row->woke += now->woke;
    row->created += now->created;
    ns_add(&row->between_ns, ns_between(now->end_ns, wait->begin_ns));
    ns_add(&row->exec_ns, ns);
    if (ns > row->longest_run.ns) {
        row->longest_run = (trail_longest){ns, now->end_ns, wait->goroutine};
        row->runs_before = row->runs.count;
        row->runner = now->waiter;
    }
    return trail_histogram_add(&row->runs, ns);
}

bool outside_begin(struct outside *outside, const struct outside_wait *wait)
{
    struct outside_now *now = objects_get(&outside->now, (uint64_t)wait->goroutine);
    size_t number = row_of(outside, wait);
    if (!now || number == 0)
        return false;
    struct outside_row *row = &outside->rows[number - 1];
    bool again = now->row == number;
    if (again && !count_run(row, now, wait))
        return false;
    *now = (struct outside_now){.row = number,
                                .waits = true,
                                .wait = wait->wait,
                                .place = wait->place,
                                .waiter = wait->waiter,
                                .ends = now->ends,
                                .slept_ns = again ? now->slept_ns : 0,
                                .doubled = again ? now->doubled : 0,
                                .begin_ns = wait->begin_ns};
    return true;
}

/* Returns what is known of the goroutine that ended a wait of `now`. */
static struct outside_peer peer_of(const struct outside *outside, const struct outside_now *now,
                                   int64_t end_ns, const struct goroutine *waker)
{
    struct outside_peer peer = {0};
    if (!waker)
        return peer;
    peer.start = waker->name;
    const struct outside_now *its = objects_find(&outside->now, (uint64_t)waker->id);
    if (!its || its->row == 0 || its->waits)
        return peer;
    peer.wait = its->wait;
    peer.place = its->place;
    /* It may have run before this wait began. */
    peer.ran_ns = ns_between(its->exec_ns, goroutine_ran_ns(waker, end_ns));
    if (its->end_ns < now->begin_ns)
        ns_add(&peer.ran_ns, ns_between(now->begin_ns, its->end_ns));
    peer.ns = ns_between(its->begin_ns > now->begin_ns ? its->begin_ns : now->begin_ns,
                         its->end_ns < end_ns ? its->end_ns : end_ns);
    return peer;
}

/* Counts a sleep that is about twice as long as the one before. */
static void count_doubled(struct outside_row *row, struct outside_now *now, int64_t ns)
{
    double times = now->slept_ns > 0 ? (double)ns / (double)now->slept_ns : 0;
    now->doubled = times >= DOUBLE_LEAST && times <= DOUBLE_MOST ? now->doubled + 1 : 0;
    now->slept_ns = ns;
    row->doubled += now->doubled >= 2;
}

bool outside_end(struct outside *outside, int64_t goroutine, int64_t end_ns, int64_t exec_ns,
                 const struct goroutine *waker)
{
    struct outside_now *now = objects_find(&outside->now, (uint64_t)goroutine);
    if (!now || !now->waits)
        return true;
    struct outside_row *row = &outside->rows[now->row - 1];
    int64_t ns = ns_between(now->begin_ns, end_ns);
    if (row->kind == WIRE_WAIT_SLEEP)
        count_doubled(row, now, ns);
    now->waits = false;
    now->exec_ns = exec_ns;
    now->end_ns = end_ns;
    row->beginners += now->ends++ == 0;
    blame_union_add(&row->at_least_one, now->begin_ns, end_ns);
    row->waiters_differ |= row->spread.count > 0 && row->waiter != now->waiter;
    row->of_main |= goroutine == 1;
    if (ns > row->longest.ns) {
        row->longest = (trail_longest){.ns = ns, .begin_ns = now->begin_ns, .goroutine = goroutine};
        row->wait = now->wait;
        row->place = now->place;
        row->waiter = now->waiter;
        row->peer = peer_of(outside, now, end_ns, waker);
    }
    if (row->longest.goroutine == goroutine)
        row->longest_ends = now->ends;
    return trail_histogram_add(&row->spread, ns);
}

int64_t outside_slept_on_ns(const struct outside_row *row, int64_t time_ns)
{
    const struct blame_union *slept = &row->at_least_one;
    return slept->count > 0 ? ns_between(time_ns, slept->last[slept->count - 1].end) : INT64_MIN;
}
