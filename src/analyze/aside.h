/*
 * Aside: calls that an analysis defers, in order. The reader's thread makes them while it has
 * nothing to read; without such a thread, the caller does, a few hundred at a time. For sums that
 * are looked at only at the end.
 */
#pragma once

#include <trail/read.h>

enum { ASIDE_ITEM_SIZE = 144 };

/*
 * Takes an item. `coming`, if not NULL, will be taken soon: what it needs may be prefetched.
 * Returns false if out of memory: no further item is taken then.
 */
typedef bool aside_take(void *of, const void *item, const void *coming);

struct aside;

/* Returns NULL if out of memory: calls are then made at once. */
struct aside *aside_open(trail_reader *reader);

/*
 * Queues a call of `take` with `of` and a copy of the item: after those before it, and before
 * aside_close returns. Returns false if out of memory, also for an earlier item.
 */
bool aside_put(struct aside *aside, aside_take *take, void *of, const void *item, size_t size);

/* Frees `aside` without taking the calls that are left; NULL is allowed. */
void aside_drop(struct aside *aside);

/* Takes what is left, and frees `aside`; NULL is allowed. Returns false if out of memory. */
bool aside_close(struct aside *aside);
