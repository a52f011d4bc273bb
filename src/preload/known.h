/*
 * Locks that the collector has been told of by their address, and calls by where they were first seen locked: until
 * they are destroyed, initialised anew or, with libtrail-heap.so, their memory is freed. Then it is told that as well.
 *
 * They are few: those that somebody has waited for, or that were held for long. When the table is full, the names of
 * further ones do not end.
 */
#ifndef TRAIL_PRELOAD_KNOWN_H
#define TRAIL_PRELOAD_KNOWN_H

#include "preload/preload.h"

#define KNOWN_LOCKS 256
#define KNOWN_LINE  64

struct known {
    uint32_t used; /* one was added: else nothing is looked for */
    /* A bit a cache line of memory, by hash, in which there is one, or was. */
    uint64_t lines[64];           /* 12 bits */
    uintptr_t locks[KNOWN_LOCKS]; /* 0: free */
};

extern struct known known __attribute__((visibility("hidden")));

/* Its address is about to be told. */
void known_add(const volatile void *lock);

/* Those from an address up to another one are no more. */
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

/* A lock that is destroyed, or is a new one. */
ALWAYS void known_end(const volatile void *lock)
{
    if (UNLIKELY(known.used) && known_has_line((uintptr_t)lock))
        known_forget((uintptr_t)lock, (uintptr_t)lock + 1);
}

#endif
