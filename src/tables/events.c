/*
 * Events as rows, filled column by column, so that each column costs one short loop; also the kinds
 * with their own tables, logs and samples.
 */
#include "tables/producer.h"

struct fill {
    struct trail_tables *tables;
    struct rows *rows;
    const trail_event *events;
    size_t count;
};

/* Defines a function that fills one column for all events: `e` is the event, `row` its row. */
#define FILL(name, statement)                                                                      \
    static void fill_##name(const struct fill *f, unsigned column)                                 \
    {                                                                                              \
        struct rows *rows = f->rows;                                                               \
        const trail_event *e = f->events;                                                          \
        for (size_t i = 0, row = rows->count; i < f->count; i++, row++, e++) {                     \
            statement;                                                                             \
        }                                                                                          \
    }

static bool is_transition(const trail_event *e)
{
    return e->kind == TRAIL_STATE_TRANSITION;
}

static bool is_range(const trail_event *e)
{
    return e->kind == TRAIL_RANGE_BEGIN || e->kind == TRAIL_RANGE_ACTIVE ||
           e->kind == TRAIL_RANGE_END;
}

static bool is_task(const trail_event *e)
{
    return e->kind == TRAIL_TASK_BEGIN || e->kind == TRAIL_TASK_END;
}

static bool is_region(const trail_event *e)
{
    return e->kind == TRAIL_REGION_BEGIN || e->kind == TRAIL_REGION_END;
}

static uint8_t resource_of(const trail_event *e, int64_t *id)
{
    *id = TRAIL_NONE;
    if (is_transition(e)) {
        *id = e->transition.id;
        return e->transition.resource;
    }
    if (is_range(e)) {
        *id = e->range.scope == TRAIL_RESOURCE_NONE ? TRAIL_NONE : e->range.scope_id;
        return (uint8_t)e->range.scope;
    }
    if (e->kind == TRAIL_LABEL) {
        *id = e->label.goroutine;
        return TRAIL_RESOURCE_GOROUTINE;
    }
    return UINT8_MAX;
}

static uint8_t state_of(const trail_event *e, uint8_t state)
{
    return e->transition.resource == TRAIL_RESOURCE_PROC ? word_of_proc_state(state)
                                                         : word_of_go_state(state);
}

static trail_string fixed(const char *text)
{
    return (trail_string){text, __builtin_strlen(text)};
}

static trail_string name_of(struct trail_tables *tables, const trail_event *e)
{
    if (is_range(e))
        return text_of(tables, e->range.name);
    if (is_region(e))
        return text_of(tables, e->region.type);
    if (is_task(e))
        return text_of(tables, e->task.type);
    if (e->kind == TRAIL_LOG)
        return text_of(tables, e->log.category);
    if (e->kind == TRAIL_METRIC)
        return fixed(trail_metric_name(e->metric.metric));
    if (e->kind == TRAIL_EXPERIMENTAL)
        return fixed(trail_experimental_name(e));
    return fixed("");
}

/* A message lives only as long as its row, because the number of log messages is unbounded. */
static trail_string message_of(struct trail_tables *tables, struct rows *rows, const trail_event *e)
{
    return text_clean(tables, &rows->passing, trail_reader_string(tables->reader, e->log.message));
}

static trail_string text_in(struct trail_tables *tables, struct rows *rows, const trail_event *e)
{
    if (e->kind == TRAIL_LOG)
        return message_of(tables, rows, e);
    return e->kind == TRAIL_LABEL ? text_of(tables, e->label.text) : fixed("");
}

static bool task_of(const trail_event *e, int64_t *task)
{
    uint64_t id = 0;
    bool known = true;
    if (is_region(e))
        id = e->region.task;
    else if (is_task(e))
        id = e->task.id;
    else if (e->kind == TRAIL_LOG)
        id = e->log.task;
    else
        known = false;
    *task = (int64_t)id;
    return known;
}

static bool value_of(const trail_event *e, int64_t *value)
{
    if (e->kind == TRAIL_METRIC)
        return *value = (int64_t)e->metric.value, true;
    if (e->kind == TRAIL_RANGE_END && e->range.has_swept)
        return *value = (int64_t)e->range.swept_bytes, true;
    if (e->kind == TRAIL_EXPERIMENTAL && e->experimental.args > 0)
        return *value = (int64_t)e->experimental.arg[0], true;
    return false;
}

static bool value2_of(const trail_event *e, int64_t *value)
{
    if (e->kind == TRAIL_RANGE_END && e->range.has_swept)
        return *value = (int64_t)e->range.reclaimed_bytes, true;
    if (e->kind == TRAIL_EXPERIMENTAL && e->experimental.args > 1)
        return *value = (int64_t)e->experimental.arg[1], true;
    return false;
}

FILL(time, put_i64(rows, column, row, e->time_ns))
FILL(kind, put_u8(rows, column, row, e->kind))
FILL(type, put_word_if(rows, column, row, e->kind != TRAIL_SYNC, word_of_type(e->wire)))
FILL(thread, put_id(rows, column, row, e->thread))
FILL(proc, put_id(rows, column, row, e->proc))
FILL(goroutine, put_id(rows, column, row, e->goroutine))
FILL(stack, put_stack(rows, column, row, stack_of(f->tables, e->stack)))
FILL(resource, int64_t id; uint8_t resource = resource_of(e, &id);
     put_word_if(rows, column, row, resource != UINT8_MAX, resource))
FILL(id, int64_t id; (void)resource_of(e, &id); put_id(rows, column, row, id))
FILL(from, put_word_if(rows, column, row, is_transition(e), state_of(e, e->transition.from)))
FILL(to, put_word_if(rows, column, row, is_transition(e), state_of(e, e->transition.to)))
FILL(reason, put_text_if(rows, column, row,
                         text_of(f->tables, is_transition(e) ? e->transition.reason : 0)))
FILL(resource_stack,
     put_stack(rows, column, row, is_transition(e) ? stack_of(f->tables, e->transition.stack) : 0))
FILL(name, put_text_if(rows, column, row, name_of(f->tables, e)))
FILL(text, put_text_if(rows, column, row, text_in(f->tables, rows, e)))
FILL(task, int64_t task; bool known = task_of(e, &task); put_i64_if(rows, column, row, known, task))
FILL(parent, bool known = is_task(e) && e->task.parent != TRAIL_NO_TASK;
     put_i64_if(rows, column, row, known, known ? (int64_t)e->task.parent : 0))
FILL(value, int64_t value = 0; bool known = value_of(e, &value);
     put_i64_if(rows, column, row, known, value))
FILL(value2, int64_t value = 0; bool known = value2_of(e, &value);
     put_i64_if(rows, column, row, known, value))

static void (*const fills[EVENTS_COLUMNS])(const struct fill *f, unsigned column) = {
    [EVENTS_TIME_NS] = fill_time,
    [EVENTS_KIND] = fill_kind,
    [EVENTS_TYPE] = fill_type,
    [EVENTS_THREAD] = fill_thread,
    [EVENTS_PROC] = fill_proc,
    [EVENTS_GOROUTINE] = fill_goroutine,
    [EVENTS_STACK] = fill_stack,
    [EVENTS_RESOURCE] = fill_resource,
    [EVENTS_ID] = fill_id,
    [EVENTS_FROM_STATE] = fill_from,
    [EVENTS_TO_STATE] = fill_to,
    [EVENTS_REASON] = fill_reason,
    [EVENTS_RESOURCE_STACK] = fill_resource_stack,
    [EVENTS_NAME] = fill_name,
    [EVENTS_TEXT] = fill_text,
    [EVENTS_TASK] = fill_task,
    [EVENTS_PARENT] = fill_parent,
    [EVENTS_VALUE] = fill_value,
    [EVENTS_VALUE2] = fill_value2,
};

void events_fill(struct trail_tables *tables, const trail_event *events, size_t count)
{
    struct rows *rows = &tables->rows[TRAIL_TABLE_EVENTS];
    struct fill fill = {tables, rows, events, count};
    for (unsigned i = 0; i < EVENTS_COLUMNS - TRAIL_TABLE_COMMON; i++)
        if (rows_want(rows, i))
            fills[i](&fill, i);
    rows->count += count;
}

static void log_fill(struct trail_tables *tables, const trail_event *e)
{
    struct rows *rows = &tables->rows[TRAIL_TABLE_LOGS];
    size_t row = rows->count++;
    put_i64(rows, LOGS_TIME_NS, row, e->time_ns);
    put_id(rows, LOGS_GOROUTINE, row, e->goroutine);
    put_i64(rows, LOGS_TASK, row, (int64_t)e->log.task);
    put_text_if(rows, LOGS_CATEGORY, row, text_of(tables, e->log.category));
    if (rows_want(rows, LOGS_MESSAGE))
        put_text(rows, LOGS_MESSAGE, row, message_of(tables, rows, e));
    if (rows_want(rows, LOGS_STACK))
        put_stack(rows, LOGS_STACK, row, stack_of(tables, e->stack));
}

static void sample_fill(struct trail_tables *tables, const trail_event *e)
{
    struct rows *rows = &tables->rows[TRAIL_TABLE_SAMPLES];
    size_t row = rows->count++;
    put_i64(rows, SAMPLES_TIME_NS, row, e->time_ns);
    put_id(rows, SAMPLES_THREAD, row, e->thread);
    put_id(rows, SAMPLES_PROC, row, e->proc);
    put_id(rows, SAMPLES_GOROUTINE, row, e->goroutine);
    if (rows_want(rows, SAMPLES_STACK))
        put_stack(rows, SAMPLES_STACK, row, stack_of(tables, e->stack));
}

void moments_fill(struct trail_tables *tables, const trail_event *event)
{
    if (event->kind == TRAIL_LOG && wants_table(tables, TRAIL_TABLE_LOGS))
        log_fill(tables, event);
    else if (event->kind == TRAIL_STACK_SAMPLE && wants_table(tables, TRAIL_TABLE_SAMPLES))
        sample_fill(tables, event);
}
