/* Answers of the API from the lanes: lanes, pictures, single spans. */
#include "serve/draw.h"
#include "serve/holder.h"

#include <stdlib.h>

#include "base/match.h"
#include "base/text.h"
#include "words/wait_classes.h"

enum { MOST_ROWS = 50000, MOST_FRAMES = 256, MOST_WAKES = 100 };

/* MARK: Lanes */

const char *const state_words[TRAIL_SPAN_STATES + 1] = {"none",    "runnable", "running", "waiting",
                                                        "syscall", "blocked",  NULL};

static void put_row(struct json *json, size_t i, const trail_lane *lane, int64_t name)
{
    json_open(json, NULL, '[');
    json_number(json, NULL, i);
    json_signed(json, NULL, lane->id);
    json_signed(json, NULL, name);
    json_signed(json, NULL, lane->begin_ns);
    json_signed(json, NULL, lane->end_ns);
    json_bool(json, NULL, lane->open);
    json_number(json, NULL, lane->spans);
    for (unsigned state = 1; state < TRAIL_SPAN_STATES; state++)
        json_signed(json, NULL, lane->ns[state]);
    json_signed(json, NULL, lane->parent);
    json_signed(json, NULL, lane->first_wait_ns);
    json_close(json, ']');
}

void draw_lanes(struct exchange *exchange, const trail_lanes *lanes)
{
    static const char columns[] =
        "[\"lane\",\"id\",\"name\",\"begin\",\"end\",\"open\",\"spans\",\"runnable\",\"running\","
        "\"waiting\",\"syscall\",\"blocked\",\"parent\",\"first_wait\"]";
    struct json *json = &exchange->json;
    trail_lane_kind kind = parameter_kind(exchange);
    size_t count = trail_lanes_count(lanes, kind), matching = 0, put = 0;
    size_t first = (size_t)parameter_number(exchange, "first", 0, UINT32_MAX, 0);
    size_t most = (size_t)parameter_number(exchange, "count", 1, MOST_ROWS, MOST_ROWS);
    const char *part = parameter_text(exchange, "name");
    struct name_list names = {0};
    if (exchange->status)
        return;
    json_open(json, NULL, '{');
    json_bare(json, "columns", text_from(columns));
    json_open(json, "rows", '[');
    /* Without a name all lanes match, and those on other pages are not examined. */
    for (size_t i = part ? 0 : first; i < count && (part || put < most); i++) {
        trail_lane lane;
        if (part && !match_part(trail_lanes_text(lanes, trail_lanes_name(lanes, kind, i)), part))
            continue;
        if (part && (matching++ < first || put >= most))
            continue;
        trail_lanes_get(lanes, kind, i, &lane);
        put++;
        put_row(json, i, &lane, name_list_add(&names, lane.name));
    }
    json_close(json, ']');
    json_number(json, "all", count);
    json_number(json, "matching", part ? matching : count);
    name_list_put(json, &names, lanes);
    json_close(json, '}');
}

/* MARK: Pictures */

static void put_u16(uint8_t *to, uint64_t value)
{
    to[0] = (uint8_t)value;
    to[1] = (uint8_t)(value >> 8);
}

static void put_u32(uint8_t *to, uint64_t value)
{
    put_u16(to, value);
    put_u16(to + 2, value >> 16);
}

uint64_t pixel_at(const struct window *window, int64_t ns)
{
    uint64_t length = (uint64_t)(window->to_ns - window->from_ns);
    uint64_t offset = (uint64_t)(ns - window->from_ns);
    return (uint64_t)(((__uint128_t)offset * window->width + length - 1) / length);
}

/* Rounded up, so that a part greater than 0 is never shown as 0. */
static uint8_t share_of(int64_t part, int64_t whole)
{
    return (uint8_t)(whole > 0 ? ((__int128_t)part * 255 + whole - 1) / whole : 0);
}

/* The lane whose cells are being written, in order, and what its last wait was for. */
struct painter {
    const trail_lanes *lanes;
    const struct window *window;
    trail_span_cursor cursor;
    trail_span span; /* the one before the cursor, once one has been read */
    trail_name wait;
    enum wait_class class;
};

static enum wait_class class_of(struct painter *p, trail_name wait)
{
    if (wait == p->wait)
        return p->class;
    trail_wait_for what = trail_lanes_wait_for(p->lanes, wait);
    p->wait = wait;
    p->class =
        wait_class_of(what.kind ? text_from(what.kind) : trail_lanes_text(p->lanes, what.reason));
    return p->class;
}

/* How many spans of a mixture are examined, and how many may be skipped on the way to it. */
enum { MOST_MIXED = 16, MOST_PASSED = 64 };

/* Returns the class that the first spans of the cell wait in for the longest time. */
static enum wait_class class_of_cell(struct painter *p, const trail_cell *cell)
{
    enum wait_class class = WAIT_CLASS_UNKNOWN;
    const trail_span *span = &p->span;
    int64_t longest = -1;
    if (cell->ns[TRAIL_SPAN_WAITING] == 0)
        return class;
    /* The last span of the previous cell may extend into this one, and the next ones are near:
     * seeking decodes up to a chunk of spans. */
    bool is_read = p->cursor.next == cell->first + 1;
    if (!is_read && (p->cursor.next > cell->first || p->cursor.next + MOST_PASSED < cell->first))
        trail_lanes_seek(p->lanes, p->cursor.kind, p->cursor.lane, cell->first, &p->cursor);
    while (p->cursor.next < cell->first && trail_lanes_next(p->lanes, &p->cursor, &p->span))
        ;
    for (uint64_t i = 0; i < cell->count && i < MOST_MIXED; i++) {
        if (!(is_read && i == 0) && !trail_lanes_next(p->lanes, &p->cursor, &p->span))
            break;
        int64_t begin = span->begin_ns > cell->begin_ns ? span->begin_ns : cell->begin_ns;
        int64_t end = span->end_ns < cell->end_ns ? span->end_ns : cell->end_ns;
        if (span->state != TRAIL_SPAN_WAITING || end - begin <= longest)
            continue;
        longest = end - begin;
        class = class_of(p, span->reason);
    }
    return class;
}

/*
 * The 16 bytes of a cell, little-endian:
 *
 *  0        2        4       5         6         11           12       16
 *  x  pixels  state   mixture   share[5]  class of waits  first span
 */
static void put_cell(struct out *out, struct painter *p, const trail_cell *cell)
{
    const struct window *window = p->window;
    uint8_t bytes[16] = {0};
    uint64_t x = pixel_at(window, cell->begin_ns), end = pixel_at(window, cell->end_ns);
    put_u16(bytes, x);
    put_u16(bytes + 2, end > x ? end - x : 1);
    bytes[4] = (uint8_t)cell->state;
    int64_t length = cell->end_ns - cell->begin_ns;
    bool whole = cell->count == 1 && cell->ns[cell->state] == length;
    bytes[5] = !whole;
    for (unsigned state = 1; state < TRAIL_SPAN_STATES; state++)
        bytes[5 + state] = share_of(cell->ns[state], length);
    if (whole)
        bytes[5 + cell->state] = 255;
    bytes[11] = (uint8_t)class_of_cell(p, cell);
    put_u32(bytes + 12, cell->first);
    out_bytes(out, bytes, sizeof bytes);
}

void draw_picture(struct exchange *exchange, const trail_lanes *lanes)
{
    struct out *out = exchange->json.out;
    trail_lane_kind kind = parameter_kind(exchange);
    struct window window = parameter_window(exchange, trail_lanes_end(lanes));
    struct lane_set set;
    parameter_lanes(exchange, &set);
    if (!set.given)
        exchange_refuse(exchange, 400, "lanes says which: 3,5,9");
    trail_cell *cells = exchange->status ? NULL : malloc(window.width * sizeof *cells);
    if (!cells) {
        exchange_refuse(exchange, 500, "no memory");
        return;
    }
    exchange->type = "application/octet-stream";
    for (size_t i = 0; i < set.count; i++) {
        uint8_t head[8];
        struct painter painter = {
            .lanes = lanes, .window = &window, .cursor = {.kind = kind, .lane = set.lanes[i]}};
        if (set.lanes[i] >= trail_lanes_count(lanes, kind))
            continue;
        size_t count = trail_lanes_cells(lanes, kind, set.lanes[i], window.from_ns, window.to_ns,
                                         window.width, cells);
        put_u32(head, set.lanes[i]);
        put_u32(head + 4, count);
        out_bytes(out, head, sizeof head);
        for (size_t k = 0; k < count; k++)
            put_cell(out, &painter, &cells[k]);
    }
    free(cells);
}

/* MARK: One span */

void put_lane_ref(struct json *json, const char *key, const trail_lanes *lanes,
                  trail_lane_kind kind, int64_t lane, int64_t span)
{
    trail_lane row;
    trail_lanes_get(lanes, kind, (size_t)lane, &row);
    json_open(json, key, '{');
    json_signed(json, "lane", lane);
    json_signed(json, "id", row.id);
    if (kind == TRAIL_LANE_GOROUTINE)
        json_text(json, "name", trail_lanes_text(lanes, row.name));
    if (span >= 0)
        json_signed(json, "span", span);
}

void put_lane_object(struct json *json, const char *key, const trail_lanes *lanes,
                     trail_lane_kind kind, int64_t lane, int64_t span)
{
    put_lane_ref(json, key, lanes, kind, lane, span);
    json_close(json, '}');
}

void put_stack(struct json *json, const trail_lanes *lanes, trail_stack stack)
{
    const trail_place *places;
    size_t count = trail_lanes_stack(lanes, stack, &places);
    json_open(json, "stack", '[');
    for (size_t i = 0; i < count && i < MOST_FRAMES; i++) {
        json_open(json, NULL, '{');
        json_text(json, "function", trail_lanes_text(lanes, places[i].function));
        json_text(json, "file", trail_lanes_text(lanes, places[i].file));
        json_signed(json, "line", (int64_t)(places[i].line <= INT64_MAX ? places[i].line : 0));
        json_close(json, '}');
    }
    json_close(json, ']');
}

void draw_stack(struct exchange *exchange, const trail_lanes *lanes)
{
    int64_t stack = parameter_number(exchange, "stack", 1, UINT32_MAX, 0);
    if (stack == 0)
        exchange_refuse(exchange, 400, "stack says which: a number from marks or bars");
    if (exchange->status)
        return;
    json_open(&exchange->json, NULL, '{');
    put_stack(&exchange->json, lanes, (trail_stack)stack);
    json_close(&exchange->json, '}');
}

/* Returns the span in which goroutine `lane` woke another at `ns`; the next one may begin at `ns`
 * too. */
static uint64_t span_of_waker(const trail_lanes *lanes, size_t lane, int64_t ns)
{
    trail_span row;
    uint64_t span = trail_lanes_span_at(lanes, TRAIL_LANE_GOROUTINE, lane, ns);
    if (span > 0 && trail_lanes_span(lanes, TRAIL_LANE_GOROUTINE, lane, span, &row) &&
        row.begin_ns == ns && row.state != TRAIL_SPAN_RUNNING)
        span--;
    return span;
}

/* Returns the lane of a kind that goroutine `lane` was running on at `ns`; -1: none. */
static int64_t lane_under(const trail_lanes *lanes, trail_lane_kind kind, size_t lane, int64_t ns,
                          uint64_t *span)
{
    trail_span row;
    for (size_t i = 0; i < trail_lanes_count(lanes, kind); i++) {
        *span = trail_lanes_span_at(lanes, kind, i, ns);
        if (trail_lanes_span(lanes, kind, i, *span, &row) && row.begin_ns <= ns &&
            row.state != TRAIL_SPAN_NONE && row.other == (int64_t)lane)
            return (int64_t)i;
    }
    return -1;
}

static void put_under(struct json *json, const trail_lanes *lanes, size_t lane, int64_t ns)
{
    uint64_t span;
    int64_t proc = lane_under(lanes, TRAIL_LANE_PROC, lane, ns, &span);
    if (proc >= 0)
        put_lane_object(json, "proc", lanes, TRAIL_LANE_PROC, proc, (int64_t)span);
    int64_t thread = lane_under(lanes, TRAIL_LANE_THREAD, lane, ns, &span);
    if (thread >= 0)
        put_lane_object(json, "thread", lanes, TRAIL_LANE_THREAD, thread, (int64_t)span);
}

/* The waker is recorded in the runnable span, which comes before the running one. */
static void put_waker(struct json *json, const trail_lanes *lanes, size_t lane, uint64_t span)
{
    trail_span row;
    (void)trail_lanes_span(lanes, TRAIL_LANE_GOROUTINE, lane, span, &row);
    if (row.state == TRAIL_SPAN_RUNNING && span > 0)
        (void)trail_lanes_span(lanes, TRAIL_LANE_GOROUTINE, lane, span - 1, &row);
    if (row.state != TRAIL_SPAN_RUNNABLE || row.other < 0)
        return;
    put_lane_ref(json, "waker", lanes, TRAIL_LANE_GOROUTINE, row.other,
                 (int64_t)span_of_waker(lanes, (size_t)row.other, row.begin_ns));
    json_signed(json, "at", row.begin_ns);
    json_close(json, '}');
}

/* MARK: Wake-ups by a span */

struct wake {
    int64_t at_ns;
    uint32_t lane;
    uint64_t span;
};

struct wakes {
    size_t count;
    bool more;
    struct wake items[MOST_WAKES]; /* the earliest, in time order */
};

static void add_wake(struct wakes *wakes, struct wake wake)
{
    size_t at = wakes->count;
    if (wakes->count == MOST_WAKES) {
        wakes->more = true;
        if (wakes->items[MOST_WAKES - 1].at_ns <= wake.at_ns)
            return;
        at = --wakes->count;
    }
    for (; at > 0 && wakes->items[at - 1].at_ns > wake.at_ns; at--)
        wakes->items[at] = wakes->items[at - 1];
    wakes->items[at] = wake;
    wakes->count++;
}

/* Adds the spans of `lane` in [from_ns, to_ns] that `waker` began. Returns the spans examined. */
static uint64_t collect_wakes(struct wakes *wakes, const trail_lanes *lanes, size_t lane,
                              size_t waker, int64_t from_ns, int64_t to_ns)
{
    trail_span row;
    trail_span_cursor cursor;
    uint64_t seen = 0;
    trail_lanes_seek(lanes, TRAIL_LANE_GOROUTINE, lane,
                     trail_lanes_span_at(lanes, TRAIL_LANE_GOROUTINE, lane, from_ns), &cursor);
    for (; trail_lanes_next(lanes, &cursor, &row); seen++) {
        if (row.begin_ns > to_ns)
            break;
        if (row.begin_ns >= from_ns && row.other == (int64_t)waker &&
            row.state != TRAIL_SPAN_RUNNING)
            add_wake(wakes, (struct wake){row.begin_ns, (uint32_t)lane, cursor.next - 1});
    }
    return seen;
}

/* Maximum number of spans examined for wake-ups: about ten milliseconds. */
#define MOST_SEEN (UINT64_C(2) << 20)

static void put_wakes(struct json *json, const trail_lanes *lanes, size_t waker,
                      const trail_span *row)
{
    struct wakes wakes = {0};
    uint64_t seen = 0;
    size_t lane = 0;
    for (; lane < trail_lanes_count(lanes, TRAIL_LANE_GOROUTINE) && seen < MOST_SEEN; lane++)
        seen += 1 + collect_wakes(&wakes, lanes, lane, waker, row->begin_ns, row->end_ns);
    wakes.more |= lane < trail_lanes_count(lanes, TRAIL_LANE_GOROUTINE);
    json_open(json, "wakes", '[');
    for (size_t i = 0; i < wakes.count; i++) {
        put_lane_ref(json, NULL, lanes, TRAIL_LANE_GOROUTINE, wakes.items[i].lane,
                     (int64_t)wakes.items[i].span);
        json_signed(json, "at", wakes.items[i].at_ns);
        json_close(json, '}');
    }
    json_close(json, ']');
    json_bool(json, "more_wakes", wakes.more);
}

static void put_goroutine(struct json *json, const trail_lanes *lanes, size_t lane, uint64_t span,
                          const trail_span *row)
{
    trail_lane whole;
    trail_lanes_get(lanes, TRAIL_LANE_GOROUTINE, lane, &whole);
    if (row->state == TRAIL_SPAN_RUNNING || row->state == TRAIL_SPAN_SYSCALL ||
        row->state == TRAIL_SPAN_BLOCKED)
        put_under(json, lanes, lane, row->begin_ns);
    put_waker(json, lanes, lane, span);
    put_holder(json, lanes, lane, span, row);
    if (row->state == TRAIL_SPAN_RUNNING || row->state == TRAIL_SPAN_SYSCALL)
        put_wakes(json, lanes, lane, row);
    if (whole.parent >= 0)
        put_lane_object(json, "creator", lanes, TRAIL_LANE_GOROUTINE, whole.parent, -1);
}

void put_wait(struct json *json, const trail_lanes *lanes, const trail_span *row)
{
    trail_wait_for what = trail_lanes_wait_for(lanes, row->reason);
    json_text(json, "reason", trail_lanes_text(lanes, what.reason));
    trail_string function = what.kind ? text_from("") : sync_function_of(lanes, row);
    if (function.size > 0)
        json_text(json, "sync", function);
    if (!what.kind)
        return;
    json_string(json, "wait_kind", what.kind);
    json_string(json, "phrase", what.phrase);
    if (what.object)
        json_text(json, "object", trail_lanes_text(lanes, what.object));
}

void put_holder(struct json *json, const trail_lanes *lanes, size_t lane, uint64_t span,
                const trail_span *row)
{
    struct holder_lane holder = holder_of_wait(lanes, lane, span, row);
    if (holder.lane < 0)
        return;
    /* What the holder did in the middle of the wait, or does at the end of the trace. */
    int64_t at = row->open ? row->end_ns : row->begin_ns + (row->end_ns - row->begin_ns) / 2;
    uint64_t its = trail_lanes_span_at(lanes, TRAIL_LANE_GOROUTINE, (size_t)holder.lane, at);
    trail_span last;
    if (its > 0 && !trail_lanes_span(lanes, TRAIL_LANE_GOROUTINE, (size_t)holder.lane, its, &last))
        its--;
    put_lane_ref(json, "held_by", lanes, TRAIL_LANE_GOROUTINE, holder.lane, (int64_t)its);
    json_bool(json, "inferred", holder.inferred);
    json_close(json, '}');
}

void draw_span(struct exchange *exchange, const trail_lanes *lanes)
{
    struct json *json = &exchange->json;
    trail_span row;
    trail_lane whole;
    trail_lane_kind kind = parameter_kind(exchange);
    int64_t lane = parameter_number(exchange, "lane", 0, UINT32_MAX, -1);
    int64_t at = parameter_number(exchange, "at", 0, MOST_TIME_NS, -1);
    int64_t span = parameter_number(exchange, "span", 0, UINT32_MAX, -1);
    if (lane < 0 || (at < 0 && span < 0))
        exchange_refuse(exchange, 400, "lane says which, and span=N or at=NS which span of it");
    if (!exchange->status && at >= 0)
        span = (int64_t)trail_lanes_span_at(lanes, kind, (size_t)lane, at);
    if (exchange->status)
        return;
    if (!trail_lanes_span(lanes, kind, (size_t)lane, (uint64_t)span, &row)) {
        exchange_refuse(exchange, 404, "there is no such span");
        return;
    }
    trail_lanes_get(lanes, kind, (size_t)lane, &whole);
    put_lane_ref(json, NULL, lanes, kind, lane, span);
    json_number(json, "spans", whole.spans);
    json_signed(json, "begin", row.begin_ns);
    json_signed(json, "end", row.end_ns);
    json_bool(json, "open", row.open);
    json_string(json, "state", state_words[row.state]);
    put_wait(json, lanes, &row);
    put_stack(json, lanes, row.stack);
    if (kind == TRAIL_LANE_GOROUTINE) {
        put_goroutine(json, lanes, (size_t)lane, (uint64_t)span, &row);
    } else if (row.other >= 0) {
        put_lane_object(json, "goroutine", lanes, TRAIL_LANE_GOROUTINE, row.other,
                        (int64_t)trail_lanes_span_at(lanes, TRAIL_LANE_GOROUTINE, (size_t)row.other,
                                                     row.begin_ns));
    }
    json_close(json, '}');
}
