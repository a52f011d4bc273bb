/*
 * Condition variables with waits that time out although a signal came: it ended the wait of another
 * goroutine only.
 */
#include "diagnose/waits.h"

static struct condition_wait *wait_of(const struct waits *waits, int64_t goroutine)
{
    return objects_find(&waits->condition_waits, (uint64_t)goroutine);
}

bool waits_enter_condition(struct waits *waits, const struct goroutine *g, trail_name wait)
{
    const struct wait_facts *facts = wait_facts_of(&waits->analysis->names, wait);
    if (!facts || facts->kind != WIRE_WAIT_CONDITION || facts->object == 0) {
        if (waits->condition_waits.map.count > 0)
            objects_drop(&waits->condition_waits, (uint64_t)g->id);
        return true;
    }
    struct condition *condition = objects_get(&waits->conditions, wait);
    struct condition_wait *now = objects_get(&waits->condition_waits, (uint64_t)g->id);
    if (!condition || !now)
        return false;
    condition->wait = wait;
    *now = (struct condition_wait){.condition = condition, .signals = condition->signals};
    return true;
}

/* Whether the goroutine comes from an unsignalled wait for it, and only released the mutex. */
static bool releases(const struct waits *waits, int64_t goroutine,
                     const struct condition *condition)
{
    const struct condition_wait *own = wait_of(waits, goroutine);
    return own && own->condition == condition && !own->signalled;
}

void waits_leave_condition(struct waits *waits, const struct goroutine *g, trail_name at,
                           const trail_event *event)
{
    struct condition_wait *own = wait_of(waits, g->id);
    if (!own)
        return;
    struct condition *condition = own->condition;
    own->at = at;
    own->end_ns = event->time_ns;
    own->missed = condition->signals == own->signals + 1;
    own->signal = condition->last;
    if (event->goroutine < 0 || event->goroutine == g->id ||
        releases(waits, event->goroutine, condition))
        return;
    trail_stack stack = stacks_of(&waits->analysis->stacks, event->stack);
    own->signalled = true;
    condition->signals++;
    condition->last = (struct signal){event->time_ns, waits_place(waits, stack),
                                      stacks_function(&waits->analysis->stacks, stack)};
}

void waits_miss_condition(struct waits *waits, int64_t goroutine)
{
    struct condition_wait *own = wait_of(waits, goroutine);
    if (!own)
        return;
    struct condition *condition = own->condition;
    condition->timed_out++;
    condition->signals -= own->signalled; /* it was the mutex that another one released */
    own->signalled = false;
    if (!own->missed)
        return;
    condition->missed++;
    condition->rounds += own->signal.ns != condition->missing.ns;
    condition->missing = own->signal;
    condition->at = own->at;
    longest_note(&condition->longest, ns_between(own->signal.ns, own->end_ns), own->signal.ns,
                 goroutine);
    blame_union_add(&condition->late, own->signal.ns, own->end_ns);
}
