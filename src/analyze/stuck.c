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

/* Whether only a thread of the program can end such a wait, without a time limit. */
static bool is_for_a_thread(enum wire_wait kind)
{
    return wire_wait_kinds[kind].traits & WIRE_WAIT_LOCK && kind != WIRE_WAIT_FILE_LOCK;
}

static bool is_before(const struct stuck_wait *wait, bool joins, const struct stuck_wait *other,
                      bool other_joins)
{
    if (joins != other_joins)
        return other_joins;
    return wait->ns != other->ns ? wait->ns > other->ns : wait->goroutine < other->goroutine;
}

/* Keeps the longest waits in order. */
static void keep_first(struct hang *hang, struct stuck_wait wait, trail_name join)
{
    const size_t most = sizeof hang->first / sizeof *hang->first;
    size_t at = hang->count < most ? hang->count : most;
    while (at > 0 && is_before(&wait, wait.kind == join, &hang->first[at - 1],
                               hang->first[at - 1].kind == join)) {
        if (at < most)
            hang->first[at] = hang->first[at - 1];
        at--;
    }
    if (at < most)
        hang->first[at] = wait;
}

static void find_hang(struct stuck *stuck, int64_t now)
{
    struct names *names = &stuck->analysis->names;
    const struct idmap *alive = &stuck->analysis->goroutines.follow.alive;
    trail_name join = wait_kind_put(names, WIRE_WAIT_JOIN, 0);
    struct hang hang = {.ns = INT64_MAX};
    IDMAP_EACH(slot, alive) {
        const struct goroutine *g = slot->value;
        const struct wait_facts *facts = wait_facts_of(names, g->reason);
        int64_t ns = ns_between(g->since_ns, now);
        if (g->state != TRAIL_GO_WAITING || !facts || !is_for_a_thread(facts->kind))
            return;
        keep_first(&hang,
                   (struct stuck_wait){.goroutine = g->id,
                                       .begin_ns = g->since_ns,
                                       .ns = ns,
                                       .name = g->name,
                                       .signalled = holders_signalled(stuck->holders, g->id),
                                       .kind = facts->kind_name,
                                       .object = facts->object},
                   join);
        hang.count++;
        hang.ns = ns < hang.ns ? ns : hang.ns;
    }
    stuck->hang = hang;
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

static bool window_ends(void *part, int64_t now)
{
    struct stuck *stuck = part;
    const struct idmap *alive = &stuck->analysis->goroutines.follow.alive;
    if (stuck->analysis->counting)
        IDMAP_EACH(slot, alive)
            if (!add_wait(stuck, slot->value, now))
                return false;
    if (stuck->analysis->counting)
        find_hang(stuck, now);
    if (stuck->count > 0)
        qsort(stuck->waits, stuck->count, sizeof *stuck->waits, by_goroutine);
    link_waits(stuck);
    find_circles(stuck);
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
};
