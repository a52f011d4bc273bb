/*
 * Waits for locks that were given up at their time limit, because another goroutine had the lock.
 * Nothing ended them; what held the lock becomes known when it is released, since recordings of C
 * programs have the length of each hold. Until then the last of these waits are kept, of all locks
 * together; if there are too many, the waits of a goroutine are joined in pairs.
 */
#include <stdlib.h>
#include <string.h>

#include "base/share.h"
#include "diagnose/waits.h"

#define NEIGHBOURS  64  /* how far ahead the next wait of a goroutine is searched for */
#define WITHIN_PART 0.8 /* of a wait: a hold that covers it leaves no time for another one */

static uint64_t bit_of(uint64_t lock)
{
    return UINT64_C(1) << (lock * UINT64_C(0x9e3779b97f4a7c15) >> 58);
}

/* Makes `wait`, and the next one of its goroutine, one wait. */
static void join(struct blame_wait *wait, const struct blame_wait *next)
{
    ns_add(&wait->between_ns, ns_between(wait->end_ns, next->begin_ns));
    ns_add(&wait->between_ns, next->between_ns);
    if (next->longest_ns > wait->longest_ns) {
        wait->longest_ns = next->longest_ns;
        wait->longest_begin_ns = next->longest_begin_ns;
    }
    wait->times += next->times;
    wait->end_ns = next->end_ns;
    wait->end_serial = next->end_serial;
}

static void join_next(struct given_up *kept, size_t i)
{
    struct given_up_wait *of = &kept->of[i];
    for (size_t n = i + 1; n < kept->count && n <= i + NEIGHBOURS; n++) {
        struct given_up_wait *next = &kept->of[n];
        if (next->lock != of->lock || next->wait.goroutine != of->wait.goroutine)
            continue;
        if (next->wait.at == of->wait.at && next->wait.begin_ns >= of->wait.end_ns) {
            join(&of->wait, &next->wait);
            next->lock = 0;
        }
        return;
    }
}

/* Joins waits in pairs; if too few can be joined, drops the older half. */
static void make_room(struct given_up *kept)
{
    size_t left = 0, half = GIVEN_UP_MOST / 2;
    for (size_t i = 0; i < kept->count; i++) {
        if (kept->of[i].lock == 0)
            continue;
        join_next(kept, i);
        kept->of[left++] = kept->of[i];
    }
    if (left > GIVEN_UP_MOST - half / 2) {
        memmove(kept->of, kept->of + left - half, half * sizeof *kept->of);
        left = half;
    }
    kept->count = left;
}

bool waits_give_up(struct waits *waits, uint64_t lock, const struct blame_wait *wait)
{
    if (!waits->given_up)
        waits->given_up = calloc(1, sizeof *waits->given_up);
    struct given_up *kept = waits->given_up;
    if (!kept)
        return false;
    if (kept->count == GIVEN_UP_MOST)
        make_room(kept);
    struct given_up_wait *of = &kept->of[kept->count++];
    *of = (struct given_up_wait){lock, *wait};
    of->wait.times = 1;
    of->wait.longest_ns = ns_between(wait->begin_ns, wait->end_ns);
    of->wait.longest_begin_ns = wait->begin_ns;
    kept->locks |= bit_of(lock);
    return true;
}

/* Whether a hold since that time covers most of the wait, which then had no other holder. */
static bool is_within(const struct blame_wait *wait, int64_t taken_ns)
{
    int64_t begin_ns = taken_ns > wait->begin_ns ? taken_ns : wait->begin_ns;
    return share_of(ns_between(begin_ns, wait->end_ns), ns_between(wait->begin_ns, wait->end_ns)) >=
           WITHIN_PART;
}

static bool blame_on(struct waits *waits, struct blame_wait *wait, const struct held *held)
{
    if (wait->goroutine == held->goroutine || !is_within(wait, held->taken_ns))
        return true; /* several held the lock, or it is not known which did */
    wait->late = true;
    wait->waker = held->goroutine;
    wait->start = held->start;
    wait->function = held->function;
    wait->place = held->place;
    wait->held_ns = held->all_ns;
    return blame_add(&waits->blame, wait);
}

bool waits_blame_given_up(struct waits *waits, uint64_t lock, const struct held *held)
{
    struct given_up *kept = waits->given_up;
    size_t left = 0;
    bool fine = true;
    if (!kept || !(kept->locks & bit_of(lock)))
        return true;
    kept->locks = 0;
    for (size_t i = 0; i < kept->count; i++) {
        if (kept->of[i].lock == lock) {
            fine = blame_on(waits, &kept->of[i].wait, held) && fine;
            continue;
        }
        kept->locks |= bit_of(kept->of[i].lock);
        if (left < i)
            kept->of[left] = kept->of[i];
        left++;
    }
    kept->count = left;
    return fine;
}
