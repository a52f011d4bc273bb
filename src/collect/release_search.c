/* Finds the release that ended a wait: see release_search.h. */
#include "collect/release_search.h"

#include "collect/parts.h"

/* How many releases of other locks in the same slot are skipped. */
#define MAX_TRIES 64

struct release_search release_search_of(struct collect *c, const struct shm_record *r)
{
    return (struct release_search){c, r->object, r->release, r->time, r->end};
}

/* Whether the release was for the object, in the time of the wait: other objects may have the same
 * slot. */
static bool is_within(const struct release *r, struct release_search s)
{
    return r && r->object == s.object && r->time >= s.begin && r->time <= s.end;
}

/*
 * Returns the first number whose release is not older than the wait; at most number + 1. It is
 * usually one of the last, so these are tried first, in growing steps.
 */
static uint32_t first_since(struct release_search s)
{
    uint32_t low = 1, high = s.number + 1;
    for (uint64_t step = 1; step <= s.number && low == 1; step *= 2) {
        uint32_t at = (uint32_t)(s.number + 1 - step);
        const struct release *r = release_at(s.c, s.object, at);
        if (r && r->time < s.begin)
            low = at + 1;
        else if (r)
            high = at;
    }
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct release *r = release_at(s.c, s.object, middle);
        if (!r || r->time < s.begin)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_left_over(const struct release *r)
{
    return !r || r->all || !r->taken;
}

/* Returns the first number from `number` on whose release can end a wait. Shortens the path for the
 * next search. */
static uint32_t next_left_over(struct collect *c, uint64_t object, uint32_t number)
{
    struct release *r = release_at(c, object, number);
    while (!is_left_over(r)) {
        struct release *next = release_at(c, object, r->skip);
        number = r->skip;
        if (!is_left_over(next))
            r->skip = next->skip;
        r = next;
    }
    return number;
}

/*
 * Returns the oldest release since the wait began that has not ended a wait yet. It may be newer
 * than the number in the wait's record: waits with higher numbers may have been matched with the
 * older releases.
 */
static struct release *find_left_over(struct release_search s)
{
    uint32_t n = first_since(s);
    for (int tries = 0; tries < MAX_TRIES && n != 0; tries++) {
        n = next_left_over(s.c, s.object, n);
        struct release *r = release_at(s.c, s.object, n);
        if (!r && n > s.number)
            break;
        if (is_within(r, s))
            return r;
        n++;
    }
    return NULL;
}

struct release *release_find_post(struct release_search s)
{
    struct release_search since = s;
    struct release *r = NULL;
    for (since.begin = s.end; !r && since.begin > s.begin;) {
        since.begin = releases_last_empty(s.c, s.object, s.begin, since.begin);
        r = find_left_over(since);
    }
    return r;
}

/* Returns the oldest release since the wait began: readiness wakes all threads that poll for it. */
static struct release *find_first(struct release_search s)
{
    uint32_t n = first_since(s);
    for (int tries = 0; tries < MAX_TRIES && n <= s.number && n != 0; tries++, n++) {
        struct release *r = release_at(s.c, s.object, n);
        if (is_within(r, s) && !r->closes)
            return r;
    }
    return NULL;
}

struct release *release_find_last(struct release_search s)
{
    for (uint32_t back = 0; back < MAX_TRIES && s.number > back; back++) {
        struct release *r = release_at(s.c, s.object, s.number - back);
        if (!r || r->time < s.begin)
            break;
        if (is_within(r, s))
            return r;
    }
    return NULL;
}

/* Returns the arrival that opened a barrier. */
static struct release *find_opening(struct release_search s)
{
    struct release *last = NULL;
    uint32_t n = first_since(s);
    for (int tries = 0; tries < MAX_TRIES && n <= s.number && n != 0; tries++, n++) {
        struct release *r = release_at(s.c, s.object, n);
        if (!is_within(r, s))
            continue;
        if (r->taken)
            return r;
        if (last && last->serial == r->serial)
            return last;
        last = r;
    }
    return n > s.number ? last : release_find_last(s);
}

/* Returns the last release by a writer. A writer that stopped waiting has none: then the last by a
 * reader. */
static struct release *find_writer(struct release_search s)
{
    struct release *last = release_find_last(s), *r = last;
    while (r && r->by_reader) {
        s.number = r->number - 1;
        r = release_find_last(s);
    }
    return r ? r : last;
}

/*
 * For an object of several processes: a write, or else the last close, which was the end of the
 * data if no other process still had that end.
 */
static struct release *find_shared(struct release_search s, uint8_t wait)
{
    struct release *r = wait == SHM_POLL ? find_first(s) : find_left_over(s);
    if (r)
        return r;
    r = release_find_last(s);
    return r && r->closes ? r : NULL;
}

static bool is_exclusive(uint8_t wait)
{
    return wait == SHM_MUTEX || wait == SHM_WRLOCK || wait == SHM_SPIN || wait == SHM_ONCE ||
           wait == SHM_OMP_TASKS;
}

struct release *release_find(struct release_search s, uint8_t wait)
{
    /* Room for a write may need several reads: the kernel wakes a writer to a socket when most of its
     * buffer is free. */
    if (wait == SHM_WRITE)
        return release_find_last(s);
    if (shm_is_shared_end(s.object))
        return find_shared(s, wait);
    if (is_exclusive(wait))
        return release_find_last(s);
    if (wait == SHM_BARRIER)
        return find_opening(s);
    if (wait == SHM_RDLOCK)
        return find_writer(s);
    if (wait == SHM_SEMAPHORE)
        return release_find_post(s);
    return wait == SHM_POLL ? find_first(s) : find_left_over(s);
}

struct release *release_find_conflicting(struct release_search s, uint64_t locked)
{
    for (uint32_t back = 0; back < MAX_TRIES && s.number > back; back++) {
        struct release *r = release_at(s.c, s.object, s.number - back);
        if (!r || r->time < s.begin)
            break;
        if (is_within(r, s) && shm_locked_conflict(r->part, locked))
            return r;
    }
    return NULL;
}

/* Whether a sent signal can have ended a wait of the thread. */
static bool ends_wait(const struct release *sent, uint64_t signals, const struct thread *thread)
{
    unsigned number = (unsigned)(sent->part >> 56);
    uint64_t to = sent->part & UINT64_MAX >> 8;
    if (number == 0 || number > 64 || !(signals & shm_signal_bit(number)))
        return false;
    if (to == 0)
        return signals & SHM_SIGNALS_OF_PROCESS;
    return to & SHM_SIGNAL_TID ? (to ^ SHM_SIGNAL_TID) == thread->tid : to == thread->handle;
}

struct release *release_find_signal(struct release_search s, const struct shm_record *wait,
                                    const struct thread *thread)
{
    uint32_t n = first_since(s);
    for (int tries = 0; tries < MAX_TRIES && n <= s.number && n != 0; tries++, n++) {
        struct release *sent = release_at(s.c, s.object, n);
        if (is_within(sent, s) &&
            (wait->wait == SHM_POLL || !sent->taken || s.object != wait->object) &&
            ends_wait(sent, wait->object2, thread))
            return sent;
    }
    return NULL;
}
