/*
 * The search for the release that ended a wait.
 *
 * The record of a wait has the number of its object's last release when the wait ended. For a lock
 * that only one thread can hold, that release ended the wait. A thread that gets no CPU when a
 * barrier opens may see arrivals of the next round: the release that ended another wait since its
 * own began, or the last before a thread came again, ended its own as well. A reader was woken by a
 * writer; readers that were woken with it may have released the lock since. Condition variables and
 * semaphores may have been released several times by then: the oldest release since the wait began
 * that has not woken a thread yet is taken. A thread may take a permit of a semaphore without a
 * wait, which is not recorded: another wait that began later shows that no permit was left, so only
 * posts since then can have ended the wait. For descriptors it is the oldest since the wait began,
 * because any number of threads may poll for it. For a file lock it is the last release of a lock
 * that excluded the one waited for.
 */
#pragma once

#include "collect/releases.h"

/* Where the release that ended a wait is looked for. */
struct release_search {
    struct collect *c;
    uint64_t object;
    uint32_t number;     /* of the object's last release when the wait ended */
    uint64_t begin, end; /* of the wait */
};

/* Returns the search for the object and the time of a wait's record. */
struct release_search release_search_of(struct collect *c, const struct shm_record *r);

/* Each returns NULL if the release is not known. */

/* Returns the release that ended a wait of this kind. */
struct release *release_find(struct release_search s, uint8_t wait);

/* Returns the last release in the time of the wait. */
struct release *release_find_last(struct release_search s);

/*
 * Returns the release that ended a wait for a semaphore: the oldest one since no permit was left.
 * If there is none, an earlier post: the thread that took its permit may record that late, as may a
 * thread that found no permit left.
 */
struct release *release_find_post(struct release_search s);

/* Returns the last release of a file lock that excluded the one waited for. */
struct release *release_find_conflicting(struct release_search s, uint64_t locked);

/* Returns the first signal to the object since the wait began that can have ended it. A signal that
 * was taken cannot wake another thread. */
struct release *release_find_signal(struct release_search s, const struct shm_record *wait,
                                    const struct thread *thread);
