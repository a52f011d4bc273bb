/* Questions about waits that several kinds of findings ask. */
#pragma once

#include "diagnose/findings.h"
#include "diagnose/waits.h"

/* Thresholds of several kinds; a share is a part of the time. */
#define QUEUE_SHARE 0.3
#define QUEUE_WAITS 3
#define ALIKE_SHARE 0.8
#define BUSY_SHARE  0.5
#define ALL_CPUS    0.85

static inline const struct wait_facts *facts_of(const struct findings *findings, trail_name wait)
{
    return wait_facts_of(&findings->analysis->names, wait);
}

/* For how long both went on at the same time. */
static inline int64_t common_ns(const trail_longest *a, const trail_longest *b)
{
    int64_t begin = a->begin_ns > b->begin_ns ? a->begin_ns : b->begin_ns;
    int64_t a_end = (int64_t)((uint64_t)a->begin_ns + (uint64_t)a->ns),
            b_end = (int64_t)((uint64_t)b->begin_ns + (uint64_t)b->ns);
    int64_t end = a_end < b_end ? a_end : b_end;
    return begin < end ? ns_between(begin, end) : 0;
}

static inline int64_t mean(int64_t sum, uint64_t count)
{
    return count > 0 ? sum / (int64_t)count : 0;
}

/*
 * Whether a condition variable serves as a barrier: those that wait for it end each other's waits,
 * several at a time.
 */
bool wait_is_own_barrier(const struct findings *findings, const struct blame_row *row);

/* Whether the wait is for each of several goroutines. */
bool wait_is_for_all(const struct findings *findings, const struct blame_row *row);

/* Whether it is for whatever comes, as in a loop of events: what waits may have nothing to do. */
bool wait_is_for_any(const struct wait_facts *facts);

/* Returns the waits of those with one start function that those with another one ended; or NULL. */
const struct blame_pair *wait_pair(const struct findings *findings, trail_name waiter,
                                   trail_name waker);

/* Whether both wait for the same semaphore: each has permits that the other one waits for. */
bool wait_is_lent(const struct findings *findings, trail_name waiter, trail_name waker);

/* Whether these are waits in which work is handed over. */
bool wait_is_for_work(const struct findings *findings, const struct blame_row *row);

/* Whether the wait is for room in a queue. */
bool wait_is_for_room(const struct findings *findings, const struct blame_row *row);

/*
 * Whether the main goroutine waits, or others wait for all goroutines with this start function to
 * end, for at least the share of the time; or such goroutines wait as long for what these make,
 * directly or through another kind.
 */
bool wait_is_needed(const struct findings *findings, const trail_longest *longest, trail_name start,
                    double share);

/* For how long others waited for the goroutines with this start function to exit. */
int64_t finding_exit_awaited_ns(const struct findings *findings, trail_name start);

/* The time, but for that in which those that wait had no CPU. */
int64_t wait_time_but(const struct findings *findings, int64_t ready_ns);

/*
 * Whether the CPUs were in use, or would have been but for other programs: nothing is gained if
 * those that have work have more.
 */
bool wait_wants_all_cpus(const struct findings *findings);

/*
 * How long goroutines of a group did what: in all, but for the time that they were ready, which
 * other programs make longer; waiting for work; waiting, but not for work, input or locks.
 */
struct group_time {
    int64_t all, work, others;
    uint64_t work_waits;
    const trail_wait *most; /* of the others, the longest in all */
};

struct group_time wait_time_of(const struct findings *findings, const struct wait_group *group);

/*
 * Returns the row in which a group waits for most of `wait`, or NULL. It may hold waits of other
 * groups, too; if all other rows are less than half of the group's waits, the rest is in this one.
 */
const struct outside_row *wait_mostly_in(const struct findings *findings,
                                         const struct wait_group *group, const trail_wait *wait);

/* The place where the goroutine that others waited for was itself waiting for something outside of
 * the program, most of the time; 0: unknown. */
trail_name wait_own_place(const struct findings *findings, const struct blame_row *row);

/* The part of the time in which the goroutine that others waited for was itself waiting. */
double wait_own_share(const struct blame_row *row);

/* For how long it did so, however many waited: of `ns`, in which at least one did. */
int64_t wait_own_ns(const struct blame_row *row, int64_t ns);

/* Whether it did so for most of that time, for something else than a CPU. */
bool wait_of_holder(const struct findings *findings, const struct blame_row *row);

/* Returns the place where the row's longest wait was, perhaps in `text`; or the waiters' start. */
trail_string wait_put_at(const struct findings *findings, const struct blame_row *row, char *text,
                         size_t size);

/* What the goroutine waited for itself, "sleep at flush (store.c:88)". */
struct finding_words wait_own(const struct findings *findings, const struct blame_row *row);

/* Returns "at least ", if wait_own_share is of more than is known; or "". */
const char *wait_own_least(const struct blame_row *row);

/*
 * Puts the last finding, about waits for `wait`, before those of locks that are held over such
 * waits, unless it weighs far less.
 */
void wait_put_before_locks(struct findings *findings, trail_name wait);

/* Explains what the one that ended the waits waited for, if it did; `subject` names it. */
void wait_explain_own_of(struct findings *findings, const struct blame_row *row,
                         const char *subject);

static inline void wait_explain_own(struct findings *findings, const struct blame_row *row)
{
    wait_explain_own_of(findings, row, "it");
}
