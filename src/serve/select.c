/*
 * Answers of the API that examine many spans: totals of a time range, its longest spans, and spans
 * similar to a given one. They let other requests run in between.
 */
#include <stdlib.h>

#include "base/grow.h"
#include "base/heap.h"
#include "base/match.h"
#include "base/order.h"
#include "base/text.h"
#include "serve/draw.h"
#include "serve/holder.h"
#include "serve/pace.h"
#include "words/function_name.h"
#include "words/wrappers.h"

enum { MOST_NAMES = 1000, MOST_LISTED = 1000, MOST_LONGEST = 100, HISTOGRAM = 64 };

/* MARK: Time range */

struct share {
    trail_name name;
    uint64_t count; /* lanes or spans */
    int64_t total_ns;
    int64_t ns[TRAIL_SPAN_STATES];
};

/* Indexed by name. */
struct shares {
    struct share *items;
    size_t capacity;
};

/* Returns NULL if out of memory. */
static struct share *share_of(struct shares *shares, trail_name name)
{
    if (!GROW_ZEROED(shares->items, shares->capacity, (size_t)name + 1))
        return NULL;
    shares->items[name].name = name;
    return &shares->items[name];
}

static int compare_shares(const void *left, const void *right)
{
    const struct share *a = left, *b = right;
    return ORDER(b->total_ns, a->total_ns) ?: ORDER(a->name, b->name);
}

/* Sorts by total time, longest first. Returns the number of shares. */
static size_t sort_shares(struct shares *shares)
{
    size_t count = 0;
    for (size_t i = 0; i < shares->capacity; i++)
        if (shares->items[i].count > 0)
            shares->items[count++] = shares->items[i];
    if (count > 0)
        qsort(shares->items, count, sizeof *shares->items, compare_shares);
    return count;
}

static void put_states(struct json *json, const int64_t ns[TRAIL_SPAN_STATES])
{
    json_open(json, "states", '{');
    for (unsigned state = 1; state < TRAIL_SPAN_STATES; state++) {
        json_signed(json, state_words[state], ns[state]);
    }
    json_close(json, '}');
}

struct selection {
    const trail_lanes *lanes;
    struct pace pace;
    trail_lane_kind kind;
    struct window window;
    int64_t ns[TRAIL_SPAN_STATES];
    struct shares names, reasons;
    uint64_t spans, lane_count;
};

/* Returns how long a span that touches the window is inside it. */
static int64_t part_inside(const struct window *window, const trail_span *row)
{
    int64_t begin = row->begin_ns > window->from_ns ? row->begin_ns : window->from_ns;
    int64_t end = row->end_ns < window->to_ns ? row->end_ns : window->to_ns;
    return end - begin;
}

/* Adds the lane's waits in the window, by reason. */
static bool add_reasons(struct selection *s, size_t lane)
{
    trail_span_cursor cursor;
    trail_span row;
    trail_lanes_seek(s->lanes, s->kind, lane,
                     trail_lanes_span_at(s->lanes, s->kind, lane, s->window.from_ns), &cursor);
    while (trail_lanes_next(s->lanes, &cursor, &row) && row.begin_ns < s->window.to_ns) {
        walk_on(&s->pace, 1);
        if (row.state == TRAIL_SPAN_NONE || row.end_ns <= s->window.from_ns)
            continue;
        s->spans++;
        if (row.state != TRAIL_SPAN_WAITING)
            continue;
        struct share *reason = share_of(&s->reasons, row.reason);
        if (!reason)
            return false;
        reason->total_ns += part_inside(&s->window, &row);
        reason->count++;
    }
    return true;
}

static bool add_lane(void *context, size_t lane)
{
    struct selection *s = context;
    int64_t before[TRAIL_SPAN_STATES], after[TRAIL_SPAN_STATES], total = 0;
    trail_lanes_sums(s->lanes, s->kind, lane, s->window.from_ns, before);
    trail_lanes_sums(s->lanes, s->kind, lane, s->window.to_ns, after);
    struct share *name = share_of(&s->names, trail_lanes_name(s->lanes, s->kind, lane));
    if (!name)
        return false;
    for (unsigned state = 1; state < TRAIL_SPAN_STATES; state++) {
        int64_t ns = after[state] - before[state];
        s->ns[state] += ns;
        name->ns[state] += ns;
        total += ns;
    }
    name->total_ns += total;
    name->count += total > 0;
    s->lane_count++;
    walk_on(&s->pace, 16);
    return add_reasons(s, lane);
}

/* Includes the kind and object if they are recorded. */
static void put_reason(struct json *json, const trail_lanes *lanes, trail_name wait)
{
    trail_wait_for what = trail_lanes_wait_for(lanes, wait);
    json_text(json, "reason", trail_lanes_text(lanes, what.reason));
    if (what.kind)
        json_string(json, "wait_kind", what.kind);
    if (what.object)
        json_text(json, "object", trail_lanes_text(lanes, what.object));
}

static void put_selection(struct json *json, struct selection *s)
{
    json_open(json, NULL, '{');
    json_signed(json, "duration", s->window.to_ns - s->window.from_ns);
    put_states(json, s->ns);
    json_open(json, "by_name", '[');
    size_t count = sort_shares(&s->names);
    for (size_t i = 0; i < count && i < MOST_NAMES; i++) {
        json_open(json, NULL, '{');
        json_text(json, "name", trail_lanes_text(s->lanes, s->names.items[i].name));
        json_number(json, "lanes", s->names.items[i].count);
        put_states(json, s->names.items[i].ns);
        json_close(json, '}');
    }
    json_close(json, ']');
    json_open(json, "by_reason", '[');
    bool complete = count <= MOST_NAMES;
    count = sort_shares(&s->reasons);
    for (size_t i = 0; i < count && i < MOST_NAMES; i++) {
        json_open(json, NULL, '{');
        put_reason(json, s->lanes, s->reasons.items[i].name);
        json_signed(json, "ns", s->reasons.items[i].total_ns);
        json_number(json, "spans", s->reasons.items[i].count);
        json_close(json, '}');
    }
    json_close(json, ']');
    json_number(json, "lanes", s->lane_count);
    json_number(json, "spans_seen", s->spans);
    json_bool(json, "complete", complete && count <= MOST_NAMES);
    json_close(json, '}');
}

/* Whether the filter matches the lane. NULL matches every lane. */
static bool lane_matches(const trail_lanes *lanes, trail_lane_kind kind, size_t lane,
                         const char *filter)
{
    trail_lane row;
    if (!filter)
        return true;
    trail_lanes_get(lanes, kind, lane, &row);
    return match_words(trail_lanes_text(lanes, row.name), &row.id, 1, filter);
}

bool each_lane(struct exchange *exchange, const trail_lanes *lanes, trail_lane_kind kind,
               bool (*add)(void *context, size_t lane), void *context)
{
    const char *filter = parameter_text(exchange, "match");
    size_t count = trail_lanes_count(lanes, kind);
    struct lane_set set;
    bool good = true;
    parameter_lanes(exchange, &set);
    if (exchange->status)
        return true;
    for (size_t i = 0; good && i < (set.given ? set.count : count); i++) {
        size_t lane = set.given ? set.lanes[i] : i;
        if (lane < count && lane_matches(lanes, kind, lane, filter))
            good = add(context, lane);
    }
    return good;
}

void draw_select(struct exchange *exchange, const trail_lanes *lanes)
{
    struct selection s = {.lanes = lanes,
                          .pace = {.model = exchange->model},
                          .kind = parameter_kind(exchange),
                          .window = parameter_window(exchange, trail_lanes_end(lanes))};
    bool good = each_lane(exchange, lanes, s.kind, add_lane, &s);
    if (!good)
        exchange_refuse(exchange, 500, "no memory");
    if (!exchange->status)
        put_selection(&exchange->json, &s);
    free(s.names.items);
    free(s.reasons.items);
}

/* MARK: Spans of a range */

struct listed {
    size_t lane;
    uint64_t span;
    trail_span row;
    int64_t inside_ns; /* its part in the range */
};

struct list {
    const trail_lanes *lanes;
    struct pace pace;
    /* By number, the stacks that contain the requested function; NULL: spans with any stack. */
    bool *is_wanted;
    size_t stacks;
    int64_t holder; /* lane that held the lock of each wait; -1: any span */
    trail_lane_kind kind;
    struct window window;
    uint64_t all;
    size_t most, count;
    struct listed rows[MOST_LISTED]; /* the longest so far: a heap with the shortest first */
};

/* Of spans with equal length, the later one is dropped first. */
static int compare_listed(const struct listed *a, const struct listed *b)
{
    return ORDER(b->inside_ns, a->inside_ns) ?: ORDER(a->row.begin_ns, b->row.begin_ns) ?:
           ORDER(a->lane, b->lane);
}

static inline bool is_left_out_first(const struct listed *a, const struct listed *b)
{
    return compare_listed(a, b) > 0;
}

HEAP(listed, struct listed, is_left_out_first)

static int compare_rows(const void *left, const void *right)
{
    return compare_listed(left, right);
}

static void list_span(struct list *list, struct listed span)
{
    list->all++;
    if (list->count < list->most)
        (void)listed_up(list->rows, list->count++, span);
    else if (is_left_out_first(&list->rows[0], &span))
        listed_down(list->rows, list->count, 0, span);
}

static bool has_function(const trail_lanes *lanes, size_t stack, const char *function)
{
    const trail_place *places;
    size_t count = trail_lanes_stack(lanes, (trail_stack)stack, &places);
    for (size_t i = 0; i < count; i++)
        if (text_is(trail_lanes_text(lanes, places[i].function), function))
            return true;
    return false;
}

/* Returns false if out of memory. */
static bool list_want_function(struct list *list, const char *function)
{
    list->stacks = trail_lanes_stack_count(list->lanes);
    list->is_wanted = calloc(list->stacks + 1, sizeof *list->is_wanted);
    if (!list->is_wanted)
        return false;
    for (size_t i = 1; i < list->stacks; i++)
        list->is_wanted[i] = has_function(list->lanes, i, function);
    return true;
}

static inline bool is_listed(const struct list *list, const trail_span *row)
{
    return row->state != TRAIL_SPAN_NONE && row->end_ns > list->window.from_ns &&
           (!list->is_wanted || (row->stack < list->stacks && list->is_wanted[row->stack]));
}

static bool is_for_holder(const struct list *list, const struct listed *span)
{
    return list->holder < 0 || list->kind != TRAIL_LANE_GOROUTINE ||
           holder_of_wait(list->lanes, span->lane, span->span, &span->row).lane == list->holder;
}

static bool list_lane(void *context, size_t lane)
{
    struct list *list = context;
    const struct window *window = &list->window;
    trail_span_cursor cursor;
    struct listed span = {.lane = lane};
    trail_lanes_seek(list->lanes, list->kind, lane,
                     trail_lanes_span_at(list->lanes, list->kind, lane, window->from_ns), &cursor);
    while (trail_lanes_next(list->lanes, &cursor, &span.row) && span.row.begin_ns < window->to_ns) {
        walk_on(&list->pace, 1);
        if (!is_listed(list, &span.row))
            continue;
        span.span = cursor.next - 1;
        span.inside_ns = part_inside(window, &span.row);
        if (is_for_holder(list, &span))
            list_span(list, span);
    }
    return true;
}

/* Writes "function": the program's innermost own function, by which places are named; nothing if
 * there is none. */
static void put_function(struct json *json, const trail_lanes *lanes, trail_stack stack)
{
    const trail_place *places;
    char room[FUNCTION_NAME_SIZE];
    size_t count = trail_lanes_stack(lanes, stack, &places);
    for (size_t i = 0; i < count; i++) {
        trail_string name = trail_lanes_text(lanes, places[i].function);
        if (frame_rank(NULL, name, trail_lanes_text(lanes, places[i].file)) <= FRAME_WRAPPER)
            continue;
        json_text(json, "function", function_name_short(name, room));
        return;
    }
}

static void put_listed(struct json *json, const struct list *list, const struct listed *span)
{
    put_lane_ref(json, NULL, list->lanes, list->kind, (int64_t)span->lane, (int64_t)span->span);
    json_signed(json, "begin", span->row.begin_ns);
    json_signed(json, "end", span->row.end_ns);
    json_signed(json, "inside", span->inside_ns);
    json_string(json, "state", state_words[span->row.state]);
    put_wait(json, list->lanes, &span->row);
    put_function(json, list->lanes, span->row.stack);
    if (list->kind != TRAIL_LANE_GOROUTINE && span->row.other >= 0)
        put_lane_object(json, "goroutine", list->lanes, TRAIL_LANE_GOROUTINE, span->row.other, -1);
    if (list->kind == TRAIL_LANE_GOROUTINE)
        put_holder(json, list->lanes, span->lane, span->span, &span->row);
    json_close(json, '}');
}

void draw_spans(struct exchange *exchange, const trail_lanes *lanes)
{
    struct json *json = &exchange->json;
    const char *function = parameter_text(exchange, "function");
    struct list *list = calloc(1, sizeof *list);
    if (list)
        list->lanes = lanes;
    if (!list || (function && !list_want_function(list, function))) {
        exchange_refuse(exchange, 500, "no memory");
        free(list);
        return;
    }
    list->pace.model = exchange->model;
    list->kind = parameter_kind(exchange);
    list->window = parameter_window(exchange, trail_lanes_end(lanes));
    list->most = (size_t)parameter_number(exchange, "count", 1, MOST_LISTED, MOST_LISTED);
    list->holder = parameter_number(exchange, "holder", 0, UINT32_MAX, -1);
    (void)each_lane(exchange, lanes, list->kind, list_lane, list);
    if (!exchange->status) {
        qsort(list->rows, list->count, sizeof *list->rows, compare_rows);
        json_open(json, NULL, '{');
        json_number(json, "all", list->all);
        json_open(json, "spans", '[');
        for (size_t i = 0; i < list->count; i++)
            put_listed(json, list, &list->rows[i]);
        json_close(json, ']');
        json_close(json, '}');
    }
    free(list->is_wanted);
    free(list);
}

/* MARK: Similar spans */

struct like_span {
    size_t lane;
    uint64_t span;
    int64_t begin_ns, end_ns;
};

struct like {
    trail_lane_kind kind;
    unsigned state;
    const char *reason, *name; /* NULL: any */
    uint64_t count;
    int64_t total_ns;
    uint64_t histogram[HISTOGRAM]; /* [i]: from 2^(i-1) to less than 2^i; [0]: 0 */
    size_t longest_count;
    struct like_span longest[MOST_LONGEST];
};

static void add_longest(struct like *like, struct like_span span)
{
    int64_t length = span.end_ns - span.begin_ns;
    size_t at = like->longest_count;
    struct like_span *rows = like->longest;
    if (at == MOST_LONGEST) {
        if (rows[at - 1].end_ns - rows[at - 1].begin_ns >= length)
            return;
        at--;
    } else {
        like->longest_count++;
    }
    for (; at > 0 && rows[at - 1].end_ns - rows[at - 1].begin_ns < length; at--)
        rows[at] = rows[at - 1];
    rows[at] = span;
}

static void add_like(struct like *like, size_t lane, uint64_t span, const trail_span *row)
{
    uint64_t length = (uint64_t)(row->end_ns - row->begin_ns);
    like->count++;
    like->total_ns += (int64_t)length;
    like->histogram[length == 0 ? 0 : 64 - __builtin_clzll(length)]++;
    add_longest(like, (struct like_span){lane, span, row->begin_ns, row->end_ns});
}

static trail_string reason_text(const trail_lanes *lanes, trail_name wait)
{
    return trail_lanes_text(lanes, trail_lanes_wait_for(lanes, wait).reason);
}

static void collect_like(struct like *like, const trail_lanes *lanes, size_t lane,
                         struct pace *pace)
{
    trail_span_cursor cursor;
    trail_span row;
    if (like->name &&
        !text_is(trail_lanes_text(lanes, trail_lanes_name(lanes, like->kind, lane)), like->name))
        return;
    trail_lanes_seek(lanes, like->kind, lane, 0, &cursor);
    while (trail_lanes_next(lanes, &cursor, &row)) {
        walk_on(pace, 1);
        if (row.state == like->state &&
            (!like->reason || text_is(reason_text(lanes, row.reason), like->reason)))
            add_like(like, lane, cursor.next - 1, &row);
    }
}

static void put_histogram(struct json *json, const struct like *like)
{
    for (unsigned i = 0; i < HISTOGRAM - 1; i++) {
        if (like->histogram[i] == 0)
            continue;
        json_open(json, NULL, '{');
        json_signed(json, "from_ns", i == 0 ? 0 : INT64_C(1) << (i - 1));
        json_signed(json, "to_ns", INT64_C(1) << i);
        json_number(json, "count", like->histogram[i]);
        json_close(json, '}');
    }
}

static void put_longest(struct json *json, const struct like *like, const trail_lanes *lanes)
{
    for (size_t i = 0; i < like->longest_count; i++) {
        const struct like_span *span = &like->longest[i];
        trail_lane lane;
        trail_lanes_get(lanes, like->kind, span->lane, &lane);
        json_open(json, NULL, '{');
        json_number(json, "lane", span->lane);
        json_signed(json, "id", lane.id);
        json_number(json, "span", span->span);
        json_signed(json, "begin", span->begin_ns);
        json_signed(json, "end", span->end_ns);
        json_close(json, '}');
    }
}

void draw_like(struct exchange *exchange, const trail_lanes *lanes)
{
    struct json *json = &exchange->json;
    struct like like = {
        .kind = parameter_kind(exchange),
        .state = (unsigned)parameter_word(exchange, "state", state_words, TRAIL_SPAN_STATES),
        .reason = parameter_text(exchange, "reason"),
        .name = parameter_text(exchange, "name"),
    };
    struct pace pace = {.model = exchange->model};
    if (like.state == TRAIL_SPAN_STATES)
        exchange_refuse(exchange, 400, "state says which: runnable, running, waiting, ...");
    if (exchange->status)
        return;
    for (size_t i = 0; i < trail_lanes_count(lanes, like.kind); i++) {
        walk_on(&pace, 1);
        collect_like(&like, lanes, i, &pace);
    }
    json_open(json, NULL, '{');
    json_number(json, "count", like.count);
    json_signed(json, "total_ns", like.total_ns);
    json_open(json, "histogram", '[');
    put_histogram(json, &like);
    json_close(json, ']');
    json_open(json, "longest", '[');
    put_longest(json, &like, lanes);
    json_close(json, ']');
    json_close(json, '}');
}
