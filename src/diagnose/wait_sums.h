/*
 * Sums of the rows of waits for one lock, or of one kind at one place, whatever ended them. Made
 * once, when all waits are known: findings ask for each row.
 */
#pragma once

#include "base/objects.h"
#include "diagnose/waits.h"

struct wait_sums {
    int64_t alike_ns, direct_ns; /* as in struct blame_row */
    uint64_t lock_waits;         /* of rows about the lock */
    int64_t lock_ns;
    const struct rwlock *rwlock; /* the lock, if it is one */
};

/* Adds all rows to `sums`, OBJECTS_OF(struct wait_sums). Returns false if out of memory. */
bool wait_sums_add(struct objects *sums, const struct waits *waits);

/* Returns the sums of the waits of this kind at the place of a row that was added. */
const struct wait_sums *wait_sums_there(const struct objects *sums, const struct blame_row *row);

/* Returns the sums of the waits for the lock of a row that was added. */
const struct wait_sums *wait_sums_of_lock(const struct objects *sums, const struct blame_row *row);
