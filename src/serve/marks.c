/* Answers of the API about data beside the states: bars, marks, metrics and counters. */
#include <stdlib.h>

#include "base/grow.h"
#include "base/order.h"
#include "base/search.h"
#include "base/text.h"
#include "serve/draw.h"
#include "serve/holder.h"

/* Returns the length of a pixel of the window in ns, rounded up. */
static int64_t pixel_ns(const struct window *window)
{
    int64_t width = (int64_t)window->width;
    return (window->to_ns - window->from_ns + width - 1) / width;
}

/* Returns the column that contains `ns`, which must be in the window. */
static size_t column_at(const struct window *window, int64_t ns)
{
    uint64_t length = (uint64_t)(window->to_ns - window->from_ns);
    uint64_t offset = (uint64_t)(ns - window->from_ns);
    size_t column = (size_t)((__uint128_t)offset * window->width / length);
    return column < window->width ? column : window->width - 1;
}

/* MARK: Bars */

/* One bar, or several that are too short to be visible separately. */
struct bar_row {
    const trail_bar *bar; /* the first */
    size_t number;
    int64_t end_ns;
    uint64_t count;
};

struct bar_rows {
    struct bar_row *items;
    size_t count, capacity;
};

static int64_t bar_end(const trail_bar *bar, int64_t end_ns)
{
    return bar->open ? end_ns : bar->end_ns;
}

/* Orders by place, then by start. */
static int compare_rows(const void *left, const void *right)
{
    const struct bar_row *x = left, *y = right;
    const trail_bar *a = x->bar, *b = y->bar;
    return ORDER((int)a->kind, (int)b->kind) ?: ORDER(a->lane, b->lane) ?:
           ORDER(a->proc, b->proc) ?: ORDER(a->depth, b->depth) ?:
           ORDER(a->begin_ns, b->begin_ns) ?: ORDER(x->number, y->number);
}

static bool is_same_place(const trail_bar *a, const trail_bar *b)
{
    return a->kind == b->kind && a->lane == b->lane && a->proc == b->proc && a->depth == b->depth;
}

/* Merges adjacent short bars. Returns whether any were merged. */
static bool merge_rows(struct bar_rows *rows, int64_t pixel)
{
    size_t kept = 0;
    for (size_t i = 0; i < rows->count; i++) {
        struct bar_row *row = &rows->items[i];
        struct bar_row *last = kept > 0 ? &rows->items[kept - 1] : NULL;
        bool is_short = row->end_ns - row->bar->begin_ns < pixel;
        bool last_short = last && (last->count > 1 || last->end_ns - last->bar->begin_ns < pixel);
        if (last_short && is_short && is_same_place(last->bar, row->bar) &&
            row->bar->begin_ns - last->end_ns < pixel) {
            last->count++;
            if (row->end_ns > last->end_ns)
                last->end_ns = row->end_ns;
        } else {
            rows->items[kept++] = *row;
        }
    }
    bool merged = kept < rows->count;
    rows->count = kept;
    return merged;
}

static int64_t task_number(uint64_t task)
{
    return task == TRAIL_NO_TASK || task > INT64_MAX ? -1 : (int64_t)task;
}

static void put_numbers(struct json *json, const int64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        json_signed(json, NULL, numbers[i]);
}

static void put_bar(struct json *json, const struct bar_row *row, struct name_list *names)
{
    const trail_bar *bar = row->bar;
    int64_t name = row->count > 1 ? -1 : name_list_add(names, bar->name);
    const int64_t front[] = {
        (int64_t)row->number,    (int64_t)bar->kind, name,       bar->lane,
        bar->begin_ns,           row->end_ns,        bar->depth, task_number(bar->task),
        task_number(bar->parent)};
    const int64_t back[] = {(int64_t)row->count, bar->proc >= 0 ? bar->proc : -1, bar->stack};
    json_open(json, NULL, '[');
    put_numbers(json, front, sizeof front / sizeof *front);
    json_bool(json, NULL, bar->open);
    json_bool(json, NULL, bar->has_begun);
    put_numbers(json, back, sizeof back / sizeof *back);
    json_close(json, ']');
}

static bool collect_bars(struct bar_rows *rows, const trail_lanes *lanes,
                         const struct window *window, int kind, const struct lane_set *set)
{
    const trail_bar *bars;
    size_t count = trail_lanes_bars(lanes, &bars);
    int64_t end_ns = trail_lanes_end(lanes);
    for (size_t i = 0; i < count; i++) {
        int64_t end = bar_end(&bars[i], end_ns);
        if ((kind >= 0 && (int)bars[i].kind != kind) || bars[i].begin_ns >= window->to_ns ||
            end < window->from_ns || !lane_set_has(set, bars[i].lane))
            continue;
        if (!APPEND(rows->items, rows->capacity, rows->count,
                    (struct bar_row){&bars[i], i, end, 1}))
            return false;
    }
    return true;
}

void draw_bars(struct exchange *exchange, const trail_lanes *lanes)
{
    static const char *const kinds[] = {"range", "region", "task", NULL};
    static const char columns[] = "[\"bar\",\"kind\",\"name\",\"lane\",\"begin\",\"end\",\"depth\","
                                  "\"task\",\"parent\",\"open\",\"begun\",\"count\",\"proc\","
                                  "\"stack\"]";
    struct json *json = &exchange->json;
    struct window window = parameter_window(exchange, trail_lanes_end(lanes));
    int kind = parameter_word(exchange, "kind", kinds, -1);
    struct bar_rows rows = {0};
    struct name_list names = {0};
    struct lane_set set;
    parameter_lanes(exchange, &set);
    if (exchange->status)
        return;
    if (!collect_bars(&rows, lanes, &window, kind, &set))
        exchange_refuse(exchange, 500, "no memory");
    if (rows.count > 0)
        qsort(rows.items, rows.count, sizeof *rows.items, compare_rows);
    bool merged = merge_rows(&rows, pixel_ns(&window));
    json_open(json, NULL, '{');
    json_bare(json, "columns", text_from(columns));
    json_open(json, "bars", '[');
    for (size_t i = 0; i < rows.count; i++)
        put_bar(json, &rows.items[i], &names);
    json_close(json, ']');
    name_list_put(json, &names, lanes);
    json_bool(json, "merged", merged);
    json_close(json, '}');
    free(rows.items);
}

/* MARK: Marks */

static const char *const mark_kinds[] = {"log", "sample", NULL};

struct mark_row {
    const trail_mark *mark; /* the first in its pixel */
    size_t column;
    uint64_t count;
};

struct mark_rows {
    struct mark_row *items;
    size_t count, capacity;
    uint32_t *last; /* by lane + 1: its last row + 1 */
};

/* Returns the first mark at `ns` or later. */
static size_t first_mark(const trail_mark *marks, size_t count, int64_t ns)
{
    return SEARCH(i, 0, count, marks[i].time_ns < ns);
}

static bool add_mark(struct mark_rows *rows, const trail_mark *mark, size_t column)
{
    uint32_t *last = &rows->last[mark->lane == UINT32_MAX ? 0 : mark->lane + 1];
    if (*last > 0 && rows->items[*last - 1].column == column) {
        rows->items[*last - 1].count++;
        return true;
    }
    if (rows->count >= UINT32_MAX - 1 || !GROW(rows->items, rows->capacity, rows->count + 1))
        return false;
    rows->items[rows->count++] = (struct mark_row){mark, column, 1};
    *last = (uint32_t)rows->count;
    return true;
}

static void put_marks(struct exchange *exchange, const trail_lanes *lanes,
                      const struct mark_rows *rows, bool is_log)
{
    struct json *json = &exchange->json;
    struct name_list names = {0};
    json_open(json, NULL, '{');
    json_open(json, "marks", '[');
    for (size_t i = 0; i < rows->count; i++) {
        const trail_mark *mark = rows->items[i].mark;
        const int64_t numbers[] = {mark->time_ns, mark_lane(mark),
                                   is_log ? name_list_add(&names, mark->name) : mark->stack,
                                   (int64_t)rows->items[i].count};
        json_open(json, NULL, '[');
        put_numbers(json, numbers, sizeof numbers / sizeof *numbers);
        json_close(json, ']');
    }
    json_close(json, ']');
    name_list_put(json, &names, lanes);
    json_close(json, '}');
}

void draw_marks(struct exchange *exchange, const trail_lanes *lanes)
{
    struct window window = parameter_window(exchange, trail_lanes_end(lanes));
    bool is_log = parameter_word(exchange, "kind", mark_kinds, 0) == 0;
    const trail_mark *marks;
    size_t count = is_log ? trail_lanes_logs(lanes, &marks) : trail_lanes_samples(lanes, &marks);
    struct mark_rows rows = {0};
    struct lane_set set;
    parameter_lanes(exchange, &set);
    if (exchange->status)
        return;
    rows.last = calloc(trail_lanes_count(lanes, TRAIL_LANE_GOROUTINE) + 1, sizeof *rows.last);
    bool good = rows.last != NULL;
    for (size_t i = first_mark(marks, count, window.from_ns);
         good && i < count && marks[i].time_ns < window.to_ns; i++)
        if (lane_set_has(&set, mark_lane(&marks[i])) &&
            !(is_log && mark_is_recorders(lanes, &marks[i])))
            good = add_mark(&rows, &marks[i], column_at(&window, marks[i].time_ns));
    if (good)
        put_marks(exchange, lanes, &rows, is_log);
    else
        exchange_refuse(exchange, 500, "no memory");
    free(rows.last);
    free(rows.items);
}

struct marks {
    const trail_lanes *lanes;
    const trail_mark *items;
    size_t count;
    bool logs;
};

/* Returns the next drawn mark of a lane before (step -1) or after (step 1) `number`; -1: none. */
static int64_t neighbour_mark(const struct marks *marks, int64_t number, int step, int64_t lane)
{
    for (number += step; number >= 0 && number < (int64_t)marks->count; number += step)
        if (mark_lane(&marks->items[number]) == lane &&
            !(marks->logs && mark_is_recorders(marks->lanes, &marks->items[number])))
            return number;
    return -1;
}

static void put_place(struct json *json, const trail_lanes *lanes, const char *key,
                      trail_lane_kind kind, uint32_t lane, int64_t ns)
{
    if (lane == UINT32_MAX)
        return;
    put_lane_object(json, key, lanes, kind, lane,
                    (int64_t)trail_lanes_span_at(lanes, kind, lane, ns));
}

/* Writes one mark, with its stack. */
static void put_mark(struct json *json, const struct marks *marks, int64_t number)
{
    const trail_lanes *lanes = marks->lanes;
    const trail_mark *mark = &marks->items[number];
    int64_t lane = mark_lane(mark);
    json_open(json, NULL, '{');
    json_signed(json, "mark", number);
    json_signed(json, "at", mark->time_ns);
    json_text(json, "text", trail_lanes_text(lanes, mark->name));
    json_signed(json, "before", neighbour_mark(marks, number, -1, lane));
    json_signed(json, "after", neighbour_mark(marks, number, 1, lane));
    put_place(json, lanes, "goroutine", TRAIL_LANE_GOROUTINE, mark->lane, mark->time_ns);
    put_place(json, lanes, "proc", TRAIL_LANE_PROC, mark->proc, mark->time_ns);
    put_place(json, lanes, "thread", TRAIL_LANE_THREAD, mark->thread, mark->time_ns);
    put_stack(json, lanes, mark->stack);
    json_close(json, '}');
}

void draw_mark(struct exchange *exchange, const trail_lanes *lanes)
{
    struct marks marks = {.lanes = lanes};
    marks.logs = parameter_word(exchange, "kind", mark_kinds, 0) == 0;
    int64_t number = parameter_number(exchange, "mark", 0, UINT32_MAX, -1);
    int64_t lane = parameter_number(exchange, "lane", 0, UINT32_MAX, -1);
    int64_t at = parameter_number(exchange, "at", 0, MOST_TIME_NS, -1);
    marks.count = marks.logs ? trail_lanes_logs(lanes, &marks.items)
                             : trail_lanes_samples(lanes, &marks.items);
    if (number < 0 && (lane < 0 || at < 0))
        exchange_refuse(exchange, 400, "mark=N says which, or lane=N and at=NS: the first there");
    if (exchange->status)
        return;
    if (number < 0)
        number =
            neighbour_mark(&marks, (int64_t)first_mark(marks.items, marks.count, at) - 1, 1, lane);
    if (number < 0 || number >= (int64_t)marks.count)
        exchange_refuse(exchange, 404, "there is no such mark");
    else
        put_mark(&exchange->json, &marks, number);
}

/* MARK: Metrics */

static const char *const metric_names[TRAIL_METRICS] = {
    [TRAIL_METRIC_GOMAXPROCS] = "gomaxprocs",
    [TRAIL_METRIC_HEAP_LIVE] = "heap",
    [TRAIL_METRIC_HEAP_GOAL] = "goal",
};

/* Minimum and maximum in each column. A value holds until the next one. */
struct range {
    uint64_t least, most;
    bool known;
};

static void widen(struct range *range, uint64_t value)
{
    if (!range->known || value < range->least)
        range->least = value;
    if (!range->known || value > range->most)
        range->most = value;
    range->known = true;
}

static void fill_metric(struct range *columns, const struct window *window, int64_t end_ns,
                        const trail_metric_value *values, size_t count)
{
    size_t next = 0;
    bool known = false;
    uint64_t value = 0;
    for (size_t c = 0; c < window->width; c++) {
        int64_t begin = column_edge(window, c), end = column_edge(window, c + 1);
        for (; next < count && values[next].time_ns <= begin; next++) {
            value = values[next].value;
            known = true;
        }
        if (known && begin <= end_ns)
            widen(&columns[c], value);
        for (; next < count && values[next].time_ns < end; next++) {
            value = values[next].value;
            known = true;
            widen(&columns[c], value);
        }
    }
}

static void put_ranges(struct json *json, const char *key, const struct range *columns,
                       size_t count, bool most)
{
    json_open(json, key, '[');
    for (size_t c = 0; c < count; c++) {
        if (columns[c].known)
            json_number(json, NULL, most ? columns[c].most : columns[c].least);
        else
            json_null(json, NULL);
    }
    json_close(json, ']');
}

static bool put_metrics(struct json *json, const trail_lanes *lanes, const struct window *window)
{
    for (int metric = 0; metric < TRAIL_METRICS; metric++) {
        const trail_metric_value *values;
        size_t count = trail_lanes_metric(lanes, (trail_metric)metric, &values);
        struct range *columns = calloc(window->width, sizeof *columns);
        if (!columns)
            return false;
        if (count > 0) {
            fill_metric(columns, window, trail_lanes_end(lanes), values, count);
            json_open(json, metric_names[metric], '{');
            put_ranges(json, "min", columns, window->width, false);
            put_ranges(json, "max", columns, window->width, true);
            json_close(json, '}');
        }
        free(columns);
    }
    return true;
}

/* MARK: Counters */

/*
 * Integrals over time for each column: part_ns of the stretches that begin or end in it, and the
 * change of the count that applies from this column on.
 */
struct column {
    double part_ns[TRAIL_LANE_COUNTERS];
    int64_t more[TRAIL_LANE_COUNTERS];
};

static void add_stretch(struct column *columns, const struct window *window,
                        trail_lane_counter counter, int64_t from_ns, int64_t to_ns)
{
    if (from_ns < window->from_ns)
        from_ns = window->from_ns;
    if (to_ns > window->to_ns)
        to_ns = window->to_ns;
    if (from_ns >= to_ns)
        return;
    size_t first = column_at(window, from_ns), last = column_at(window, to_ns - 1);
    /* Column edges are rounded down to ns, so the next column may already begin at this one. */
    while (first + 1 < window->width && column_edge(window, first + 1) <= from_ns)
        first++;
    while (last + 1 < window->width && column_edge(window, last + 1) < to_ns)
        last++;
    if (first == last) {
        columns[first].part_ns[counter] += (double)(to_ns - from_ns);
        return;
    }
    columns[first].part_ns[counter] += (double)(column_edge(window, first + 1) - from_ns);
    columns[last].part_ns[counter] += (double)(to_ns - column_edge(window, last));
    columns[first + 1].more[counter]++;
    columns[last].more[counter]--;
}

/* Whether the window has few enough spans to examine each. */
#define MOST_SPANS (UINT64_C(2) << 20)
enum { MOST_COUNTED_LANES = 200000 };

static bool are_few(const trail_lanes *lanes, trail_lane_kind kind, const struct window *window)
{
    uint64_t spans = 0;
    size_t count = trail_lanes_count(lanes, kind);
    for (size_t i = 0; i < count && count <= MOST_COUNTED_LANES && spans < MOST_SPANS; i++)
        spans += trail_lanes_span_at(lanes, kind, i, window->to_ns) -
                 trail_lanes_span_at(lanes, kind, i, window->from_ns) + 1;
    return count <= MOST_COUNTED_LANES && spans < MOST_SPANS;
}

static void count_lanes(struct column *columns, const trail_lanes *lanes, trail_lane_kind kind,
                        const struct window *window)
{
    static const uint8_t counters[TRAIL_SPAN_STATES] = {
        [TRAIL_SPAN_RUNNABLE] = TRAIL_COUNTER_RUNNABLE,
        [TRAIL_SPAN_RUNNING] = TRAIL_COUNTER_RUNNING,
        [TRAIL_SPAN_WAITING] = TRAIL_COUNTER_WAITING,
        [TRAIL_SPAN_SYSCALL] = TRAIL_COUNTER_SYSCALL,
        [TRAIL_SPAN_BLOCKED] = TRAIL_COUNTER_SYSCALL,
    };
    for (size_t i = 0; i < trail_lanes_count(lanes, kind); i++) {
        trail_span_cursor cursor;
        trail_span row;
        trail_lanes_seek(lanes, kind, i, trail_lanes_span_at(lanes, kind, i, window->from_ns),
                         &cursor);
        while (trail_lanes_next(lanes, &cursor, &row) && row.begin_ns < window->to_ns)
            if (row.state != TRAIL_SPAN_NONE)
                add_stretch(columns, window,
                            kind == TRAIL_LANE_PROC ? TRAIL_COUNTER_PROCS
                                                    : (trail_lane_counter)counters[row.state],
                            row.begin_ns, row.end_ns);
    }
}

/* Computes from bins, assuming that the values within a bin are evenly distributed. */
static void count_bins(struct column *columns, const trail_lanes *lanes,
                       const struct window *window)
{
    trail_lane_bins bins;
    trail_lanes_get_bins(lanes, &bins);
    for (size_t c = 0; c < window->width; c++) {
        int64_t begin = column_edge(window, c), end = column_edge(window, c + 1);
        for (size_t i = (size_t)(begin / bins.bin_ns);
             i < bins.count && (int64_t)i * bins.bin_ns < end; i++) {
            int64_t low = (int64_t)i * bins.bin_ns, high = low + bins.bin_ns;
            double share = (double)((end < high ? end : high) - (begin > low ? begin : low)) /
                           (double)bins.bin_ns;
            for (int counter = 0; counter < TRAIL_LANE_COUNTERS; counter++)
                columns[c].part_ns[counter] += share * (double)bins.ns[i][counter];
        }
    }
}

/* Returns the average of a counter in column `c`. *whole has what applied in the column before. */
static double average_in(const struct column *columns, const struct window *window, size_t c,
                         int counter, int64_t *whole)
{
    int64_t length = column_edge(window, c + 1) - column_edge(window, c);
    *whole += columns[c].more[counter];
    return (double)*whole + (length > 0 ? columns[c].part_ns[counter] / (double)length : 0);
}

static void put_counters(struct json *json, struct column *columns, const struct window *window)
{
    static const char *const names[TRAIL_LANE_COUNTERS] = {
        [TRAIL_COUNTER_RUNNABLE] = "runnable", [TRAIL_COUNTER_RUNNING] = "running",
        [TRAIL_COUNTER_WAITING] = "waiting",   [TRAIL_COUNTER_SYSCALL] = "syscall",
        [TRAIL_COUNTER_PROCS] = "procs",
    };
    for (int counter = 0; counter < TRAIL_LANE_COUNTERS; counter++) {
        int64_t whole = 0;
        json_open(json, names[counter], '[');
        for (size_t c = 0; c < window->width; c++)
            json_rounded(json, NULL, average_in(columns, window, c, counter, &whole), 6);
        json_close(json, ']');
    }
}

/* MARK: Shares of the columns */

/* Writes the part of each column covered by ranges whose name begins with `prefix`, which do not
 * overlap. */
static bool put_share(struct json *json, const trail_lanes *lanes, const struct window *window,
                      const char *key, const char *prefix)
{
    struct column *columns = calloc(window->width, sizeof *columns);
    const trail_bar *bars;
    size_t count = trail_lanes_bars(lanes, &bars);
    int64_t whole = 0;
    if (!columns)
        return false;
    for (size_t i = 0; i < count; i++)
        if (bars[i].kind == TRAIL_BAR_RANGE &&
            text_begins(trail_lanes_text(lanes, bars[i].name), prefix))
            add_stretch(columns, window, 0, bars[i].begin_ns,
                        bar_end(&bars[i], trail_lanes_end(lanes)));
    json_open(json, key, '[');
    for (size_t c = 0; c < window->width; c++) {
        double share = average_in(columns, window, c, 0, &whole);
        json_rounded(json, NULL, share < 1 ? share : 1, 4);
    }
    json_close(json, ']');
    free(columns);
    return true;
}

void draw_metrics(struct exchange *exchange, const trail_lanes *lanes)
{
    struct json *json = &exchange->json;
    struct window window = parameter_window(exchange, trail_lanes_end(lanes));
    if (exchange->status)
        return;
    struct column *columns = calloc(window.width, sizeof *columns);
    bool exact =
        are_few(lanes, TRAIL_LANE_GOROUTINE, &window) && are_few(lanes, TRAIL_LANE_PROC, &window);
    if (columns && exact) {
        count_lanes(columns, lanes, TRAIL_LANE_GOROUTINE, &window);
        count_lanes(columns, lanes, TRAIL_LANE_PROC, &window);
    } else if (columns) {
        count_bins(columns, lanes, &window);
    }
    json_open(json, NULL, '{');
    json_number(json, "columns", window.width);
    json_signed(json, "from", window.from_ns);
    json_signed(json, "to", window.to_ns);
    json_bool(json, "exact", exact);
    json_open(json, "metrics", '{');
    if (!columns || !put_metrics(json, lanes, &window))
        exchange_refuse(exchange, 500, "no memory");
    json_close(json, '}');
    json_open(json, "counters", '{');
    if (columns)
        put_counters(json, columns, &window);
    json_close(json, '}');
    json_open(json, "shares", '{');
    bool good = put_share(json, lanes, &window, "stopped", "stop-the-world");
    if (!good || !put_share(json, lanes, &window, "marking", "GC concurrent"))
        exchange_refuse(exchange, 500, "no memory");
    json_close(json, '}');
    json_close(json, '}');
    free(columns);
}
