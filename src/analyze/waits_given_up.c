/*
 * Waits for locks that were given up at their time limit, because another goroutine had the lock.
 * Nothing ended them; what held the lock is known when it releases it, since recordings of C
 * programs have the length of each hold. Until then they are kept, the last ones of all locks.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/waits.h"

/* Drops the older half. */
static void make_room(struct given_up *kept)
{
    size_t half = GIVEN_UP_MOST / 2;
    memmove(kept->locks, kept->locks + half, half * sizeof *kept->locks);
    memmove(kept->waits, kept->waits + half, half * sizeof *kept->waits);
    kept->count = half;
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
    kept->locks[kept->count] = lock;
    kept->waits[kept->count++] = *wait;
    return true;
}

/* Whether a hold since that time, which the text of the log rounds, is the only one in the wait. */
static bool is_within(const struct blame_wait *wait, int64_t taken_ns)
{
    return ns_between(wait->begin_ns, taken_ns) <= ns_between(wait->begin_ns, wait->end_ns) / 5;
}

bool waits_blame_given_up(struct waits *waits, uint64_t lock, const struct held *held)
{
    struct given_up *kept = waits->given_up;
    size_t left = 0;
    bool fine = true;
    for (size_t i = 0; kept && i < kept->count; i++) {
        struct blame_wait *wait = &kept->waits[i];
        if (kept->locks[i] != lock) {
            if (left < i) {
                kept->locks[left] = kept->locks[i];
                kept->waits[left] = *wait;
            }
            left++;
            continue;
        }
        if (wait->goroutine == held->goroutine || !is_within(wait, held->taken_ns))
            continue; /* several had the lock, or it is not known what did */
        wait->late = true;
        wait->waker = held->goroutine;
        wait->start = held->start;
        wait->function = held->function;
        wait->place = held->place;
        wait->held_ns = held->all_ns;
        fine = blame_add(&waits->blame, wait) && fine;
    }
    if (kept)
        kept->count = left;
    return fine;
}
