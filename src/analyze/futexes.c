/* See futexes.h. */
#include "analyze/futexes.h"

#include "analyze/blame.h"
#include "analyze/goroutines.h"

struct futex {
    bool named;             /* a function's name says that it is a lock */
    uint64_t among, others; /* waits ended alone by one that had waited for it; the rest */
    int64_t waker, woke_ns; /* of the last one */
};

/* Names are read only until one shows that it is a lock. */
static void look_at(struct futex *futex, const struct stacks *stacks, trail_stack stack)
{
    if (!futex->named)
        futex->named = stacks_is_in_lock(stacks, stack);
}

void futexes_init(struct futexes *futexes)
{
    futexes->by_wait = OBJECTS_OF(struct futex);
}

void futexes_free(struct futexes *futexes)
{
    objects_free(&futexes->by_wait);
    idmap_free(&futexes->waiters);
}

static uint64_t waiter_of(trail_name wait, int64_t goroutine)
{
    return (uint64_t)wait << 32 ^ (uint64_t)goroutine;
}

bool futexes_enter(struct futexes *futexes, const struct stacks *stacks, trail_name wait,
                   int64_t goroutine, trail_stack stack)
{
    struct futex *futex = objects_get(&futexes->by_wait, wait);
    if (!futex)
        return false;
    look_at(futex, stacks, stack);
    return idmap_put(&futexes->waiters, waiter_of(wait, goroutine), futex);
}

bool futexes_leave(struct futexes *futexes, const struct stacks *stacks, trail_name wait,
                   int64_t waker, trail_stack stack, int64_t now)
{
    struct futex *futex = objects_get(&futexes->by_wait, wait);
    if (!futex)
        return false;
    bool together = futex->waker == waker && futex->woke_ns > 0 &&
                    ns_between(futex->woke_ns, now) < BLAME_TOGETHER_NS;
    look_at(futex, stacks, stack);
    if (idmap_find(&futexes->waiters, waiter_of(wait, waker)) && !together)
        futex->among++;
    else
        futex->others += together ? 2 : 1; /* and the one before: a lock wakes one at a time */
    futex->waker = waker;
    futex->woke_ns = now;
    return true;
}

static bool is_lock(const struct futex *futex)
{
    return futex && (futex->named || futex->among > futex->others);
}

bool futexes_is_lock(const struct futexes *futexes, trail_name wait)
{
    return is_lock(objects_find(&futexes->by_wait, wait));
}

bool futexes_any_is_lock(const struct futexes *futexes)
{
    IDMAP_EACH(slot, &futexes->by_wait.map)
        if (is_lock(slot->value))
            return true;
    return false;
}
