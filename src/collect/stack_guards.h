/* Finds the locks that a thread holds from the guard objects in its stack, as far as debug
 * information shows them (symbols/guards.h). */
#pragma once

#include "collect/stack_copy.h"
#include "symbols/guards.h"

enum { MOST_GUARDS = 1024 }; /* per thread; outer ones beyond that are not known */

struct guarded_lock {
    uint64_t lock;
    uint64_t frame_end; /* of the guard's function */
    enum wire_log wait;
};

/* See modules_guards. */
typedef size_t guards_fn(void *context, const trail_module *module, uint64_t address,
                         struct guard *guards, size_t max);

/*
 * Writes the locks, at most `max`, and returns their number. They are inferred: a guard that was
 * moved from, or released before the end of its scope, is included as well.
 */
size_t stack_guards(struct unwind_files *files, const struct cpu_sample *sample,
                    find_module_fn find, void *context, guards_fn *guards, void *guards_context,
                    struct guarded_lock *locks, size_t max);
