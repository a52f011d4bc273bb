/*
 * States: one row for each period that a goroutine spends in one state, added when it leaves the
 * state. Uses the same follower as the analysis of goroutines (analyze/follow.h), so the sums
 * agree. Periods are cut at the window's edges.
 */
#include <stdlib.h>
#include <string.h>

#include "tables/producer.h"

/* A live goroutine and its current state. */
struct span {
    union {
        struct followed followed;
        struct {
            FOLLOWED_MEMBERS;
            bool has_begin;
        };
    };
    int64_t thread, proc;
    trail_string reason;
    trail_name wait; /* what it waits for, the source of WAIT_KIND and OBJECT; 0: nothing */
    int32_t stack;
};

static void put_wait(struct trail_tables *tables, size_t row, trail_name wait)
{
    struct rows *rows = &tables->rows[TRAIL_TABLE_STATES];
    trail_wait_for what = wait_for_of(&tables->follow_names, wait);
    trail_string kind = {what.kind, what.kind ? strlen(what.kind) : 0};
    put_text_if(rows, STATES_WAIT_KIND, row, kind);
    put_text_if(rows, STATES_OBJECT, row, names_text(&tables->follow_names, what.object));
}

/* `by` is the event that ended the period; NULL: the end of the trace or window. */
static void put_span(struct trail_tables *tables, const struct span *span, int64_t end_ns,
                     const trail_event *by)
{
    struct rows *rows = &tables->rows[TRAIL_TABLE_STATES];
    bool cut = span->since_ns < tables->from_ns;
    bool ended = by && by->transition.to != TRAIL_GO_UNDETERMINED; /* else: where is unknown */
    int64_t begin_ns = cut ? tables->from_ns : span->since_ns;
    if (cut && end_ns <= begin_ns)
        return;
    size_t row = rows->count++;
    bool woken = by && span->state == TRAIL_GO_WAITING && by->transition.from == TRAIL_GO_WAITING &&
                 by->goroutine >= 0;
    put_i64(rows, STATES_GOROUTINE, row, span->id);
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
    put_word_if(rows, STATES_NEXT_STATE, row, ended,
                ended ? word_of_go_state(by->transition.to) : 0);
    put_u8(rows, STATES_HAS_BEGIN, row, span->has_begin && !cut);
    put_u8(rows, STATES_HAS_END, row, ended);
    put_wait(tables, row, span->wait);
}

/* MARK: Following */

static struct span *span_of(struct followed *g)
{
    return (struct span *)(void *)g;
}

static struct followed *make(void *context)
{
    struct trail_tables *tables = context;
    struct span *span = slab_get(&tables->span_slab);
    return span ? &span->followed : NULL;
}

static bool begins(void *context, struct followed *g, const trail_event *event, int64_t since_ns)
{
    (void)context, (void)g, (void)event, (void)since_ns;
    return true;
}

static inline bool leaves(void *context, struct followed *g, const trail_event *event)
{
    put_span(context, span_of(g), event->time_ns, event);
    return true;
}

static inline bool enters(void *context, struct followed *g, const trail_event *event,
                          trail_name reason)
{
    struct trail_tables *tables = context;
    struct span *span = span_of(g);
    const struct rows *rows = &tables->rows[TRAIL_TABLE_STATES];
    bool on = g->state == TRAIL_GO_RUNNING || g->state == TRAIL_GO_SYSCALL;
    span->has_begin = !(event->flags & TRAIL_EVENT_INFERRED);
    span->thread = on ? event->thread : TRAIL_NONE;
    span->proc = on ? event->proc : TRAIL_NONE;
    span->wait = reason;
    if (rows_want(rows, STATES_REASON)) /* also for states other than waits */
        span->reason = text_of(tables, event->transition.reason);
    if (rows_want(rows, STATES_STACK))
        span->stack = stack_of(tables, event->transition.stack);
    return true;
}

static bool found(void *context, struct followed *g, const trail_event *event, trail_name reason,
                  int64_t since_ns)
{
    (void)enters(context, g, event, reason);
    g->since_ns = since_ns;
    span_of(g)->has_begin = false;
    return true;
}

static bool ends(void *context, struct followed *g, const trail_event *event)
{
    struct trail_tables *tables = context;
    if (g->state > TRAIL_GO_NOT_EXIST)
        put_span(tables, span_of(g), event->time_ns, event);
    slab_put(&tables->span_slab, g);
    return true;
}

static const struct follow_ops ops = {
    .make = make,
    .begins = begins,
    .leaves = leaves,
    .enters = enters,
    .found = found,
    .ends = ends,
};

bool states_fill(struct trail_tables *tables, const trail_event *events, size_t count)
{
    if (!rows_room(&tables->rows[TRAIL_TABLE_STATES], count))
        return false;
    wait_names_begin_batch(&tables->follow_names);
    for (const trail_event *event = events; event < events + count; event++) {
        if (event->kind == TRAIL_SYNC)
            follow_sync(&tables->follow, event->time_ns);
        else if (event->kind == TRAIL_LOG && !follow_log(&tables->follow, event))
            return false;
        else if (event->kind == TRAIL_STATE_TRANSITION &&
                 event->transition.resource == TRAIL_RESOURCE_GOROUTINE &&
                 !follow_goroutine(&tables->follow, &ops, tables, event))
            return false;
    }
    return !tables->follow_names.failed;
}

/* MARK: End of the trace */

bool states_finish(struct trail_tables *tables)
{
    const struct idmap *alive = &tables->follow.alive;
    struct idmap_slot *spans = idmap_sorted(alive);
    bool good = spans && rows_room(&tables->rows[TRAIL_TABLE_STATES], alive->count);
    for (size_t i = 0; good && i < alive->count; i++)
        put_span(tables, spans[i].value, tables->last_ns, NULL);
    free(spans);
    return good;
}

void states_init(struct trail_tables *tables)
{
    tables->span_slab.object_size = sizeof(struct span);
    tables->follow_names.reader = tables->reader;
    follow_init(&tables->follow, tables->reader, &tables->follow_names);
}

void states_free(struct trail_tables *tables)
{
    follow_free(&tables->follow);
    names_free(&tables->follow_names);
    slab_free(&tables->span_slab);
}
