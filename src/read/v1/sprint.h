/*
 * v1, sprint: the judging pass's first try, which good traces pass and no other.
 *
 * The exact merge decodes the next event of every P and asks whether it is ready when it gets
 * there. The sprint only looks at its time, and at the rest when its turn has come: so nothing has
 * to be kept of an event, and those that make up nearly all of a trace are taken in one loop: merge
 * (v1_frontier), time (v1_order), checks (v1_check) and the count of what would be delivered, all
 * at once.
 *
 * What is not common goes through the stages as ever. An event that is not ready when its turn has
 * come waits, if it is certain that it was not ready before; else the sprint gives up (V1_DOUBT),
 * as it does with any error: the pass is then made again by the exact merge, which decides and says
 * why. Where the sprint comes to a good end the two agree: no event was ready once and then was
 * not, so each was ready when the exact merge looked at it, or waited there too. Only between equal
 * times may the order differ, and nothing that the pass notes depends on that.
 *
 * Included by v1/frontier.c.
 */
#ifndef TRAIL_READ_V1_SPRINT_H
#define TRAIL_READ_V1_SPRINT_H

#include "read/v1/merge.h"

/* A record of type `name` whose first byte says that `count` numbers follow the time. */
#define RECORD(name, count) (V1_##name | (count) << V1_COUNT_SHIFT)

/* Once-a-run facts, and what changes with every event, kept out of memory as far as possible. */
struct sprint {
    struct v1_merge *merge;
    struct v1_lane *lane;
    struct v1_notes *notes;
    int64_t ticks; /* of the event at hand */
};

/* Its goroutine did something: what that means to every stage. */
static inline void sprint_did(struct v1_g *g)
{
    g->known = true;
    g->call_open = false; /* and it was no GoSysBlock */
}

/* The goroutine on the P, if it is one, runs, and nobody waits for it; else NULL. */
static inline struct v1_g *sprint_running(const struct sprint *s)
{
    struct v1_g *g = s->lane->last_gs;
    uint64_t id = s->lane->last_g;
    if (id == 0 || !v1_g_is(g, id) || g->status != V1_RUNNING || g->state != V1_RUNNING ||
        s->lane->running_g != id || g->waiters)
        return NULL;
    return g;
}

/* GoBlock and its like, GoSched, GoPreempt. */
static inline bool sprint_stop(struct sprint *s, uint8_t type, enum v1_status status)
{
    struct v1_g *g = sprint_running(s);
    if (!g)
        return false;
    g->last = g->event = type;
    g->status = g->state = (uint8_t)status;
    sprint_did(g);
    s->lane->running_g = s->lane->last_g = 0;
    s->lane->last_gs = s->merge->g0;
    return true;
}

static inline bool sprint_sys_block(struct sprint *s)
{
    struct v1_g *g = sprint_running(s);
    if (!g)
        return false;
    if (g->call_open) {
        v1_notes_block(s->notes, g->call);
    }
    g->blocked_ticks = s->ticks;
    return sprint_stop(s, V1_GoSysBlock, V1_WAITING);
}

static inline bool sprint_sys_call(struct sprint *s, uint64_t offset)
{
    struct v1_g *g = sprint_running(s);
    if (!g)
        return false;
    g->event = V1_GoSysCall;
    sprint_did(g);
    g->call_open = true;
    g->call = offset;
    return true;
}

/* GoStart (with the number that its goroutine must have) and GoStartLocal (any). */
static inline bool sprint_start(struct sprint *s, uint64_t id, bool numbered, uint64_t number)
{
    struct v1_g *g = idmap_find(&s->merge->gs->map, id);
    if (id == 0 || !g || g->status != V1_RUNNABLE || g->state != V1_RUNNABLE || g->waiters ||
        s->lane->running_g != 0 || (numbered && g->seq != number))
        return false;
    g->status = g->state = V1_RUNNING;
    g->seq++;
    g->last = V1_GoStart;
    g->event = 0;
    g->fresh = false;
    sprint_did(g);
    s->lane->running_g = s->lane->last_g = id;
    s->lane->last_gs = g;
    return true;
}

/* Who is at work on the P: a goroutine, or the scheduler's (0). NULL: see the stages. */
static inline struct v1_g *sprint_worker(const struct sprint *s)
{
    struct v1_g *g = s->lane->last_gs;
    return v1_g_is(g, s->lane->last_g) ? g : NULL;
}

/* GoUnblock and GoUnblockLocal, as the two of GoStart. */
static inline bool sprint_unblock(struct sprint *s, uint64_t id, bool numbered, uint64_t number)
{
    struct v1_g *waker = sprint_worker(s);
    struct v1_g *g = idmap_find(&s->merge->gs->map, id);
    if (!waker || waker->state != V1_RUNNING || s->lane->running_g != s->lane->last_g)
        return false;
    if (id == 0 || !g || g->status != V1_WAITING || g->state != V1_WAITING || g->waiters ||
        (numbered && g->seq != number))
        return false;
    g->status = g->state = V1_RUNNABLE;
    g->seq++;
    g->last = g->event = V1_GoUnblock;
    sprint_did(waker);
    return true;
}

/* HeapAlloc: nothing but that somebody is there. */
static inline bool sprint_any(struct sprint *s)
{
    struct v1_g *g = sprint_worker(s);
    if (g)
        sprint_did(g);
    return g != NULL;
}

static inline bool sprint_proc(struct sprint *s, bool start)
{
    struct v1_g *g = sprint_worker(s);
    if (!g || s->lane->running == start || (!start && s->lane->running_g != 0))
        return false;
    s->lane->running = start;
    sprint_did(g);
    return true;
}

/*
 * Takes events of `lane` while they are before `limit_ticks` and common. The cursor then stands at
 * the first that is not. Returns how many it took, and if that one is known to be later, its time
 * in *later.
 */
static uint64_t sprint_run(struct v1_merge *merge, struct v1_lane *lane, int64_t limit_ticks,
                           int64_t *later)
{
    const struct v1_short_cut *cut = merge->short_cut;
    if (lane->order + 1 == merge->lane_count)
        return 0; /* CPU samples */
    struct sprint s = {.merge = merge, .lane = lane, .notes = cut->notes, .ticks = lane->ticks};
    const uint8_t *at = lane->at, *next;
    const uint8_t *end = lane->end < lane->packed_end ? lane->end : lane->packed_end;
    struct v1_word w;
    uint64_t taken = 0;

/* Loads a record's numbers and leaves the loop if they do not fit or it is another's turn. */
#define NUMBERS(from, count)                                                                       \
    next = v1_word_load(&w, at + (from), count);                                                   \
    ticks = (int64_t)((uint64_t)s.ticks + v1_word_number(&w, 0));                                  \
    if (__builtin_expect(!next || ticks < s.ticks, 0))                                             \
        break;                                                                                     \
    if (ticks >= limit_ticks) {                                                                    \
        *later = ticks;                                                                            \
        break;                                                                                     \
    }                                                                                              \
    before = s.ticks;                                                                              \
    s.ticks = ticks

#define STOPS(name, status)                                                                        \
    case RECORD(name, 1):                                                                          \
        type = V1_##name;                                                                          \
        NUMBERS(1, 2);                                                                             \
        done = sprint_stop(&s, V1_##name, status);                                                 \
        break

    while (at < end) {
        bool done = false;
        int64_t ticks, before = s.ticks;
        uint8_t type = 0;
        switch (*at) {
            STOPS(GoBlock, V1_WAITING);
            STOPS(GoBlockSend, V1_WAITING);
            STOPS(GoBlockRecv, V1_WAITING);
            STOPS(GoBlockSelect, V1_WAITING);
            STOPS(GoBlockSync, V1_WAITING);
            STOPS(GoBlockCond, V1_WAITING);
            STOPS(GoBlockNet, V1_WAITING);
            STOPS(GoBlockGC, V1_WAITING);
            STOPS(GoSleep, V1_WAITING);
            STOPS(GoSched, V1_RUNNABLE);
            STOPS(GoPreempt, V1_RUNNABLE);
        case RECORD(GoSysBlock, 0):
            type = V1_GoSysBlock;
            NUMBERS(1, 1);
            done = sprint_sys_block(&s);
            break;
        case RECORD(GoSysCall, 1):
            type = V1_GoSysCall;
            NUMBERS(1, 2);
            done = sprint_sys_call(&s, lane_offset(lane, at));
            break;
        case RECORD(GoStartLocal, 1):
            type = V1_GoStart;
            NUMBERS(1, 2);
            done = sprint_start(&s, v1_word_number(&w, 1), false, 0);
            break;
        case RECORD(GoStart, 2):
            type = V1_GoStart;
            NUMBERS(1, 3);
            done = sprint_start(&s, v1_word_number(&w, 1), true, v1_word_number(&w, 2));
            break;
        case RECORD(GoUnblockLocal, 2):
            type = V1_GoUnblock;
            NUMBERS(1, 3);
            done = sprint_unblock(&s, v1_word_number(&w, 1), false, 0);
            break;
        case RECORD(GoUnblock, V1_COUNT_LENGTH):
            type = V1_GoUnblock;
            NUMBERS(2, 4);
            done = at[1] < 0x80 &&
                   sprint_unblock(&s, v1_word_number(&w, 1), true, v1_word_number(&w, 2));
            break;
        case RECORD(HeapAlloc, 1):
            type = V1_HeapAlloc;
            NUMBERS(1, 2);
            done = sprint_any(&s);
            break;
        case RECORD(ProcStart, 1):
            type = V1_ProcStart;
            NUMBERS(1, 2);
            done = sprint_proc(&s, true);
            break;
        case RECORD(ProcStop, 0):
            type = V1_ProcStop;
            NUMBERS(1, 1);
            done = sprint_proc(&s, false);
            break;
        default:
            break;
        }
        if (__builtin_expect(!done, 0)) {
            s.ticks = before;
            break;
        }
        cut->types[type]++;
        taken++;
        at = next;
    }
#undef STOPS
#undef NUMBERS
    lane->at = at;
    lane->ticks = s.ticks;
    if (taken > 0)
        *cut->last_ticks = s.ticks;
    *cut->events += taken;
    merge->position += taken;
    return taken;
}

/* The time of the lane's next event. Returns 1, 0 if there is none, -1 on an error. */
static inline int sprint_peek(struct v1_merge *merge, struct v1_lane *lane, int64_t *ticks)
{
    if (lane->order + 1 == merge->lane_count) {
        bool more = merge->next_sample < merge->index->sample_count;
        *ticks = more ? merge->index->samples[merge->next_sample].ticks : 0;
        return more;
    }
    int found = find_event(merge, lane);
    if (found <= 0)
        return found;
    const uint8_t *at = lane->at;
    uint64_t delta;
    if (*at++ >= V1_COUNT_LENGTH << V1_COUNT_SHIFT)
        at = uvarint_get(at, lane->end, &delta);
    if (!at || !uvarint_get(at, lane->end, &delta))
        return changed_under_us(merge, lane);
    *ticks = (int64_t)((uint64_t)lane->ticks + delta);
    return 1;
}

/* Puts the front lane to the place of its next event, which is at `ticks`. */
static inline void sprint_place(struct v1_merge *merge, int64_t ticks)
{
    struct v1_heap *frontier = &merge->frontier;
    struct v1_ranked entry = {.ticks = ticks, .order = frontier->entry[0].order};
    if (merge->flat)
        flat_replace(frontier, entry);
    else
        ranked_down(frontier->entry, frontier->count, 0, entry);
}

/* The same when nothing is known of that event. */
static inline int sprint_move(struct v1_merge *merge, struct v1_lane *lane)
{
    int64_t ticks;
    int result = sprint_peek(merge, lane, &ticks);
    if (result > 0)
        sprint_place(merge, ticks);
    else if (result == 0)
        frontier_pop(merge);
    return result < 0 ? -1 : 0;
}

static int sprint_begin(struct v1_merge *merge)
{
    for (size_t i = 0; i < merge->lane_count; i++) {
        int64_t ticks;
        int result = sprint_peek(merge, &merge->lanes[i], &ticks);
        if (result < 0)
            return -1;
        struct v1_ranked entry = {.ticks = ticks, .order = (uint32_t)i};
        if (result > 0 && merge->flat)
            flat_insert(&merge->frontier, entry);
        else if (result > 0)
            ranked_up(merge->frontier.entry, merge->frontier.count++, entry);
    }
    return 0;
}

/* The time from which on it can be another lane's turn than the front's. */
static inline int64_t sprint_limit(const struct v1_merge *merge)
{
    const struct v1_heap *f = &merge->frontier;
    int64_t limit = INT64_MAX;
    if (f->count > 1)
        limit = f->entry[1].ticks;
    if (!merge->flat && f->count > 2 && f->entry[2].ticks < limit)
        limit = f->entry[2].ticks;
    return f->entry[0].ticks < limit ? limit : f->entry[0].ticks + 1;
}

/*
 * Whether the head, which is not ready, was not when its lane got there either. Of one that asks
 * for a sequence number this is certain while the number has not been passed: a goroutine that has
 * been ready at a number leaves it with the next one.
 */
static inline bool sprint_waits(const struct v1_lane *lane)
{
    uint8_t sequence = lane->rule->sequence;
    return (sequence == SEQ_ARG0 || sequence == SEQ_ARG1) && lane->head.key->seq <= lane->want;
}

/* What follows from the event that was given out, whose lane is still at the front. */
static int sprint_finish(struct v1_merge *merge)
{
    struct v1_lane *lane = merge->emitted;
    struct v1_g *changed = lane->head.key;
    merge->emitted = NULL;
    lane->place = V1_LANE_DONE;
    if (sprint_move(merge, lane) < 0)
        return -1;
    if (changed->waiters)
        release(merge, changed);
    if (lane->rule->role == ROLE_END && lane->head.g != 0 && lane->head.gs->alive)
        return end_goroutine(merge, lane->head.gs);
    return 0;
}

/* Gives out the front lane's head, which is decoded. */
static int sprint_give(struct v1_merge *merge, struct v1_lane *lane, struct v1_event **event)
{
    if (!own_g(merge, &lane->head))
        return no_memory(merge);
    apply(lane);
    merge->emitted = lane;
    merge->position++;
    *event = &lane->head;
    return 1;
}

/* Takes what is common, and gives out the next event that is not, as v1_merge_next does. */
static int sprint_next(struct v1_merge *merge, struct v1_event **event)
{
    const struct v1_heap *frontier = &merge->frontier;
    if (merge->emitted && sprint_finish(merge) < 0)
        return -1;
    while (frontier->count > 0) {
        struct v1_lane *lane = &merge->lanes[frontier->entry[0].order];
        if (merge->short_cut && frontier->entry[0].ticks < *merge->short_cut->last_ticks)
            return V1_DOUBT;
        if (lane->place == V1_LANE_READY) /* it waited, and need not any more */
            return is_ready(lane) ? sprint_give(merge, lane, event) : V1_DOUBT;
        int64_t later = INT64_MIN;
        if (merge->short_cut && sprint_run(merge, lane, sprint_limit(merge), &later) > 0) {
            if (later != INT64_MIN)
                sprint_place(merge, later);
            else if (sprint_move(merge, lane) < 0)
                return -1;
            continue;
        }
        if (decode(merge, lane) < 0)
            return -1;
        if (is_ready(lane))
            return sprint_give(merge, lane, event);
        if (!sprint_waits(lane))
            return V1_DOUBT;
        frontier_pop(merge);
        if (hang(merge, lane) < 0)
            return -1;
    }
    return merge->waiting_count > 0 ? V1_DOUBT : 0;
}

#endif
