/*
 * The main loop of reading v2. Compiled twice: for any CPU, and for x86-64 with BMI2, where events
 * stay packed in a word until a handler uses an argument.
 */
#include "read/v2/merge.h"

#ifdef __BMI2__
#define V2_WORD_ARGS
#define MERGE v2_merge_bmi2
#else
#define MERGE v2_merge_any
#endif

#include "read/v2/common.h"
#include "read/v2/force.h"

/*
 * Converts ticks to ns. On Linux a tick is 64 ns, and integers give the same result as Go's
 * floating point.
 */
COMMON int64_t delta_ns(const struct v2_clock *clock, uint64_t ticks)
{
    if (LIKELY(ticks <= clock->exact_until))
        return (int64_t)(ticks * clock->exact);
    return v2_ticks_to_ns(clock->ns_per_tick, ticks);
}

/*
 * Decodes the event at `at`, which is before cursor->end. Returns its end, NULL if it is malformed,
 * and updates *time_ns from the previous event's time to its own. Both are the caller's variables,
 * so that the loop keeps them in registers: the position of each event depends on the previous one.
 */
COMMON const uint8_t *decode_next(const struct v2_clock *clock, struct v2_cursor *c,
                                  const uint8_t *at, int64_t *time_ns)
{
    c->event = at;
#ifdef V2_WORD_ARGS
    const uint8_t *next = v2_decode_packed(at, c->end, &c->wire);
    if (UNLIKELY(!next)) {
        next = v2_decode_any(at, c->end, &c->wire);
        c->wire.type = 0; /* not packed, so that no common handler takes it */
    }
#else
    const uint8_t *next = v2_decode_any(at, c->end, &c->wire);
#endif
    if (LIKELY(next))
        *time_ns = (int64_t)((uint64_t)*time_ns + (uint64_t)delta_ns(clock, c->wire.ticks));
    c->last_ns = *time_ns;
    return next;
}

/*
 * Offers the cursor's event, at `time_ns`, to the model. `output` is the caller's copy of the
 * order's, in registers.
 */
COMMON enum v2_step advance(struct v2_order *order, struct v2_cursor *c, int64_t time_ns,
                            struct v2_output *output)
{
    struct step s = step_of(order, c, true);
    s.time_ns = time_ns;
    s.output = *output;
    enum v2_step step = handle_common(&s);
    if (UNLIKELY(step == V2_FAILED)) {
        order->output = *output;
        step = v2_order_advance_any(order, c);
        s.output = order->output;
    }
    *output = s.output;
    return step;
}

/* Moves entry i, whose event was accepted, to the next one. */
static enum v2_merge next_event(struct v2_order *order, struct v2_frontier *frontier, size_t i)
{
    struct v2_cursor *c = frontier->heads[i].cursor;
    order->steps++;
    if (c->at == c->end)
        return V2_MERGE_END;
    c->at = decode_next(&order->clock, c, c->at, &c->last_ns);
    if (!c->at)
        return V2_MERGE_MALFORMED;
    v2_frontier_update(frontier, i);
    return V2_MERGE_PAUSE;
}

/* The head has to wait: offers the others in order of time, and delivers one event. */
static __attribute__((noinline)) enum v2_merge
merge_another(struct v2_order *order, struct v2_frontier *frontier, size_t *which)
{
    struct v2_head *heads = frontier->heads;
    const uint64_t moment_ns = (uint64_t)order->clock.moment_ns;
    for (size_t i = 1; i < frontier->count; i++) { /* a stable sort; a sorted heap is a heap */
        struct v2_head moving = heads[i];
        size_t j = i;
        for (; j > 0 && heads[j - 1].time_ns > moving.time_ns; j--)
            heads[j] = heads[j - 1];
        heads[j] = moving;
    }
    *which = 0;
    if (!order->lenient && v2_force_is_due(order, heads[0].cursor))
        return V2_MERGE_STUCK;
    for (size_t i = 1; i < frontier->count; i++) {
        struct v2_cursor *c = heads[i].cursor;
        struct v2_output before = order->output;
        uint64_t lag_ns = (uint64_t)heads[i].time_ns - (uint64_t)heads[0].time_ns;
        /*
         * Where events are lost, an event that waits for a lost one must not wait until its thread
         * lags behind all others: being late by a tenth of a moment is enough.
         */
        if (order->lenient && lag_ns > moment_ns / 10)
            break;
        *which = i;
        /*
         * Where no damage is known, an event that is delayed by a moment may be waiting for a lost
         * one. It may also be delayed because a clock went back, or because a thread lost its CPU
         * between a sequence number and the time.
         */
        if (UNLIKELY(heads[i].time_ns > order->usual_end_ns) ||
            (UNLIKELY(lag_ns > moment_ns) && !order->strict && heads[i].time_ns > order->looked_ns))
            return V2_MERGE_LATE;
        enum v2_step step = v2_order_advance_any(order, c);
        if (step == V2_WAIT && v2_force_is_due(order, c))
            return V2_MERGE_STUCK;
        if (step == V2_WAIT)
            continue;
        if (step == V2_FAILED)
            return V2_MERGE_FAILED;
        order->before = before;
        return next_event(order, frontier, i);
    }
    *which = 0;
    return V2_MERGE_STUCK;
}

COMMON int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/*
 * Processes events of the head's thread while it stays the head, that is, up to `limit_ns`, without
 * sifting.
 */
COMMON enum v2_merge run_head(struct v2_order *order, struct v2_head *head, int64_t limit_ns,
                              const trail_event *full, bool *waits)
{
    struct v2_cursor *c = head->cursor;
    struct v2_output output = order->output, before;
    const uint8_t *at = c->at;
    int64_t time_ns = c->last_ns;
    enum v2_merge result = V2_MERGE_PAUSE;
    do {
        before = output;
        enum v2_step step = advance(order, c, time_ns, &output);
        if (UNLIKELY(step != V2_ADVANCED)) {
            *waits = step == V2_WAIT;
            result = V2_MERGE_FAILED;
            break;
        }
        order->steps++;
        if (UNLIKELY(at == c->end)) {
            order->before = before;
            result = V2_MERGE_END;
            break;
        }
        const uint8_t *next = decode_next(&order->clock, c, at, &time_ns);
        if (UNLIKELY(!next)) {
            order->before = before;
            result = V2_MERGE_MALFORMED;
            break;
        }
        at = next;
    } while (time_ns <= limit_ns && output.next < full);
    c->at = at;
    head->time_ns = time_ns;
    order->output = output;
    return result;
}

enum v2_merge MERGE(struct v2_order *order, struct v2_frontier *frontier, int64_t until_ns,
                    const trail_event *full, size_t *which)
{
    struct v2_head *heads = frontier->heads;
    size_t count = frontier->count;
    *which = 0;
    do {
        bool waits = false;
        int64_t limit_ns = until_ns;
        if (count > 1)
            limit_ns = earlier(limit_ns, heads[1].time_ns);
        if (count > 2)
            limit_ns = earlier(limit_ns, heads[2].time_ns);
        enum v2_merge result = run_head(order, &heads[0], limit_ns, full, &waits);
        if (UNLIKELY(waits))
            return merge_another(order, frontier, which);
        if (UNLIKELY(result != V2_MERGE_PAUSE))
            return result;
        v2_heads_down(heads, count, 0, heads[0]);
    } while (order->output.next < full && heads[0].time_ns <= until_ns);
    return V2_MERGE_PAUSE;
}

#ifndef __BMI2__
bool v2_cursor_start(const struct v2_clock *clock, struct v2_cursor *cursor)
{
    cursor->last_ns = cursor->batch_ns;
    const uint8_t *at = decode_next(clock, cursor, cursor->at, &cursor->last_ns);
    cursor->wire.type = 0; /* see decode_next */
    if (at)
        cursor->at = at;
    return at != NULL;
}

enum v2_merge v2_merge_one(struct v2_order *order, struct v2_frontier *frontier, size_t *which)
{
    struct v2_cursor *c = frontier->heads[0].cursor;
    struct v2_output before = order->output;
    *which = 0;
    if (!v2_force_is_plausible(order, c))
        return V2_MERGE_MALFORMED;
    bool ends_another = v2_force_ends_another(order, c);
    if (ends_another)
        v2_force_forget(order, c->m);
    if (ends_another || v2_force_is_over(order, c)) {
        order->dropped++;
        order->steps--;
        return next_event(order, frontier, 0);
    }
    enum v2_step step = v2_order_advance_any(order, c);
    if (step == V2_FAILED)
        return V2_MERGE_FAILED;
    if (step == V2_WAIT)
        return v2_force_is_due(order, c) ? V2_MERGE_STUCK : merge_another(order, frontier, which);
    order->before = before;
    return next_event(order, frontier, 0);
}

enum v2_merge v2_merge_forced(struct v2_order *order, struct v2_frontier *frontier, size_t which)
{
    struct v2_cursor *c = frontier->heads[which].cursor;
    order->before = order->output;
    if (!v2_force_is_plausible(order, c))
        return V2_MERGE_MALFORMED;
    bool good = v2_force(order, c) && v2_order_advance_any(order, c) == V2_ADVANCED;
    order->steps -= !good;
    order->dropped += !good;
    return next_event(order, frontier, which);
}
#endif
