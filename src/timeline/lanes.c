/* Lanes from events: a writer of the timeline (timeline/timeline.h) that stores the spans it
 * receives. */
#include <stdlib.h>
#include <string.h>
#include <trail/lanes.h>

#include "base/grow.h"
#include "timeline/lanes_inside.h"

const char *trail_span_state_name(unsigned state)
{
    static const char *const names[TRAIL_SPAN_STATES] = {
        "none", "runnable", "running", "waiting", "syscall", "syscall without P"};
    return state < TRAIL_SPAN_STATES ? names[state] : "?";
}

static unsigned state_of(enum timeline_state state)
{
    static const uint8_t states[TIMELINE_STATES] = {
        [TIMELINE_RUNNING] = TRAIL_SPAN_RUNNING, [TIMELINE_RUNNABLE] = TRAIL_SPAN_RUNNABLE,
        [TIMELINE_WAITING] = TRAIL_SPAN_WAITING, [TIMELINE_SYSCALL] = TRAIL_SPAN_SYSCALL,
        [TIMELINE_BLOCKED] = TRAIL_SPAN_BLOCKED,
    };
    return states[state];
}

static int64_t since_origin(const struct trail_lanes *lanes, int64_t ns)
{
    return (int64_t)((uint64_t)ns - (uint64_t)lanes->timeline.origin_ns);
}

/* MARK: Lanes */

/* Returns the unit of times for a new lane, judged by the spans so far. */
static uint8_t shift_of(const struct trail_lanes *lanes)
{
    return lanes->spans_between > lanes->spans / 8 ? 0 : LANE_TICK_SHIFT;
}

/* Returns the number of a new lane + 1; 0 if out of memory. */
static uint64_t lane_make(struct trail_lanes *lanes, trail_lane_kind kind, int64_t id)
{
    struct lane_list *list = &lanes->lists[kind];
    if (list->count >= UINT32_MAX - 1 || !GROW(list->items, list->capacity, list->count + 1)) {
        lanes->timeline.failed = true;
        return 0;
    }
    list->items[list->count] = (struct lane){.id = id, .shift = shift_of(lanes)};
    return ++list->count;
}

static void add(struct trail_lanes *lanes, trail_lane_kind kind, uint64_t number, int64_t ns,
                unsigned state, struct lane_span of)
{
    if (number == 0)
        return;
    of.begin_ns = since_origin(lanes, ns);
    of.state = state;
    if (!lane_add(&lanes->lists[kind].items[number - 1], &of, &lanes->store))
        lanes->timeline.failed = true;
    lanes->spans++;
    lanes->spans_between += (of.begin_ns & ((1 << LANE_TICK_SHIFT) - 1)) != 0;
}

/* MARK: Counters */

static trail_lane_counter counter_of(enum timeline_state state)
{
    static const uint8_t counters[TIMELINE_STATES] = {
        [TIMELINE_RUNNING] = TRAIL_COUNTER_RUNNING, [TIMELINE_RUNNABLE] = TRAIL_COUNTER_RUNNABLE,
        [TIMELINE_WAITING] = TRAIL_COUNTER_WAITING, [TIMELINE_SYSCALL] = TRAIL_COUNTER_SYSCALL,
        [TIMELINE_BLOCKED] = TRAIL_COUNTER_SYSCALL,
    };
    return (trail_lane_counter)counters[state];
}

static void recount(struct trail_lanes *lanes, trail_lane_counter counter, int by, int64_t ns)
{
    bins_change(&lanes->bins, counter, by, since_origin(lanes, ns));
}

/* MARK: Spans from the timeline: goroutines */

static void on_goroutine(void *writer, struct timeline_goroutine *g)
{
    struct trail_lanes *lanes = writer;
    if (g->writer == 0)
        g->writer = lane_make(lanes, TRAIL_LANE_GOROUTINE, g->id);
    if (g->writer != 0)
        lanes->lists[TRAIL_LANE_GOROUTINE].items[g->writer - 1].name = g->name;
}

static void on_wake(void *writer, struct timeline_goroutine *waker, struct timeline_goroutine *g,
                    int64_t now, trail_stack stack)
{
    struct trail_lanes *lanes = writer;
    (void)now;
    lanes->woken = g;
    lanes->waker = waker ? (uint32_t)waker->writer : 0;
    lanes->waker_stack = stack;
}

static void on_enter(void *writer, struct timeline_goroutine *g)
{
    struct trail_lanes *lanes = writer;
    struct lane_span of = {.reason = g->reason, .stack = g->stack};
    if (lanes->woken == g && timeline_state_of(g) != TIMELINE_RUNNING) {
        of.other = lanes->waker;
        of.stack = lanes->waker_stack;
    } else if (timeline_state_of(g) == TIMELINE_RUNNING && g->proc) {
        of.other = (uint32_t)g->proc->writer;
    }
    lanes->woken = NULL;
    add(lanes, TRAIL_LANE_GOROUTINE, g->writer, g->since_ns, state_of(timeline_state_of(g)), of);
    recount(lanes, counter_of(timeline_state_of(g)), 1, g->since_ns);
}

static void on_leave(void *writer, struct timeline_goroutine *g, int64_t now, trail_stack stack)
{
    (void)stack;
    recount(writer, counter_of(timeline_state_of(g)), -1, now);
}

static void on_gone(void *writer, struct timeline_goroutine *g, int64_t now)
{
    struct trail_lanes *lanes = writer;
    add(lanes, TRAIL_LANE_GOROUTINE, g->writer, now, TRAIL_SPAN_NONE, (struct lane_span){0});
    if (g->writer != 0)
        lane_trim(&lanes->lists[TRAIL_LANE_GOROUTINE].items[g->writer - 1], &lanes->store);
}

/* Between its spans, a lane that has no state is in an unknown one. */
static void on_lost(void *writer, struct timeline_goroutine *g, int64_t now)
{
    add(writer, TRAIL_LANE_GOROUTINE, g->writer, now, TRAIL_SPAN_NONE, (struct lane_span){0});
}

/* MARK: Ps and threads */

static trail_lane_kind kind_of(const struct timeline_lane *lane)
{
    return lane->is_thread ? TRAIL_LANE_THREAD : TRAIL_LANE_PROC;
}

static void on_lane_enter(void *writer, struct timeline_lane *lane)
{
    struct trail_lanes *lanes = writer;
    if (lane->writer == 0)
        lane->writer = lane_make(lanes, kind_of(lane), lane->id);
    add(lanes, kind_of(lane), lane->writer, lane->since_ns, state_of(lane->state),
        (struct lane_span){.other = lane->g ? (uint32_t)lane->g->writer : 0});
    if (!lane->is_thread)
        recount(lanes, TRAIL_COUNTER_PROCS, 1, lane->since_ns);
}

static void on_lane_leave(void *writer, struct timeline_lane *lane, int64_t now)
{
    add(writer, kind_of(lane), lane->writer, now, TRAIL_SPAN_NONE, (struct lane_span){0});
    if (!lane->is_thread)
        recount(writer, TRAIL_COUNTER_PROCS, -1, now);
}

/* MARK: What else lasts */

static uint32_t depth_of(const struct timeline_span *span)
{
    uint32_t depth = 0;
    for (const struct timeline_span *outer = span->next; outer; outer = outer->next)
        depth++;
    return depth;
}

static void on_open(void *writer, struct timeline_span *span)
{
    static const uint8_t kinds[] = {[TIMELINE_RANGE] = TRAIL_BAR_RANGE,
                                    [TIMELINE_REGION] = TRAIL_BAR_REGION,
                                    [TIMELINE_TASK] = TRAIL_BAR_TASK};
    struct trail_lanes *lanes = writer;
    const struct timeline_goroutine *g = timeline_goroutine_find(&lanes->timeline, span->goroutine);
    if (!GROW(lanes->bars, lanes->bar_capacity, lanes->bar_count + 1)) {
        lanes->timeline.failed = true;
        return;
    }
    lanes->bars[lanes->bar_count++] = (trail_bar){
        .begin_ns = since_origin(lanes, span->begin_ns),
        .kind = kinds[span->kind],
        .open = true,
        .has_begun = !span->before,
        .range = span->range,
        .name = span->name,
        .stack = span->stack,
        .lane = g ? (int64_t)g->writer - 1 : -1,
        .proc = span->proc,
        .task = span->task,
        .parent = span->parent,
        .depth = depth_of(span),
    };
    span->writer = lanes->bar_count;
    lanes->bar_counts[kinds[span->kind]]++;
}

static void on_close(void *writer, struct timeline_span *span, int64_t now)
{
    struct trail_lanes *lanes = writer;
    if (span->writer == 0)
        return;
    lanes->bars[span->writer - 1].open = false;
    lanes->bars[span->writer - 1].end_ns = since_origin(lanes, now);
}

static void on_metric(void *writer, const trail_event *event)
{
    struct trail_lanes *lanes = writer;
    unsigned metric = event->metric.metric;
    if (metric >= TRAIL_METRICS)
        return;
    size_t *count = &lanes->metric_count[metric];
    if (!GROW(lanes->metrics[metric], lanes->metric_capacity[metric], *count + 1)) {
        lanes->timeline.failed = true;
        return;
    }
    lanes->metrics[metric][(*count)++] =
        (trail_metric_value){since_origin(lanes, event->time_ns), event->metric.value};
}

/* MARK: Moments */

/* Returns the lane of the goroutine's P or thread; UINT32_MAX if unknown. */
static uint32_t goroutine_lane(const struct trail_lanes *lanes, int64_t id)
{
    const struct timeline_goroutine *g = timeline_goroutine_find(&lanes->timeline, id);
    return g ? (uint32_t)(g->writer - 1) : UINT32_MAX;
}

static uint32_t lane_of(const struct objects *lanes, int64_t id)
{
    const struct timeline_lane *lane = id < 0 ? NULL : objects_find(lanes, (uint64_t)id);
    return lane ? (uint32_t)(lane->writer - 1) : UINT32_MAX;
}

/* Samples are in order with the events around them, but a few come slightly late. */
static void add_mark(struct trail_lanes *lanes, struct mark_list *list, trail_mark mark)
{
    if (!GROW(list->items, list->capacity, list->count + 1)) {
        lanes->timeline.failed = true;
        return;
    }
    size_t at = list->count++;
    for (; at > 0 && list->items[at - 1].time_ns > mark.time_ns; at--)
        list->items[at] = list->items[at - 1];
    list->items[at] = mark;
}

static trail_mark mark_at(const struct trail_lanes *lanes, const trail_event *event)
{
    return (trail_mark){
        .time_ns = since_origin(lanes, event->time_ns),
        .lane = goroutine_lane(lanes, event->goroutine),
        .thread = lane_of(&lanes->timeline.threads, event->thread),
        .proc = lane_of(&lanes->timeline.procs, event->proc),
    };
}

static void on_log(void *writer, const trail_event *event)
{
    struct trail_lanes *lanes = writer;
    trail_reader *reader = lanes->timeline.reader;
    trail_string category = trail_reader_string(reader, event->log.category);
    trail_string message = trail_reader_string(reader, event->log.message);
    size_t size = category.size + 2 + message.size;
    trail_mark mark = mark_at(lanes, event);
    if (category.size == 0) {
        mark.name = names_of(&lanes->timeline.names, event->log.message);
    } else {
        char *text = malloc(size);
        if (!text) {
            lanes->timeline.failed = true;
            return;
        }
        memcpy(text, category.data, category.size);
        text[category.size] = ':';
        text[category.size + 1] = ' ';
        memcpy(text + category.size + 2, message.data, message.size);
        mark.name = names_put(&lanes->timeline.names, text, size);
        free(text);
    }
    mark.proc = UINT32_MAX;
    mark.stack = stacks_of(&lanes->timeline.stacks, event->stack);
    add_mark(lanes, &lanes->logs, mark);
}

static void on_sample(void *writer, const trail_event *event, trail_stack stack)
{
    struct trail_lanes *lanes = writer;
    trail_mark mark = mark_at(lanes, event);
    mark.stack = stack;
    add_mark(lanes, &lanes->samples, mark);
}

static void on_clocks(void *writer, const trail_clock_snapshot *snapshot)
{
    struct trail_lanes *lanes = writer;
    if (lanes->has_wall || snapshot->wall_s <= 0 || snapshot->wall_s > INT64_MAX / 2000000000)
        return;
    lanes->has_wall = true;
    lanes->wall_ns =
        snapshot->wall_s * 1000000000 + snapshot->wall_ns - since_origin(lanes, snapshot->trace_ns);
}

/* MARK: Life */

static const struct timeline_ops ops = {
    .goroutine = on_goroutine,
    .enter = on_enter,
    .leave = on_leave,
    .gone = on_gone,
    .lost = on_lost,
    .lane_enter = on_lane_enter,
    .lane_leave = on_lane_leave,
    .wake = on_wake,
    .open = on_open,
    .close = on_close,
    .log = on_log,
    .metric = on_metric,
    .sample = on_sample,
    .clocks = on_clocks,
};

struct trail_lanes *lanes_make(trail_reader *reader)
{
    trail_lanes *lanes = calloc(1, sizeof *lanes);
    if (!lanes)
        return NULL;
    if (!bins_init(&lanes->bins)) {
        free(lanes);
        return NULL;
    }
    lanes->store.memory = STORE_MEMORY;
    lanes->timeline.reader = reader;
    lanes->timeline.options = &lanes->options;
    lanes->timeline.ops = &ops;
    lanes->timeline.writer = lanes;
    timeline_begin(&lanes->timeline);
    return lanes;
}

trail_lanes *trail_lanes_open(trail_reader *reader)
{
    return lanes_make(reader);
}

void trail_lanes_close(trail_lanes *lanes)
{
    if (!lanes)
        return;
    for (int kind = 0; kind < TRAIL_LANE_KINDS; kind++) {
        for (size_t i = 0; i < lanes->lists[kind].count; i++)
            lane_free(&lanes->lists[kind].items[i]);
        free(lanes->lists[kind].items);
    }
    for (int metric = 0; metric < TRAIL_METRICS; metric++)
        free(lanes->metrics[metric]);
    store_free(&lanes->store);
    free(lanes->bars);
    free(lanes->logs.items);
    free(lanes->samples.items);
    bins_free(&lanes->bins);
    timeline_free(&lanes->timeline);
    free(lanes);
}

bool trail_lanes_feed(trail_lanes *lanes, const trail_event *events, long count)
{
    if (count > 0) {
        timeline_feed(&lanes->timeline, events, count);
        bins_flush(&lanes->bins, trail_lanes_end(lanes));
    }
    return !lanes->timeline.failed;
}

/* MARK: Answers */

static const struct lane *lane_at(const trail_lanes *lanes, trail_lane_kind kind, size_t i)
{
    return &lanes->lists[kind].items[i];
}

static bool is_open(const struct lane *lane)
{
    return lane->chunk_count > 0 && lane->last_state != TRAIL_SPAN_NONE;
}

int64_t trail_lanes_end(const trail_lanes *lanes)
{
    return since_origin(lanes, lanes->timeline.last_ns);
}

void trail_lanes_get_size(const trail_lanes *lanes, trail_lanes_size *size)
{
    *size = (trail_lanes_size){.events = lanes->timeline.stats.events,
                               .spans = lanes->spans,
                               .bytes = lanes->store.bytes +
                                        BINS * sizeof *lanes->bins.ns * (lanes->bins.late ? 2 : 1)};
    size->bytes += lanes->bar_capacity * sizeof *lanes->bars;
    size->bytes += lanes->logs.capacity * sizeof *lanes->logs.items;
    size->bytes += lanes->samples.capacity * sizeof *lanes->samples.items;
    for (int kind = 0; kind < TRAIL_LANE_KINDS; kind++)
        size->bytes += lanes->lists[kind].capacity * sizeof *lanes->lists[kind].items;
    for (int metric = 0; metric < TRAIL_METRICS; metric++)
        size->bytes += lanes->metric_capacity[metric] * sizeof *lanes->metrics[metric];
}

size_t trail_lanes_count(const trail_lanes *lanes, trail_lane_kind kind)
{
    return lanes->lists[kind].count;
}

/* If a goroutine's creation is in the trace, its first waker is its creator. */
static int64_t creator_of(const struct lane *lane)
{
    trail_span_cursor cursor;
    struct lane_span first;
    int64_t end_ns;
    lane_seek(lane, 0, &cursor);
    if (!lane_next(lane, &cursor, 0, &first, &end_ns) || first.state == TRAIL_SPAN_RUNNING)
        return -1;
    return (int64_t)first.other - 1;
}

void trail_lanes_get(const trail_lanes *lanes, trail_lane_kind kind, size_t i, trail_lane *row)
{
    const struct lane *lane = lane_at(lanes, kind, i);
    uint64_t count = lane_count(lane);
    *row = (trail_lane){
        .id = lane->id, .name = lane->name, .spans = count, .first_wait_ns = -1, .parent = -1};
    if (count == 0)
        return;
    row->begin_ns = lane->chunks[0].begin_ns;
    row->open = is_open(lane);
    row->end_ns = row->open ? trail_lanes_end(lanes) : lane->last_ns;
    memcpy(row->ns, lane->sums, sizeof row->ns);
    row->ns[lane->last_state] += row->end_ns - lane->last_ns;
    row->first_wait_ns = lane->has_waited ? lane->first_wait_ns : -1;
    row->parent = kind == TRAIL_LANE_GOROUTINE ? creator_of(lane) : -1;
}

trail_name trail_lanes_name(const trail_lanes *lanes, trail_lane_kind kind, size_t i)
{
    return lane_at(lanes, kind, i)->name;
}

void trail_lanes_sums(const trail_lanes *lanes, trail_lane_kind kind, size_t i, int64_t ns,
                      int64_t sums[TRAIL_SPAN_STATES])
{
    const struct lane *lane = lane_at(lanes, kind, i);
    struct lane_position position;
    int64_t end = is_open(lane) ? trail_lanes_end(lanes) : lane->last_ns;
    memset(sums, 0, TRAIL_SPAN_STATES * sizeof *sums);
    if (ns > end)
        ns = end;
    if (!lane_find(lane, ns, &position))
        return;
    memcpy(sums, position.sums, sizeof position.sums);
    sums[TRAIL_SPAN_NONE] = 0;
}

int64_t trail_lanes_find(const trail_lanes *lanes, trail_lane_kind kind, int64_t id)
{
    const struct lane_list *list = &lanes->lists[kind];
    for (size_t i = list->count; i-- > 0;)
        if (list->items[i].id == id)
            return (int64_t)i;
    return -1;
}

size_t trail_lanes_cells(const trail_lanes *lanes, trail_lane_kind kind, size_t lane,
                         int64_t from_ns, int64_t to_ns, size_t width, trail_cell *cells)
{
    if (lane >= lanes->lists[kind].count || width > 65536)
        return 0;
    return lane_cells(lane_at(lanes, kind, lane), trail_lanes_end(lanes), from_ns, to_ns, width,
                      cells);
}

void trail_lanes_seek(const trail_lanes *lanes, trail_lane_kind kind, size_t i, uint64_t span,
                      trail_span_cursor *cursor)
{
    *cursor = (trail_span_cursor){.kind = kind, .lane = i};
    if (i < lanes->lists[kind].count)
        lane_seek(lane_at(lanes, kind, i), span, cursor);
}

bool trail_lanes_next(const trail_lanes *lanes, trail_span_cursor *cursor, trail_span *row)
{
    struct lane_span span;
    int64_t end_ns;
    if (cursor->lane >= lanes->lists[cursor->kind].count)
        return false;
    const struct lane *lane = lane_at(lanes, cursor->kind, cursor->lane);
    if (!lane_next(lane, cursor, trail_lanes_end(lanes), &span, &end_ns))
        return false;
    *row = (trail_span){.begin_ns = span.begin_ns,
                        .end_ns = end_ns,
                        .open = cursor->next == lane_count(lane),
                        .state = span.state,
                        .reason = span.reason,
                        .stack = span.stack,
                        .other = (int64_t)span.other - 1};
    return true;
}

bool trail_lanes_span(const trail_lanes *lanes, trail_lane_kind kind, size_t i, uint64_t span,
                      trail_span *row)
{
    trail_span_cursor cursor;
    trail_lanes_seek(lanes, kind, i, span, &cursor);
    return cursor.next == span && trail_lanes_next(lanes, &cursor, row);
}

uint64_t trail_lanes_span_at(const trail_lanes *lanes, trail_lane_kind kind, size_t i, int64_t ns)
{
    struct lane_position position;
    if (i >= lanes->lists[kind].count || !lane_find(lane_at(lanes, kind, i), ns, &position))
        return 0;
    return position.span;
}

trail_wait_for trail_lanes_wait_for(const trail_lanes *lanes, trail_name wait)
{
    return wait_for_of(&lanes->timeline.names, wait);
}

trail_string trail_lanes_text(const trail_lanes *lanes, trail_name name)
{
    return timeline_text(&lanes->timeline, name);
}

size_t trail_lanes_stack(const trail_lanes *lanes, trail_stack stack, const trail_place **places)
{
    struct stack_row row = stacks_get(&lanes->timeline.stacks, stack);
    *places = row.places;
    return row.count;
}

size_t trail_lanes_stack_count(const trail_lanes *lanes)
{
    return lanes->timeline.stacks.count;
}

size_t trail_lanes_bars(const trail_lanes *lanes, const trail_bar **bars)
{
    *bars = lanes->bars;
    return lanes->bar_count;
}

size_t trail_lanes_count_bars(const trail_lanes *lanes, trail_bar_kind kind)
{
    return lanes->bar_counts[kind];
}

size_t trail_lanes_metric(const trail_lanes *lanes, trail_metric metric,
                          const trail_metric_value **values)
{
    *values = lanes->metrics[metric];
    return lanes->metric_count[metric];
}

size_t trail_lanes_logs(const trail_lanes *lanes, const trail_mark **marks)
{
    *marks = lanes->logs.items;
    return lanes->logs.count;
}

size_t trail_lanes_samples(const trail_lanes *lanes, const trail_mark **marks)
{
    *marks = lanes->samples.items;
    return lanes->samples.count;
}

void trail_lanes_get_bins(const trail_lanes *lanes, trail_lane_bins *bins)
{
    int64_t end = trail_lanes_end(lanes);
    *bins = (trail_lane_bins){.bin_ns = INT64_C(1) << lanes->bins.shift,
                              .count = end > 0 ? (size_t)(((end - 1) >> lanes->bins.shift) + 1) : 0,
                              .ns = (const int64_t(*)[TRAIL_LANE_COUNTERS])lanes->bins.ns};
}

bool trail_lanes_wall(const trail_lanes *lanes, int64_t *wall_ns)
{
    *wall_ns = lanes->wall_ns;
    return lanes->has_wall;
}
