/*
 * Locks whose address is in a record: the collector names a lock without a symbol after where it
 * was first seen locked. The end of the lock (destroyed, initialised again or, with
 * libtrail-heap.so, freed) is recorded as well, because another lock may follow at the same
 * address.
 *
 * There are few such locks: those that a thread waited for or that were held for long. When the
 * table is full, the end of further locks is not recorded.
 */
#pragma once

#include "preload/preload.h"

#define KNOWN_LOCKS 256
#define KNOWN_LINE  64

struct known {
    uint32_t used; /* a lock was added; 0: skip the search */
    /* One bit, by hash, for each cache line that has or had a known lock. */
    uint64_t lines[64];           /* 12 bits */
    uintptr_t locks[KNOWN_LOCKS]; /* 0: free */
};

extern struct known known __attribute__((visibility("hidden")));

/* Adds a lock whose address is about to be recorded. */
void known_add(const volatile void *lock);

/* Records the end of the known locks in [low, high). */
void known_forget(uintptr_t low, uintptr_t high);

ALWAYS uint32_t known_bit(uintptr_t address)
{
    return (uint32_t)((address / KNOWN_LINE * UINT64_C(0x9e3779b97f4a7c15)) >> 52);
}

ALWAYS bool known_has_line(uintptr_t address)
{
    uint32_t bit = known_bit(address);
    return __atomic_load_n(&known.lines[bit / 64], __ATOMIC_RELAXED) >> bit % 64 & 1;
}

/* Called for a lock that is destroyed or initialised. */
ALWAYS void known_end(const volatile void *lock)
{
    if (UNLIKELY(known.used) && known_has_line((uintptr_t)lock))
        known_forget((uintptr_t)lock, (uintptr_t)lock + 1);
}
