/*
 * Rwlocks whose writers are kept out by readers: threads that take the lock to read although a
 * writer already waits for it. Recordings of C programs have the kind of each wait and hold.
 */
#include <string.h>

#include "analyze/wait_names.h"
#include "base/text.h"
#include "diagnose/waits.h"

static bool is_to(const char *what, trail_string text)
{
    return text_begins(text, what) && (text.size == strlen(what) || text.data[strlen(what)] == ' ');
}

/* Returns the name of the rwlock for which a goroutine waits to write; 0: none. */
static trail_name awaited_by(const struct waits *waits, const struct goroutine *g)
{
    const struct names *names = &waits->analysis->names;
    const struct wait_facts *facts = wait_facts_of(names, g->reason);
    return facts && facts->kind == WIRE_WAIT_RWLOCK &&
                   is_to("rwlock to write", names_text(names, g->reason))
               ? facts->object
               : 0;
}

/* Whether only readers have had the lock since the wait began, and one took it meanwhile: while
 * another one had it, since the writer did not get it. */
static bool is_kept_out(const struct rwlock *lock, const struct goroutine *g)
{
    return lock->last_taken_ns > g->since_ns && lock->written_ns <= g->since_ns;
}

trail_name waits_read_since(const struct waits *waits, const struct goroutine *g)
{
    trail_name object = awaited_by(waits, g);
    const struct rwlock *lock = object ? objects_find(&waits->rwlocks, object) : NULL;
    return lock && is_kept_out(lock, g) ? lock->reader : 0;
}

bool waits_leave_rwlock(struct waits *waits, const struct goroutine *g, trail_name at,
                        const trail_event *event)
{
    trail_name object = waits->analysis->counting ? awaited_by(waits, g) : 0;
    int64_t ns = ns_between(g->since_ns, event->time_ns);
    if (object == 0 || ns < BLAME_LEAST_NS)
        return true;
    struct rwlock *lock = objects_get(&waits->rwlocks, object);
    if (!lock)
        return false;
    lock->waits++;
    if (!is_kept_out(lock, g))
        return true;
    lock->kept_out++;
    ns_add(&lock->ns, ns);
    longest_note(&lock->longest, ns, g->since_ns, g->id);
    /* The first readers would have ended by then. */
    blame_union_add(&lock->beyond,
                    g->since_ns + (lock->longest_hold_ns < ns ? lock->longest_hold_ns : ns),
                    event->time_ns);
    lock->wait = waits_blamed(waits, g->reason);
    lock->at = at;
    lock->waiter = names_kind(&waits->analysis->names, g->name);
    return lock->wait != 0;
}

bool waits_read_rwlock(struct waits *waits, const trail_event *event)
{
    struct names *names = &waits->analysis->names;
    trail_string text = trail_reader_string(names->reader, event->log.message);
    struct wait_text hold = wait_text_of_hold(text);
    bool reads = is_to("rwlock to read", text);
    if (hold.kind != WIRE_WAIT_RWLOCK || hold.object.size == 0 ||
        !(reads || is_to("rwlock to write", text)))
        return true;
    struct rwlock *lock =
        objects_get(&waits->rwlocks, names_put(names, hold.object.data, hold.object.size));
    if (!lock)
        return false;
    if (!reads) {
        lock->written_ns = event->time_ns;
        return !names->failed;
    }
    int64_t taken_ns = event->time_ns - hold.held_ns;
    trail_stack stack = stacks_of(&waits->analysis->stacks, event->stack);
    lock->reads++;
    if (hold.held_ns > lock->longest_hold_ns)
        lock->longest_hold_ns = hold.held_ns;
    if (taken_ns > lock->last_taken_ns)
        lock->last_taken_ns = taken_ns;
    lock->reader = waits_place(waits, stack);
    lock->function = stacks_function(&waits->analysis->stacks, stack);
    return !names->failed && !waits->analysis->stacks.failed;
}
