/* Adds up the rows of waits: see wait_sums.h. */
#include "diagnose/wait_sums.h"

#include "analyze/goroutines.h"

static uint64_t key_of_place(const struct blame_row *row)
{
    return (uint64_t)row->wait << 32 | row->at;
}

/* Where locks have no names, the place stands for the lock. */
static uint64_t key_of_lock(const struct blame_row *row)
{
    return row->named ? (uint64_t)row->wait << 32 : key_of_place(row);
}

bool wait_sums_add(struct objects *sums, const struct waits *waits)
{
    BLAME_EACH(row, &waits->blame) {
        struct wait_sums *there = objects_get(sums, key_of_place(row)),
                         *lock = objects_get(sums, key_of_lock(row));
        if (!there || !lock)
            return false;
        ns_add(&there->alike_ns, row->alike_ns);
        ns_add(&there->direct_ns, row->direct_ns);
        lock->lock_waits += row->lock ? row->waits : 0;
        ns_add(&lock->lock_ns, row->lock ? row->ns : 0);
    }
    IDMAP_VALUES(const struct rwlock, rwlock, &waits->rwlocks.map) {
        struct wait_sums *lock = objects_get(sums, (uint64_t)rwlock->wait << 32);
        if (!lock)
            return false;
        lock->rwlock = rwlock;
    }
    return true;
}

const struct wait_sums *wait_sums_there(const struct objects *sums, const struct blame_row *row)
{
    return objects_find(sums, key_of_place(row));
}

const struct wait_sums *wait_sums_of_lock(const struct objects *sums, const struct blame_row *row)
{
    return objects_find(sums, key_of_lock(row));
}
