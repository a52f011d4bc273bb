/*
 * Guards: variables that release a lock at the end of their scope, and so show that a thread has the lock
 * while it is in the scope. Rust's std has no other record of a lock's holder.
 */
#ifndef TRAIL_SYMBOLS_GUARDS_H
#define TRAIL_SYMBOLS_GUARDS_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/waits.h"

/* Where a guard's pointer to its lock is in the frame of its function. */
struct guard {
    bool from_cfa; /* the offset is from the frame's end (CFA), not from its stack pointer */
    int64_t offset;
    enum wire_log wait; /* what waiting for the lock is called */
};

/* Writes the guards in scope at an address of a function, at most `max`; returns how many. */
size_t guards_find(Dwarf_Die *function, uint64_t address, struct guard *guards, size_t max);

#endif
