/* Waits that are open when the trace ends, their holders, and cycles of them: see stuck.h. */
#include "analyze/stuck.h"

#include <stdlib.h>

#include "analyze/holders.h"
#include "analyze/part.h"
#include "analyze/waits.h"
#include "base/grow.h"
#include "wire/waits.h"

/* MARK: The end */

/* Whether it is a wait for a lock whose kind is known; one for a thread's exit is not. */
static bool is_known_lock(const struct wait_facts *facts)
{
    unsigned traits = wire_wait_kinds[facts->kind].traits;
    return traits & WIRE_WAIT_LOCK && !(traits & WIRE_WAIT_IDLE) && facts->kind != WIRE_WAIT_JOIN;
}

/* Returns the place where the goroutine waits for a lock; NULL: it does not, or it is unknown. */
static const struct place *lock_place(const struct stuck *stuck, const struct goroutine *g)
{
    const struct parked *parked =
        stuck->waits_at ? idmap_find(&stuck->waits_at->parked, (uint64_t)g->id) : NULL;
    const struct place *place = parked ? parked->place : NULL;
    return place && place->kind == PLACE_LOCK && place->name != 0 ? place : NULL;
}

/* Returns false on out of memory. */
static bool add_wait(struct stuck *stuck, const struct goroutine *g, int64_t now)
{
    const struct wait_facts *facts = wait_facts_of(&stuck->analysis->names, g->reason);
    const struct place *place = facts ? NULL : lock_place(stuck, g);
    struct holder holder = {.goroutine = TRAIL_NONE};
    if (g->state != TRAIL_GO_WAITING || (facts ? !is_known_lock(facts) : !place))
        return true;
    if (!GROW(stuck->waits, stuck->capacity, stuck->count + 1))
        return false;
    if (facts)
        holder = holders_find(stuck->holders, facts->kind, facts->object);
    stuck->waits[stuck->count++] = (struct stuck_wait){
        .goroutine = g->id,
        .begin_ns = g->since_ns,
        .ns = ns_between(g->since_ns, now),
        .name = g->name,
        .kind = facts ? facts->kind_name : 0,
        .object = facts ? facts->object : 0,
        .place = place ? place->name : 0,
        .can_be_held = !facts || wire_wait_kinds[facts->kind].traits & WIRE_WAIT_HELD,
        .unmoved = place && place->left_ns <= g->since_ns,
        .holder = holder.goroutine,
        .holder_name = holder.name,
        .inferred = holder.inferred,
        .next = SIZE_MAX,
    };
    return true;
}

static int by_goroutine(const void *a, const void *b)
{
    const struct stuck_wait *x = a, *y = b;
    return x->goroutine < y->goroutine ? -1 : x->goroutine > y->goroutine;
}

static void link_waits(struct stuck *stuck)
{
    for (size_t i = 0; i < stuck->count; i++) {
        struct stuck_wait key = {.goroutine = stuck->waits[i].holder};
        const struct stuck_wait *next =
            bsearch(&key, stuck->waits, stuck->count, sizeof key, by_goroutine);
        if (next)
            stuck->waits[i].next = (size_t)(next - stuck->waits);
    }
}

/* Each waits for at most one holder: a wait that leads back to itself in at most as many steps as
 * there are waits is in a cycle. */
static void find_circles(struct stuck *stuck)
{
    for (size_t i = 0; i < stuck->count; i++) {
        size_t at = stuck->waits[i].next, steps = 0;
        if (stuck->waits[i].circle)
            continue;
        while (at != SIZE_MAX && at != i && steps++ < stuck->count)
            at = stuck->waits[at].next;
        if (at != i)
            continue;
        stuck->circles++;
        do {
            stuck->waits[at].circle = stuck->circles;
            at = stuck->waits[at].next;
        } while (at != i);
    }
}

/* Returns the facts of a wait that only another thread of the program can end; NULL: it is none. */
static const struct wait_facts *waits_for_thread(const struct stuck *stuck,
                                                 const struct goroutine *g)
{
    const struct wait_facts *facts =
        g->state == TRAIL_GO_WAITING ? wait_facts_of(&stuck->analysis->names, g->reason) : NULL;
    return facts && wire_wait_kinds[facts->kind].traits & WIRE_WAIT_LOCK &&
                   facts->kind != WIRE_WAIT_FILE_LOCK
               ? facts
               : NULL;
}

/* Of the goroutines that all wait for each other, takes the one at the end, or one that waits for a
 * thread to exit. */
static void still_waits(struct stuck *stuck, const struct goroutine *g,
                        const struct wait_facts *facts, int64_t now)
{
    const struct parked *parked =
        stuck->waits_at ? idmap_find(&stuck->waits_at->parked, (uint64_t)g->id) : NULL;
    struct stuck_wait wait = {
        .goroutine = g->id,
        .begin_ns = g->since_ns,
        .ns = ns_between(g->since_ns, now),
        .name = g->name,
        .kind = facts->kind_name,
        .object = facts->object,
        .place = parked && parked->place ? parked->place->name : 0,
        .signalled = holders_signalled(stuck->holders, g->id),
        .holder = TRAIL_NONE,
    };
    bool joins = facts->kind == WIRE_WAIT_JOIN;
    if (wire_wait_kinds[facts->kind].traits & WIRE_WAIT_HELD)
        return;
    if (joins ? stuck->has_joiner && stuck->joiner.ns >= wait.ns
              : stuck->has_still && stuck->still.ns >= wait.ns)
        return;
    *(joins ? &stuck->joiner : &stuck->still) = wait;
    *(joins ? &stuck->has_joiner : &stuck->has_still) = true;
}

/* Looks whether every goroutine waits for another one. */
static void find_still(struct stuck *stuck, int64_t now)
{
    const struct idmap *alive = &stuck->analysis->goroutines.follow.alive;
    IDMAP_EACH(slot, alive) {
        const struct goroutine *g = slot->value;
        const struct wait_facts *facts = waits_for_thread(stuck, g);
        if (!facts || g->since_ns < stuck->last_end_ns) {
            stuck->has_still = false;
            return;
        }
        still_waits(stuck, g, facts, now);
    }
}

/* A goroutine that ends while others wait may have been the one that they waited for. */
static bool goroutine_ends(void *part, struct goroutine *g, int64_t now, int64_t end_ns)
{
    struct stuck *stuck = part;
    (void)g;
    (void)now;
    if (end_ns > stuck->last_end_ns)
        stuck->last_end_ns = end_ns;
    return true;
}

static bool window_ends(void *part, int64_t now)
{
    struct stuck *stuck = part;
    const struct idmap *alive = &stuck->analysis->goroutines.follow.alive;
    if (stuck->analysis->counting)
        IDMAP_EACH(slot, alive)
            if (!add_wait(stuck, slot->value, now))
                return false;
    if (stuck->count > 0)
        qsort(stuck->waits, stuck->count, sizeof *stuck->waits, by_goroutine);
    link_waits(stuck);
    find_circles(stuck);
    if (stuck->analysis->counting)
        find_still(stuck, now);
    return true;
}

/* MARK: The part */

static bool init(void *part, struct trail_analysis *analysis, void *const *needed)
{
    struct stuck *stuck = part;
    stuck->waits_at = needed[0];
    stuck->holders = needed[1];
    stuck->analysis = analysis;
    return true;
}

static void drop(void *part)
{
    struct stuck *stuck = part;
    free(stuck->waits);
}

const struct analysis_part stuck_part = {
    .what = TRAIL_ANALYZE_FINDINGS,
    .size = sizeof(struct stuck),
    .uses_goroutines = true,
    .needs = {&waits_part, &holders_part},
    .init = init,
    .free = drop,
    .window_ends = window_ends,
    .ends = goroutine_ends,
};
