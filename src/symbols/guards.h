/*
 * Guards: variables that release a lock at the end of their scope, so that a thread in the scope
 * holds the lock. Rust's std has no other record of a lock's holder.
 */
#pragma once

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/waits.h"

enum { GUARDS_MOST = 256 }; /* of a function */

/* Where a guard's pointer to its lock is in its function's frame. */
struct guard {
    int64_t offset;
    enum wire_log wait; /* what waiting for the lock is called */
    bool from_cfa;      /* the offset is from the frame's end (CFA), not from its stack pointer */
};

/* Writes the guards in scope at an address of a function, at most `max`; returns their number. */
size_t guards_find(Dwarf_Die *function, uint64_t address, struct guard *guards, size_t max);
