/* v2 guess: notes what an order assumes, and compares it with the previous state. */
#include "read/v2/guess.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "read/v2/common.h"

/* What a thread with events has at the start. */
struct v2_guessed_m {
    int64_t p_id, g_id;
};

/* The value of maps that are sets. */
static char member;

void v2_guess_free(struct v2_guess *guess)
{
    idmap_free(&guess->gs);
    idmap_free(&guess->ps);
    idmap_free(&guess->ms);
    idmap_free(&guess->begun);
    idmap_free(&guess->begun_tasks);
    arena_free(&guess->arena);
    free(guess->ended_tasks);
    *guess = (struct v2_guess){0};
}

/* MARK: Notes */

static bool note(struct v2_guess *guess, struct idmap *of, int64_t id, unsigned status)
{
    struct v2_guessed *guessed = arena_alloc(&guess->arena, sizeof *guessed);
    if (!guessed || !idmap_put(of, (uint64_t)id, guessed))
        return false;
    *guessed = (struct v2_guessed){.status = (uint8_t)status, .last = &guessed->ends};
    return true;
}

static bool has_begun(const struct v2_guess *guess, int64_t goroutine)
{
    return idmap_find(&guess->begun, (uint64_t)goroutine) != NULL;
}

struct v2_g *v2_guess_g(struct v2_order *order, int64_t id, unsigned status)
{
    struct v2_guess *guess = order->guess;
    if (has_begun(guess, id) || idmap_find(&guess->gs, (uint64_t)id) ||
        !note(guess, &guess->gs, id, status))
        return NULL;
    struct v2_g *g = objects_get(&order->gs, (uint64_t)id);
    if (!g)
        return NULL;
    g->id = id;
    g->status = (uint8_t)status;
    return g;
}

struct v2_p *v2_guess_p(struct v2_order *order, int64_t id, unsigned status)
{
    struct v2_guess *guess = order->guess;
    if (idmap_find(&guess->ps, (uint64_t)id) || !note(guess, &guess->ps, id, status))
        return NULL;
    struct v2_p *p = objects_get(&order->ps, (uint64_t)id);
    if (!p)
        return NULL;
    p->id = id;
    p->status = (uint8_t)status;
    return p;
}

bool v2_guess_begins(struct v2_guess *guess, int64_t goroutine)
{
    return idmap_put(&guess->begun, (uint64_t)goroutine, &member);
}

bool v2_guess_task_begins(struct v2_guess *guess, uint64_t task)
{
    return idmap_put(&guess->begun_tasks, task, &member);
}

bool v2_guess_task_ends(struct v2_guess *guess, uint64_t task)
{
    return APPEND(guess->ended_tasks, guess->ended_capacity, guess->ended_count, task);
}

bool v2_guess_region_ends(struct v2_guess *guess, int64_t goroutine, uint64_t task,
                          trail_string name)
{
    struct v2_guessed *guessed = idmap_find(&guess->gs, (uint64_t)goroutine);
    if (!guessed || has_begun(guess, goroutine))
        return true;
    struct v2_region_end *end = arena_alloc(&guess->arena, sizeof *end + name.size);
    if (!end)
        return false;
    *end = (struct v2_region_end){.task = task, .size = name.size};
    memcpy(end->name, name.data, name.size);
    *guessed->last = end;
    guessed->last = &end->next;
    return true;
}

bool v2_guess_range(const struct idmap *of, int64_t id, struct v2_ranges *ranges, uint8_t type)
{
    struct v2_guessed *guessed = idmap_find(of, (uint64_t)id);
    /* Ranges without memory have never been used. */
    if (!guessed || ranges->capacity > 0 || !GROW(ranges->items, ranges->capacity, 1))
        return false;
    ranges->items[ranges->count++] = (struct v2_range){.type = type};
    guessed->range = type;
    return true;
}

void v2_guess_gc(struct v2_order *order, uint8_t type, uint64_t seq)
{
    struct v2_guess *guess = order->guess;
    if (guess->knows_gc)
        return;
    guess->knows_gc = true;
    guess->gc = type == V2_GCBegin ? V2_GC_NOT_RUNNING : V2_GC_RUNNING;
    guess->gc_seq = seq - 1;
    order->gc = guess->gc;
    order->gc_seq = guess->gc_seq;
}

/* MARK: Threads */

/* Applies a status to what the thread has. Returns false if it is not a status, or malformed. */
static bool take_status(const uint8_t **at, const uint8_t *end, const struct v2_m *m,
                        struct v2_guessed_m *guessed)
{
    struct v2_wire_event wire;
    const uint8_t *next = *at < end ? v2_decode_any(*at, end, &wire) : NULL;
    if (!next)
        return false;
    *at = next;
    switch (wire.type) {
    case V2_ProcStatus:
        if (guessed->p_id == TRAIL_NONE &&
            (wire.arg[1] == V2_PROC_RUNNING || wire.arg[1] == V2_PROC_SYSCALL))
            guessed->p_id = (int64_t)wire.arg[0];
        return true;
    case V2_GoStatus:
    case V2_GoStatusStack:
        if (guessed->g_id == TRAIL_NONE &&
            (wire.arg[2] == V2_GO_RUNNING ||
             (wire.arg[2] == V2_GO_SYSCALL && (int64_t)wire.arg[1] == m->id)))
            guessed->g_id = (int64_t)wire.arg[0];
        return true;
    default:
        return wire.type == V2_GCSweepActive || wire.type == V2_GCMarkAssistActive;
    }
}

bool v2_guess_thread(struct v2_order *order, struct v2_m *m, const uint8_t *at, const uint8_t *end)
{
    struct v2_guess *guess = order->guess;
    struct v2_guessed_m *guessed = arena_alloc(&guess->arena, sizeof *guessed);
    if (!guessed || !idmap_put(&guess->ms, (uint64_t)m->id, guessed))
        return false;
    *guessed = (struct v2_guessed_m){TRAIL_NONE, TRAIL_NONE};
    while (take_status(&at, end, m, guessed))
        continue;
    m->p_id = guessed->p_id;
    m->g_id = guessed->g_id;
    m->seen = m->p_id != TRAIL_NONE || m->g_id != TRAIL_NONE;
    return true;
}

/* MARK: Comparison */

static bool ranges_hold(const struct v2_guessed *guessed, const struct v2_ranges *ranges)
{
    return ranges->count == (guessed->range != 0) &&
           (ranges->count == 0 ||
            (ranges->items[0].type == guessed->range && ranges->items[0].kind == 0));
}

static bool goroutines_hold(const struct v2_guess *guess, const struct v2_order *before)
{
    size_t found = 0;
    IDMAP_EACH(slot, &before->gs.map) {
        const struct v2_g *g = slot->value;
        const struct v2_guessed *guessed = idmap_find(&guess->gs, slot->id);
        if (!guessed && !has_begun(guess, g->id))
            continue;
        if (!guessed || guessed->status != g->status || !ranges_hold(guessed, &g->ranges) ||
            !v2_regions_end(g, guessed->ends))
            return false;
        found++;
    }
    return found == guess->gs.count;
}

static bool procs_hold(const struct v2_guess *guess, const struct v2_order *before)
{
    IDMAP_EACH(slot, &guess->ps) {
        const struct v2_guessed *guessed = slot->value;
        const struct v2_p *p = objects_find(&before->ps, slot->id);
        if (!p || p->status != guessed->status || !ranges_hold(guessed, &p->ranges))
            return false;
    }
    return true;
}

/* A thread without events has at most a goroutine in a system call, and that goroutine's status was
 * found. */
static bool threads_hold(const struct v2_guess *guess, const struct v2_order *before,
                         const struct v2_order *after)
{
    IDMAP_EACH(slot, &after->ms.map) {
        const struct v2_m *m = slot->value, *had = objects_find(&before->ms, slot->id);
        const struct v2_guessed_m *guessed = idmap_find(&guess->ms, slot->id);
        int64_t p_id = had ? had->p_id : TRAIL_NONE, g_id = had ? had->g_id : TRAIL_NONE;
        if (guessed ? p_id != guessed->p_id || g_id != guessed->g_id
                    : had && had->seen && g_id != m->g_id)
            return false;
    }
    return true;
}

static bool tasks_hold(const struct v2_guess *guess, const struct v2_order *before)
{
    IDMAP_EACH(slot, &before->tasks)
        if (idmap_find(&guess->begun_tasks, slot->id))
            return false;
    return true;
}

/* In a trace without garbage collection so far, the first one may have any number. */
static bool gc_holds(const struct v2_guess *guess, const struct v2_order *before)
{
    if (!guess->knows_gc)
        return true;
    if (before->gc == V2_GC_UNDETERMINED)
        return guess->gc == V2_GC_NOT_RUNNING;
    return before->gc == guess->gc && before->gc_seq == guess->gc_seq;
}

bool v2_guess_holds(const struct v2_guess *guess, const struct v2_order *before,
                    const struct v2_order *after)
{
    return before->initial_generation != 0 && before->initial_generation < after->generation &&
           before->generation < after->generation && goroutines_hold(guess, before) &&
           procs_hold(guess, before) && threads_hold(guess, before, after) &&
           tasks_hold(guess, before) && gc_holds(guess, before);
}

/* MARK: Joining */

/* Moves the goroutines that the generation does not show, and the remaining regions of the
 * others. */
static bool join_goroutines(const struct v2_guess *guess, struct v2_order *joint,
                            struct v2_order *after)
{
    IDMAP_EACH(slot, &joint->gs.map) {
        struct v2_g *g = slot->value, *now = find_g(after, g->id);
        const struct v2_guessed *guessed = idmap_find(&guess->gs, slot->id);
        if (guessed && now && !has_begun(guess, g->id))
            v2_regions_move(g, guessed->ends, now);
        if (guessed)
            continue;
        now = objects_get(&after->gs, slot->id);
        if (!now)
            return false;
        *now = *g;
        g->ranges = (struct v2_ranges){0};
        g->regions = NULL;
    }
    return true;
}

static bool join_procs(struct v2_order *joint, struct v2_order *after)
{
    IDMAP_EACH(slot, &joint->ps.map) {
        struct v2_p *p = slot->value;
        if (find_p(after, p->id))
            continue;
        struct v2_p *now = objects_get(&after->ps, slot->id);
        if (!now)
            return false;
        *now = *p;
        p->ranges = (struct v2_ranges){0};
    }
    return true;
}

static bool join_threads(const struct v2_guess *guess, const struct v2_order *joint,
                         struct v2_order *after)
{
    IDMAP_EACH(slot, &joint->ms.map) {
        const struct v2_m *m = slot->value;
        struct v2_m *now = objects_find(&after->ms, slot->id);
        bool known = now != NULL;
        if (!now)
            now = v2_order_m(after, slot->id);
        if (!now)
            return false;
        if (!idmap_find(&guess->ms, slot->id))
            now->p_id = m->p_id;
        if (!known)
            now->g_id = m->g_id;
        now->seen |= m->seen;
    }
    IDMAP_EACH(slot, &after->ms.map)
        ((struct v2_m *)slot->value)->cursor_epoch = 0;
    return true;
}

static bool join_tasks(const struct v2_guess *guess, struct v2_order *joint, struct v2_order *after)
{
    for (size_t i = 0; i < guess->ended_count; i++)
        free(idmap_remove(&joint->tasks, guess->ended_tasks[i]));
    IDMAP_EACH(slot, &after->tasks)
        if (!idmap_put(&joint->tasks, slot->id, slot->value))
            return false;
    idmap_clear(&after->tasks);
    return true;
}

#define SWAP(type, a, b)                                                                           \
    do {                                                                                           \
        type held = (a);                                                                           \
        (a) = (b);                                                                                 \
        (b) = held;                                                                                \
    } while (0)

bool v2_guess_join(const struct v2_guess *guess, struct v2_order *joint, struct v2_order *after)
{
    if (!join_goroutines(guess, joint, after) || !join_procs(joint, after) ||
        !join_threads(guess, joint, after) || !join_tasks(guess, joint, after))
        return false;
    SWAP(struct objects, joint->gs, after->gs);
    SWAP(struct objects, joint->ps, after->ps);
    SWAP(struct objects, joint->ms, after->ms);
    if (guess->knows_gc) {
        joint->gc = after->gc;
        joint->gc_seq = after->gc_seq;
    }
    joint->generation = after->generation;
    joint->steps += after->steps;
    return true;
}
