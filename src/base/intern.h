/*
 * Intern: equal bytes get equal numbers, counted from 1 in the order in which they came. For the
 * tables of strings and stacks of what is being written; dropped whole when a generation ends.
 *
 * Entries of equal hash are a list: bytes come from files and traced processes, and an adversary can
 * only make it slower, never wrong.
 */
#ifndef TRAIL_BASE_INTERN_H
#define TRAIL_BASE_INTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/idmap.h"

/* Zero-initialised is empty and ready. Not thread-safe. */
struct intern {
    struct idmap map; /* hash -> struct intern_entry */
    struct arena arena;
    uint64_t last; /* the number given last */
};

/*
 * The number of `size` bytes, which are copied if they are new: *fresh tells. 0 when memory is out;
 * it is then as it was.
 */
uint64_t intern_put(struct intern *intern, const void *data, size_t size, bool *fresh);

/* Forgets all; numbers begin with 1 again. Keeps memory for as many. */
void intern_clear(struct intern *intern);

/* Gives the memory back; it is empty and ready again. */
void intern_free(struct intern *intern);

#endif
