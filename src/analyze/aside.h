/*
 * Aside: calls of an analysis that are made later, in order: by the reader's thread while it has
 * nothing to read, or without one by the same thread, some hundred at a time. For what is added up
 * from events and looked at only in the end.
 */
#pragma once

#include <trail/read.h>

enum { ASIDE_ITEM_SIZE = 144 };

/*
 * Takes an item. `coming` is one that is taken soon, or NULL: what it needs may be prefetched.
 * Returns false on out of memory: no further item is taken then.
 */
typedef bool aside_take(void *of, const void *item, const void *coming);

struct aside;

/* Returns NULL on out of memory: all is done at once then. */
struct aside *aside_open(trail_reader *reader);

/*
 * Has `take` called with `of` and a copy of the item, after those before it and before aside_close
 * returns. Returns false on out of memory, also of an earlier item.
 */
bool aside_put(struct aside *aside, aside_take *take, void *of, const void *item, size_t size);

/* Takes what is left, and frees `aside`; NULL is allowed. Returns false on out of memory. */
bool aside_close(struct aside *aside);
