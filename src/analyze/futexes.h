/*
 * Futexes of C programs: which of them are locks. The word of a futex has no known meaning: threads
 * may take turns with it, or only wait until another one reports something. It counts as a lock if
 * the name of a function that waits for it, or that ends such a wait, says so; or if most waits are
 * ended, one at a time, by threads that also wait for it.
 */
#pragma once

#include "analyze/stacks.h"
#include "analyze/wait_names.h"
#include "base/objects.h"

struct futexes {
    struct objects by_wait; /* of names of waits: struct futex */
    struct idmap waiters;   /* name of the wait << 32 ^ goroutine: has waited for it */
};

void futexes_init(struct futexes *futexes);
void futexes_free(struct futexes *futexes);

static inline bool futexes_have(const struct wait_facts *facts)
{
    return facts && facts->kind == WIRE_WAIT_FUTEX;
}

/* A wait for a futex begins, or was ended by another goroutine. Return false if out of memory. */
bool futexes_enter(struct futexes *futexes, const struct stacks *stacks, trail_name wait,
                   int64_t goroutine, trail_stack stack);
bool futexes_leave(struct futexes *futexes, const struct stacks *stacks, trail_name wait,
                   int64_t waker, trail_stack stack, int64_t now);

/* Whether it is a lock, as far as is known by now. */
bool futexes_is_lock(const struct futexes *futexes, trail_name wait);
bool futexes_any_is_lock(const struct futexes *futexes);
