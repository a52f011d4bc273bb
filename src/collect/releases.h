/*
 * Releases, and the waits that ended: which release ended which wait. releases.c keeps the
 * releases, release_search.c finds those that can have ended a wait, and releases_match.c decides
 * what did.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/objects.h"
#include "shm/shm.h"

struct collect;
struct thread;
struct ticks;
struct trace;

/* A wait ended by a release: the thread and the number of its wait. */
struct woken {
    struct woken *next;
    uint64_t serial, wait_number;
};

/* A release, kept until it is written and too old to be matched. */
struct release {
    uint64_t key; /* its slot and number */
    uint64_t time;
    uint64_t object;
    uint64_t serial; /* of the thread */
    uint32_t number;
    uint64_t stack;
    uint64_t part;  /* for a file lock or signal: the record's object2 */
    uint32_t skip;  /* if taken: all releases from this one up to here are taken */
    bool closes;    /* by closing an end that other processes may still have open */
    bool by_reader; /* of a reader-writer lock */
    bool all, taken, written;
    struct woken *woken;
    struct release *newer;
};

/*
 * Consecutive releases of one object's slot: hundreds of thousands may be kept, and looking up each
 * separately would mostly miss the processor's cache.
 */
#define RELEASE_BLOCK 16
struct release_block {
    unsigned used;
    struct release *at[RELEASE_BLOCK]; /* NULL: none */
};

/* A wait that has ended and whose release has not been looked up yet. */
struct ended_wait {
    struct shm_record record;
    uint64_t serial, number; /* the thread, and the number of the wait */
    uint64_t op;      /* for a condition variable: the op that may become the wait for the mutex */
    uint64_t expired; /* when the time limit that ended it expired, in ticks; 0: not known */
    /* Of an interrupted wait for descriptors: one to which a signal handler may have written, and
     * the number of its last release; 0: none. */
    uint64_t polled;
    uint32_t polled_release;
};

/*
 * When the last waits for a semaphore began, in no order: each found no permit left. Two semaphores
 * that share a place replace each other.
 */
#define EMPTY_TIMES  8
#define EMPTY_PLACES 64
struct empty_semaphore {
    uint64_t object, program; /* whose; the object 0: none */
    uint64_t times[EMPTY_TIMES];
    unsigned next;
};

/* Of the trace. Owned by releases.c and releases_match.c. Zero-initialised: empty. */
struct releases {
    struct empty_semaphore empty[EMPTY_PLACES];
    struct objects blocks; /* by number and the object's slot */
    struct slab slab;
    struct release *oldest, *newest;
    struct ended_wait *ended;
    size_t ended_count, ended_room;
};

/* NULL if out of memory. */
struct release *release_add(struct collect *c, struct thread *thread,
                            const struct shm_record *record);

/* Returns the release of the object's slot with this number; NULL: none. */
struct release *release_at(struct collect *c, uint64_t object, uint32_t number);

/* Notes that the release has ended a wait. */
void release_take(struct release *release);

/*
 * Marks the release as written or dropped: a wait matched with it from now on gets its waker at its
 * own end. Returns the waits matched before, which the caller owns.
 */
struct woken *release_is_written(struct release *release);

/* Notes that a wait for the semaphore began at `time`. */
void releases_empty(struct collect *c, uint64_t object, uint64_t time);

/* Returns when the semaphore was last seen without permits between `begin` and `end`; `begin`:
 * never. */
uint64_t releases_last_empty(struct collect *c, uint64_t object, uint64_t begin, uint64_t end);

/* Adds a wait whose release has yet to be found. */
void releases_wait_ended(struct collect *c, const struct ended_wait *wait);

/* Finds what ended the waits that ended before `time`. */
void releases_match(struct trace *t, const struct ticks *ticks, uint64_t time);

/* Drops written releases that are older than `before`. */
void releases_drop_old(struct trace *t, uint64_t before);

void releases_dispose(struct releases *r);

void woken_free(struct woken *woken);
