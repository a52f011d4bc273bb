/*
 * States: a row for each stretch of time that a goroutine spends in one state, made when it leaves
 * it. What is begun, ended and passed over is as in the analysis of goroutines (§9.1), so that the
 * sums agree. A window cuts off what is outside.
 */
#include <stdlib.h>

#include "tables/producer.h"

/* The state that a goroutine is in. Lives until it is left. */
struct span {
    int64_t goroutine;
    int64_t begin_ns;
    int64_t thread, proc;
    trail_string reason;
    int32_t stack;
    uint8_t state;
    bool has_begin;
};

/* `by`: who or what ended the stretch; NULL: the end of the trace or window. */
static void put_span(struct trail_tables *tables, const struct span *span, int64_t end_ns,
                     const trail_event *by)
{
    struct rows *rows = &tables->rows[TRAIL_TABLE_STATES];
    bool cut = span->begin_ns < tables->from_ns;
    int64_t begin_ns = cut ? tables->from_ns : span->begin_ns;
    if (cut && end_ns <= begin_ns)
        return;
    size_t row = rows->count++;
    bool woken = by && span->state == TRAIL_GO_WAITING && by->transition.from == TRAIL_GO_WAITING &&
                 by->goroutine >= 0;
    put_i64(rows, STATES_GOROUTINE, row, span->goroutine);
    put_u8(rows, STATES_STATE, row, word_of_go_state(span->state));
    put_i64(rows, STATES_BEGIN_NS, row, begin_ns);
    put_i64(rows, STATES_END_NS, row, end_ns);
    put_i64(rows, STATES_DURATION_NS, row, (int64_t)((uint64_t)end_ns - (uint64_t)begin_ns));
    put_text_if(rows, STATES_REASON, row, span->reason);
    put_stack(rows, STATES_STACK, row, span->stack);
    put_id(rows, STATES_THREAD, row, span->thread);
    put_id(rows, STATES_PROC, row, span->proc);
    put_i64_if(rows, STATES_WAKER, row, woken, woken ? by->goroutine : 0);
    if (rows_want(rows, STATES_WAKER_STACK))
        put_stack(rows, STATES_WAKER_STACK, row, woken ? stack_of(tables, by->stack) : 0);
    put_word_if(rows, STATES_NEXT_STATE, row, by != NULL,
                by ? word_of_go_state(by->transition.to) : 0);
    put_u8(rows, STATES_HAS_BEGIN, row, span->has_begin && !cut);
    put_u8(rows, STATES_HAS_END, row, by != NULL);
}

static void enter(struct trail_tables *tables, struct span *span, const trail_event *event)
{
    const struct rows *rows = &tables->rows[TRAIL_TABLE_STATES];
    bool on = event->transition.to == TRAIL_GO_RUNNING || event->transition.to == TRAIL_GO_SYSCALL;
    span->state = event->transition.to;
    span->begin_ns = event->time_ns;
    span->has_begin = true;
    span->thread = on ? event->thread : TRAIL_NONE;
    span->proc = on ? event->proc : TRAIL_NONE;
    if (rows_want(rows, STATES_REASON))
        span->reason = text_of(tables, event->transition.reason);
    if (rows_want(rows, STATES_STACK))
        span->stack = stack_of(tables, event->transition.stack);
}

/* The first transition of a goroutine. False when memory is out. */
static bool first(struct trail_tables *tables, const trail_event *event)
{
    uint64_t id = (uint64_t)event->transition.id;
    bool created = event->transition.from == TRAIL_GO_NOT_EXIST;
    struct span *span = idmap_remove(&tables->open, id);
    if (span)
        put_span(tables, span, event->time_ns, event); /* somebody else with the same number */
    else
        span = slab_get(&tables->span_slab);
    if (!span)
        return false;
    if (event->transition.to <= TRAIL_GO_NOT_EXIST) {
        slab_put(&tables->span_slab, span);
        return true;
    }
    span->goroutine = event->transition.id;
    enter(tables, span, event);
    if (!created) {
        span->begin_ns = tables->sync_ns;
        span->has_begin = false;
    }
    return idmap_put(&tables->open, id, span);
}

static bool take(struct trail_tables *tables, const trail_event *event)
{
    uint64_t id = (uint64_t)event->transition.id;
    if (event->transition.from == event->transition.to)
        return true;
    if (event->transition.from <= TRAIL_GO_NOT_EXIST)
        return first(tables, event);
    struct span *span = idmap_find(&tables->open, id);
    if (!span)
        return true;
    put_span(tables, span, event->time_ns, event);
    if (event->transition.to <= TRAIL_GO_NOT_EXIST) {
        (void)idmap_remove(&tables->open, id);
        slab_put(&tables->span_slab, span);
        return true;
    }
    enter(tables, span, event);
    return true;
}

bool states_fill(struct trail_tables *tables, const trail_event *events, size_t count)
{
    if (!rows_room(&tables->rows[TRAIL_TABLE_STATES], count))
        return false;
    for (const trail_event *event = events; event < events + count; event++) {
        if (event->kind == TRAIL_SYNC)
            tables->sync_ns = event->time_ns;
        else if (event->kind == TRAIL_STATE_TRANSITION &&
                 event->transition.resource == TRAIL_RESOURCE_GOROUTINE && !take(tables, event))
            return false;
    }
    return true;
}

static int by_goroutine(const void *a, const void *b)
{
    const struct span *x = *(struct span *const *)a, *y = *(struct span *const *)b;
    return x->goroutine < y->goroutine ? -1 : x->goroutine > y->goroutine;
}

bool states_finish(struct trail_tables *tables)
{
    const struct idmap *map = &tables->open;
    size_t count = 0;
    if (map->count == 0)
        return true;
    struct span **spans = calloc(map->count, sizeof(struct span *));
    if (!spans || !rows_room(&tables->rows[TRAIL_TABLE_STATES], map->count)) {
        free(spans);
        return false;
    }
    for (size_t i = 0; i <= map->mask; i++)
        if (map->slots[i].value)
            spans[count++] = map->slots[i].value;
    qsort(spans, count, sizeof(struct span *), by_goroutine);
    for (size_t i = 0; i < count; i++)
        put_span(tables, spans[i], tables->last_ns, NULL);
    free(spans);
    return true;
}

void states_init(struct trail_tables *tables)
{
    tables->span_slab.object_size = sizeof(struct span);
}

void states_free(struct trail_tables *tables)
{
    idmap_free(&tables->open);
    slab_free(&tables->span_slab);
}
