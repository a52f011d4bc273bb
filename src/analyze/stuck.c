#include "analyze/stuck.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/part.h"
#include "analyze/waits.h"
#include "base/grow.h"
#include "base/text.h"
#include "wire/waits.h"

/* MARK: Holds */

static bool take_log(void *part, const trail_event *event)
{
    struct stuck *stuck = part;
    const trail_reader *reader = stuck->analysis->reader;
    if (event->goroutine == TRAIL_NONE ||
        !text_is(trail_reader_string(reader, event->log.category), WIRE_HOLDS_CATEGORY))
        return true;
    struct wait_text text = wait_text_of_wait(trail_reader_string(reader, event->log.message));
    const struct goroutine *g = goroutines_find(&stuck->analysis->goroutines, event->goroutine);
    if (!(wire_wait_kinds[text.kind].traits & WIRE_WAIT_LOCK) || !g)
        return true;
    struct stuck_holds *holds = idmap_find(&stuck->holds, (uint64_t)event->goroutine);
    if (!holds) {
        holds = slab_get(&stuck->slab);
        if (!holds || !idmap_put(&stuck->holds, (uint64_t)event->goroutine, holds))
            return false;
    }
    holds->name = g->name;
    if (holds->count < STUCK_HOLDS)
        holds->locks[holds->count++] =
            (uint64_t)text.kind << 32 |
            names_put(&stuck->analysis->names, text.object.data, text.object.size);
    return !stuck->analysis->names.failed;
}

/* The wait after the logs has ended, or another goroutine has the ID. */
static bool take_transition(void *part, struct goroutine *g, const trail_event *event)
{
    struct stuck *stuck = part;
    bool over = g->state == TRAIL_GO_WAITING || g->state == TRAIL_GO_SYSCALL ||
                event->transition.from <= TRAIL_GO_NOT_EXIST;
    struct stuck_holds *holds = over ? idmap_remove(&stuck->holds, (uint64_t)g->id) : NULL;
    if (holds)
        slab_put(&stuck->slab, holds);
    return true;
}

/* MARK: The end */

/* Sets the goroutine that holds the lock: the first one with a log that names it. */
static void find_holder(const struct stuck *stuck, uint64_t lock, struct stuck_wait *wait)
{
    const struct idmap *map = &stuck->holds;
    for (size_t i = 0; map->slots && i <= map->mask; i++) {
        const struct stuck_holds *holds = map->slots[i].value;
        for (size_t n = 0; holds && n < holds->count; n++)
            if (holds->locks[n] == lock &&
                (wait->holder == TRAIL_NONE || (int64_t)map->slots[i].id < wait->holder)) {
                wait->holder = (int64_t)map->slots[i].id;
                wait->holder_name = holds->name;
            }
    }
}

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
    if (g->state != TRAIL_GO_WAITING || (facts ? !is_known_lock(facts) : !place))
        return true;
    if (!GROW(stuck->waits, stuck->capacity, stuck->count + 1))
        return false;
    struct stuck_wait *wait = &stuck->waits[stuck->count++];
    *wait = (struct stuck_wait){
        .goroutine = g->id,
        .begin_ns = g->since_ns,
        .ns = ns_between(g->since_ns, now),
        .name = g->name,
        .kind = facts ? facts->kind_name : 0,
        .object = facts ? facts->object : 0,
        .place = place ? place->name : 0,
        .unmoved = place && place->left_ns <= g->since_ns,
        .holder = TRAIL_NONE,
        .next = SIZE_MAX,
    };
    if (facts)
        find_holder(stuck, (uint64_t)facts->kind << 32 | facts->object, wait);
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

static bool window_ends(void *part, int64_t now)
{
    struct stuck *stuck = part;
    const struct idmap *alive = &stuck->analysis->goroutines.follow.alive;
    for (size_t i = 0; stuck->analysis->counting && alive->slots && i <= alive->mask; i++)
        if (alive->slots[i].value && !add_wait(stuck, alive->slots[i].value, now))
            return false;
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
    stuck->analysis = analysis;
    stuck->slab.object_size = sizeof(struct stuck_holds);
    return true;
}

static void drop(void *part)
{
    struct stuck *stuck = part;
    idmap_free(&stuck->holds);
    slab_free(&stuck->slab);
    free(stuck->waits);
}

const struct analysis_part stuck_part = {
    .what = TRAIL_ANALYZE_FINDINGS,
    .size = sizeof(struct stuck),
    .uses_goroutines = true,
    .needs = {&waits_part},
    .init = init,
    .free = drop,
    .window_ends = window_ends,
    .kinds = PART_KIND(LOG),
    .event = take_log,
    .leaves = take_transition,
};
