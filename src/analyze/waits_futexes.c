/*
 * Futexes: whether one is a lock. Its word has no known meaning: threads may take turns with it, or
 * only wait until another one reports something. It is a lock where the function that waits, or
 * that wakes, has a name that says so, or where mostly those that wait for it themselves end the
 * waits of others, one at a time.
 */
#include "analyze/waits.h"

static bool is_futex(const struct waits *waits, trail_name wait)
{
    const struct wait_facts *facts = wait_facts_of(&waits->analysis->names, wait);
    return facts && facts->kind == WIRE_WAIT_FUTEX;
}

bool waits_futex_is_lock(const struct waits *waits, trail_name wait)
{
    const struct futex *futex = objects_find(&waits->futexes, wait);
    return futex && (futex->named || futex->among > futex->others);
}

bool waits_enter_futex(struct waits *waits, const struct goroutine *g, trail_name wait,
                       trail_stack stack)
{
    if (!is_futex(waits, wait))
        return true;
    struct futex *futex = objects_get(&waits->futexes, wait);
    if (!futex)
        return false;
    futex->named |= stacks_is_in_lock(&waits->analysis->stacks, stack);
    return idmap_put(&waits->futex_waiters, (uint64_t)wait << 32 ^ (uint64_t)g->id, futex);
}

bool waits_leave_futex(struct waits *waits, trail_name wait, const trail_event *event)
{
    if (!is_futex(waits, wait) || event->goroutine < 0)
        return true;
    struct futex *futex = objects_get(&waits->futexes, wait);
    if (!futex)
        return false;
    uint64_t waker = (uint64_t)wait << 32 ^ (uint64_t)event->goroutine;
    bool together = futex->waker == event->goroutine && futex->woke_ns > 0 &&
                    ns_between(futex->woke_ns, event->time_ns) < BLAME_TOGETHER_NS;
    if (idmap_find(&waits->futex_waiters, waker) && !together)
        futex->among++;
    else
        futex->others += together ? 2 : 1; /* the one before, too, was none of a lock */
    futex->named |= stacks_is_in_lock(&waits->analysis->stacks,
                                      stacks_of(&waits->analysis->stacks, event->stack));
    futex->waker = event->goroutine;
    futex->woke_ns = event->time_ns;
    return true;
}
