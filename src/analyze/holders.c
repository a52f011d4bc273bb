#include "analyze/holders.h"

#include <stdlib.h>

#include "analyze/part.h"
#include "analyze/wait_names.h"
#include "base/grow.h"
#include "base/text.h"

/* The locks that a goroutine holds. */
struct holds {
    struct hold {
        uint64_t lock; /* kind << 32 | name */
        bool inferred, by_owner, ended;
    } * at;
    size_t count, room;
    trail_name name;      /* of the goroutine */
    trail_name signalled; /* where the condition that it waits for was, in vain; 0: not known */
};

static struct holds *holds_of(struct holders *holders, int64_t goroutine)
{
    return objects_get(&holders->holds, (uint64_t)goroutine);
}

static bool take_signalled(struct holders *holders, const trail_event *event)
{
    struct holds *holds = holds_of(holders, event->goroutine);
    if (holds)
        holds->signalled = names_of(&holders->analysis->names, event->log.message);
    return holds && holds->signalled != 0;
}

static bool take_log(void *part, const trail_event *event)
{
    struct holders *holders = part;
    const trail_reader *reader = holders->analysis->reader;
    trail_string category = trail_reader_string(reader, event->log.category);
    bool inferred = text_is(category, WIRE_HOLDS_INFERRED);
    bool by_owner = text_is(category, WIRE_HOLDS_OWNER);
    bool ended = text_is(category, WIRE_HOLDS_ENDED);
    if (event->goroutine != TRAIL_NONE && text_is(category, WIRE_SIGNALLED))
        return take_signalled(holders, event);
    if (event->goroutine == TRAIL_NONE ||
        (!inferred && !by_owner && !ended && !text_is(category, WIRE_HOLDS_CATEGORY)))
        return true;
    struct wait_text text = wait_text_of_wait(trail_reader_string(reader, event->log.message));
    const struct goroutine *g = goroutines_find(&holders->analysis->goroutines, event->goroutine);
    if (!(wire_wait_kinds[text.kind].traits & WIRE_WAIT_LOCK) || !g)
        return true;
    struct holds *holds = holds_of(holders, event->goroutine);
    if (!holds)
        return false;
    holds->name = g->name;
    if (!GROW(holds->at, holds->room, holds->count + 1))
        return false;
    holds->at[holds->count++] =
        (struct hold){(uint64_t)text.kind << 32 |
                          names_put(&holders->analysis->names, text.object.data, text.object.size),
                      inferred, by_owner, ended};
    return !holders->analysis->names.failed;
}

static __attribute__((noinline)) void forget(struct holders *holders, uint64_t goroutine)
{
    const struct holds *holds = objects_find(&holders->holds, goroutine);
    if (holds) {
        free(holds->at);
        objects_drop(&holders->holds, goroutine);
    }
}

/* The wait after the logs has ended, or another goroutine has the ID. */
static bool take_transition(void *part, struct goroutine *g, const trail_event *event)
{
    struct holders *holders = part;
    if (__builtin_expect(holders->holds.map.count > 0, 0) &&
        (g->state == TRAIL_GO_WAITING || g->state == TRAIL_GO_SYSCALL ||
         event->transition.from <= TRAIL_GO_NOT_EXIST))
        forget(holders, (uint64_t)g->id);
    return true;
}

/* Returns its index; `count`: it does not hold it. */
static size_t index_of(const struct holds *holds, uint64_t lock)
{
    size_t i = 0;
    while (i < holds->count && holds->at[i].lock != lock)
        i++;
    return i;
}

struct holder holders_find(const struct holders *holders, enum wire_wait kind, trail_name object)
{
    struct holder found = {.goroutine = TRAIL_NONE};
    IDMAP_EACH(slot, &holders->holds.map) {
        const struct holds *holds = slot->value;
        int64_t id = (int64_t)slot->id;
        size_t i = index_of(holds, (uint64_t)kind << 32 | object);
        if (i == holds->count)
            continue;
        const struct hold *hold = &holds->at[i];
        if (found.goroutine == TRAIL_NONE ||
            (hold->ended == found.ended ? id < found.goroutine : found.ended))
            found = (struct holder){id, holds->name, hold->inferred, hold->by_owner, hold->ended};
    }
    return found;
}

trail_name holders_signalled(const struct holders *holders, int64_t goroutine)
{
    const struct holds *holds = objects_find(&holders->holds, (uint64_t)goroutine);
    return holds ? holds->signalled : 0;
}

static bool init(void *part, struct trail_analysis *analysis)
{
    struct holders *holders = part;
    holders->analysis = analysis;
    holders->holds = OBJECTS_OF(struct holds);
    return true;
}

static void drop(void *part)
{
    struct holders *holders = part;
    IDMAP_EACH(slot, &holders->holds.map)
        free(((struct holds *)slot->value)->at);
    objects_free(&holders->holds);
}

const struct analysis_part holders_part = {
    .what = TRAIL_ANALYZE_FINDINGS | TRAIL_ANALYZE_LOCKS,
    .size = sizeof(struct holders),
    .uses_goroutines = true,
    .init = init,
    .free = drop,
    .kinds = PART_KIND(LOG),
    .event = take_log,
    .leaves = take_transition,
};
