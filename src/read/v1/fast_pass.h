/*
 * v1, fast pass: the first attempt of the judging pass, which succeeds for consistent traces only.
 *
 * The exact merge decodes the next event of every P, and tests whether it is ready as soon as its P
 * arrives at it. The fast pass reads only its time, and the rest when the event is due. Nothing of
 * an event is stored, and the events that make up nearly all of a trace are handled in one loop
 * that merges (v1_frontier), checks times (v1_order) and states (v1_check), and counts delivered
 * events.
 *
 * Other events pass through the stages as usual. An event that is not ready when it is due waits,
 * if it is certain that it was not ready earlier either. Otherwise, and on any error, the fast pass
 * gives up (V1_RETRY): the pass is repeated with the exact merge, which decides and reports the
 * reason. If the fast pass completes, both agree: no event was ready and later not, so that each
 * was ready when the exact merge would have tested it, or would have waited there too. Only the
 * order between equal times may differ, and no result of the pass depends on it.
 *
 * Included by v1/frontier.c.
 */
#pragma once

#include "read/v1/merge.h"

/* The first byte of a record of type `name` with `count` numbers after the time. */
#define RECORD(name, count) (V1_##name | (count) << V1_COUNT_SHIFT)

/* The state of one run, kept in registers as far as possible. */
struct fast_pass {
    struct v1_merge *merge;
    struct v1_lane *lane;
    struct v1_notes *notes;
    int64_t ticks; /* of the current event */
};

/* Updates every stage's state for an event of the goroutine. */
static inline void fast_touch(struct v1_g *g)
{
    g->known = true;
    g->call_open = false; /* as the event is not a GoSysBlock */
}

/* Returns the goroutine on the P if it runs and no lane waits for it; else NULL. */
static inline struct v1_g *fast_running(const struct fast_pass *s)
{
    struct v1_g *g = s->lane->last_gs;
    uint64_t id = s->lane->last_g;
    if (id == 0 || !v1_g_is(g, id) || g->status != V1_RUNNING || g->state != V1_RUNNING ||
        s->lane->running_g != id || g->waiters)
        return NULL;
    return g;
}

/* Blocking events, GoSched, GoPreempt. */
static inline bool fast_stop(struct fast_pass *s, uint8_t type, enum v1_status status)
{
    struct v1_g *g = fast_running(s);
    if (!g)
        return false;
    g->last = g->event = type;
    g->status = g->state = (uint8_t)status;
    fast_touch(g);
    s->lane->running_g = s->lane->last_g = 0;
    s->lane->last_gs = s->merge->g0;
    return true;
}

static inline bool fast_sys_block(struct fast_pass *s)
{
    struct v1_g *g = fast_running(s);
    if (!g)
        return false;
    if (g->call_open) {
        v1_notes_block(s->notes, g->call);
    }
    g->blocked_ticks = s->ticks;
    return fast_stop(s, V1_GoSysBlock, V1_WAITING);
}

static inline bool fast_sys_call(struct fast_pass *s, uint64_t offset)
{
    struct v1_g *g = fast_running(s);
    if (!g)
        return false;
    g->event = V1_GoSysCall;
    fast_touch(g);
    g->call_open = true;
    g->call = offset;
    return true;
}

/* GoStart (with the required sequence number) and GoStartLocal (without). */
static inline bool fast_start(struct fast_pass *s, uint64_t id, bool numbered, uint64_t number)
{
    struct v1_g *g = objects_find(&s->merge->gs->live, id);
    if (id == 0 || !g || g->status != V1_RUNNABLE || g->state != V1_RUNNABLE || g->waiters ||
        s->lane->running_g != 0 || (numbered && g->seq != number))
        return false;
    g->status = g->state = V1_RUNNING;
    g->seq++;
    g->last = V1_GoStart;
    g->event = 0;
    g->fresh = false;
    fast_touch(g);
    s->lane->running_g = s->lane->last_g = id;
    s->lane->last_gs = g;
    return true;
}

/* Returns the goroutine on the P, or the scheduler's (0). NULL: use the stages. */
static inline struct v1_g *fast_worker(const struct fast_pass *s)
{
    struct v1_g *g = s->lane->last_gs;
    return v1_g_is(g, s->lane->last_g) ? g : NULL;
}

/* GoUnblock and GoUnblockLocal, like the two of GoStart. */
static inline bool fast_unblock(struct fast_pass *s, uint64_t id, bool numbered, uint64_t number)
{
    struct v1_g *waker = fast_worker(s);
    struct v1_g *g = objects_find(&s->merge->gs->live, id);
    if (!waker || waker->state != V1_RUNNING || s->lane->running_g != s->lane->last_g)
        return false;
    if (id == 0 || !g || g->status != V1_WAITING || g->state != V1_WAITING || g->waiters ||
        (numbered && g->seq != number))
        return false;
    g->status = g->state = V1_RUNNABLE;
    g->seq++;
    g->last = g->event = V1_GoUnblock;
    fast_touch(waker);
    return true;
}

/* HeapAlloc: only needs a goroutine, or the scheduler's. */
static inline bool fast_any(struct fast_pass *s)
{
    struct v1_g *g = fast_worker(s);
    if (g)
        fast_touch(g);
    return g != NULL;
}

static inline bool fast_proc(struct fast_pass *s, bool start)
{
    struct v1_g *g = fast_worker(s);
    if (!g || s->lane->running == start || (!start && s->lane->running_g != 0))
        return false;
    s->lane->running = start;
    fast_touch(g);
    return true;
}

/*
 * Processes common events of `lane` before `limit_ticks`, and leaves the cursor at the first other
 * event. Returns the number processed; if that event is known to be later, its time is in *later.
 */
static uint64_t fast_run(struct v1_merge *merge, struct v1_lane *lane, int64_t limit_ticks,
                         int64_t *later)
{
    const struct v1_short_cut *cut = merge->short_cut;
    if (lane->order + 1 == merge->lane_count)
        return 0; /* CPU samples */
    struct fast_pass s = {.merge = merge, .lane = lane, .notes = cut->notes, .ticks = lane->ticks};
    const uint8_t *at = lane->at, *next;
    const uint8_t *end = lane->end < lane->packed_end ? lane->end : lane->packed_end;
    struct v1_word w;
    uint64_t taken = 0;

/* Loads a record's numbers; leaves the loop if they do not fit or another lane is due. */
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
        done = fast_stop(&s, V1_##name, status);                                                   \
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
            done = fast_sys_block(&s);
            break;
        case RECORD(GoSysCall, 1):
            type = V1_GoSysCall;
            NUMBERS(1, 2);
            done = fast_sys_call(&s, lane_offset(lane, at));
            break;
        case RECORD(GoStartLocal, 1):
            type = V1_GoStart;
            NUMBERS(1, 2);
            done = fast_start(&s, v1_word_number(&w, 1), false, 0);
            break;
        case RECORD(GoStart, 2):
            type = V1_GoStart;
            NUMBERS(1, 3);
            done = fast_start(&s, v1_word_number(&w, 1), true, v1_word_number(&w, 2));
            break;
        case RECORD(GoUnblockLocal, 2):
            type = V1_GoUnblock;
            NUMBERS(1, 3);
            done = fast_unblock(&s, v1_word_number(&w, 1), false, 0);
            break;
        case RECORD(GoUnblock, V1_COUNT_LENGTH):
            type = V1_GoUnblock;
            NUMBERS(2, 4);
            done = at[1] < 0x80 &&
                   fast_unblock(&s, v1_word_number(&w, 1), true, v1_word_number(&w, 2));
            break;
        case RECORD(HeapAlloc, 1):
            type = V1_HeapAlloc;
            NUMBERS(1, 2);
            done = fast_any(&s);
            break;
        case RECORD(ProcStart, 1):
            type = V1_ProcStart;
            NUMBERS(1, 2);
            done = fast_proc(&s, true);
            break;
        case RECORD(ProcStop, 0):
            type = V1_ProcStop;
            NUMBERS(1, 1);
            done = fast_proc(&s, false);
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

/* Gets the time of the lane's next event. Returns 1, 0 if there is none, -1 on an error. */
static inline int fast_peek(struct v1_merge *merge, struct v1_lane *lane, int64_t *ticks)
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

/* Moves the front lane to the place of its next event, at `ticks`. */
static inline void fast_place(struct v1_merge *merge, int64_t ticks)
{
    struct v1_heap *frontier = &merge->frontier;
    struct v1_ranked entry = {.ticks = ticks, .order = frontier->entry[0].order};
    if (merge->flat)
        flat_replace(frontier, entry);
    else
        ranked_down(frontier->entry, frontier->count, 0, entry);
}

/* The same if that event has not been read. */
static inline int fast_move(struct v1_merge *merge, struct v1_lane *lane)
{
    int64_t ticks;
    int result = fast_peek(merge, lane, &ticks);
    if (result > 0)
        fast_place(merge, ticks);
    else if (result == 0)
        frontier_pop(merge);
    return result < 0 ? -1 : 0;
}

static int fast_begin(struct v1_merge *merge)
{
    for (size_t i = 0; i < merge->lane_count; i++) {
        int64_t ticks;
        int result = fast_peek(merge, &merge->lanes[i], &ticks);
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

/* Returns the time at which a lane other than the front one is due. */
static inline int64_t fast_limit(const struct v1_merge *merge)
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
 * Whether the head, which is not ready, cannot have been ready before. This is certain if its
 * required sequence number has not been passed: a goroutine that was ready at a number passes it
 * with its next event.
 */
static inline bool fast_may_wait(const struct v1_lane *lane)
{
    uint8_t sequence = lane->rule->sequence;
    return (sequence == SEQ_ARG0 || sequence == SEQ_ARG1) && lane->head.key->seq <= lane->want;
}

/* Applies the effects of the emitted event, whose lane is still at the front. */
static int fast_finish(struct v1_merge *merge)
{
    struct v1_lane *lane = merge->emitted;
    struct v1_g *changed = lane->head.key;
    merge->emitted = NULL;
    lane->place = V1_LANE_DONE;
    if (fast_move(merge, lane) < 0)
        return -1;
    if (changed->waiters)
        release(merge, changed);
    if (lane->rule->role == ROLE_END && lane->head.g != 0 && lane->head.gs->alive)
        return end_goroutine(merge, lane->head.gs);
    return 0;
}

/* Emits the front lane's head, which is decoded. */
static int fast_give(struct v1_merge *merge, struct v1_lane *lane, struct v1_event **event)
{
    if (!own_g(merge, &lane->head))
        return error_no_memory(&merge->error);
    apply(lane);
    merge->emitted = lane;
    merge->position++;
    *event = &lane->head;
    return 1;
}

/* Processes common events and emits the next other one, like v1_merge_next. */
static int fast_next(struct v1_merge *merge, struct v1_event **event)
{
    const struct v1_heap *frontier = &merge->frontier;
    if (merge->emitted && fast_finish(merge) < 0)
        return -1;
    while (frontier->count > 0) {
        struct v1_lane *lane = &merge->lanes[frontier->entry[0].order];
        if (merge->short_cut && frontier->entry[0].ticks < *merge->short_cut->last_ticks)
            return V1_RETRY;
        if (lane->place == V1_LANE_READY) /* it waited, and is now ready */
            return is_ready(lane) ? fast_give(merge, lane, event) : V1_RETRY;
        int64_t later = INT64_MIN;
        if (merge->short_cut && fast_run(merge, lane, fast_limit(merge), &later) > 0) {
            if (later != INT64_MIN)
                fast_place(merge, later);
            else if (fast_move(merge, lane) < 0)
                return -1;
            continue;
        }
        if (decode(merge, lane) < 0)
            return -1;
        if (is_ready(lane))
            return fast_give(merge, lane, event);
        if (!fast_may_wait(lane))
            return V1_RETRY;
        frontier_pop(merge);
        if (add_waiter(merge, lane) < 0)
            return -1;
    }
    return merge->waiting_count > 0 ? V1_RETRY : 0;
}
