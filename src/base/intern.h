/*
 * Interning: equal bytes get equal numbers, from 1 in the order of first occurrence. For the string
 * and stack tables of a trace being written; cleared when a generation ends.
 *
 * Bytes come from files and traced processes: the hash is keyed. Entries of equal hash form a list.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/idmap.h"

/* Zero-initialized: empty and ready to use. Not thread-safe. */
struct intern {
    struct idmap map; /* hash -> struct intern_entry */
    struct arena arena;
    uint64_t last; /* the newest number */
};

/*
 * Returns the number of `size` bytes, which are copied if they are new; sets *fresh accordingly.
 * Returns 0 if out of memory; the table is then unchanged.
 */
uint64_t intern_put(struct intern *intern, const void *data, size_t size, bool *fresh);

/*
 * Returns the copy of a text that was put before or is put now, with a NUL; NULL if out of memory.
 * It has a number as other bytes do, and lives until the table is cleared.
 */
const char *intern_text(struct intern *intern, const char *text, size_t size);

/* Removes all entries; numbers begin at 1 again. Keeps memory. */
void intern_clear(struct intern *intern);

/* Frees the memory; the table is empty and ready to use again. */
void intern_free(struct intern *intern);
