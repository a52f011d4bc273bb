/*
 * The answer `group` of the API: how many lanes of a group were in each state over time, averaged
 * per column.
 *
 * A span that fills whole columns adds two changes, at its ends, so the cost of a lane depends on
 * its cells, not on the width. Lanes are taken in an order whose every prefix is spread evenly over
 * the group. When the cost reaches the limit of a request, the remaining lanes are left out, and
 * the answer gives the number of lanes that were summed.
 */
#include <stdlib.h>

#include "base/grow.h"
#include "base/order.h"
#include "base/text.h"
#include "serve/draw.h"
#include "serve/pace.h"

/* Maximum cells of an answer, about a second; and the cost in cells of a lane without any. */
#define MOST_CELLS (UINT64_C(8) << 20)
enum { LANE_COST = 8, NO_CREATOR = -2 };

/* MARK: Members */

struct members {
    const trail_lanes *lanes;
    trail_lane_kind kind;
    const char *name; /* start function; NULL: any */
    int64_t creator;  /* lane; -1: not known, NO_CREATOR: any */
    struct pace pace;
    uint32_t *items;
    size_t count, capacity;
};

static bool is_member(const struct members *members, size_t lane)
{
    if (members->name &&
        !text_is(
            trail_lanes_text(members->lanes, trail_lanes_name(members->lanes, members->kind, lane)),
            members->name))
        return false;
    if (members->creator == NO_CREATOR)
        return true;
    trail_lane row;
    trail_lanes_get(members->lanes, members->kind, lane, &row);
    return row.parent == members->creator;
}

static bool add_member(void *context, size_t lane)
{
    struct members *members = context;
    walk_on(&members->pace, 1);
    if (!is_member(members, lane))
        return true;
    return APPEND(members->items, members->capacity, members->count, (uint32_t)lane);
}

static size_t divisor(size_t a, size_t b)
{
    while (b > 0) {
        size_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* A step by the golden ratio visits all of `count` members, evenly spread at any time. */
static size_t even_step(size_t count)
{
    size_t step = (size_t)((uint64_t)count * 618 / 1000);
    if (step == 0)
        return 1;
    while (divisor(step, count) != 1)
        step++;
    return step;
}

/* MARK: Sums */

struct column {
    /* Lanes that fill the column: how many more than fill the previous one. */
    int64_t whole[TRAIL_SPAN_STATES];
    int64_t ns[TRAIL_SPAN_STATES]; /* time of lanes that fill only a part of it */
};

struct life {
    int64_t *begins, *ends; /* of the lanes, each in ascending order once they are sorted */
};

struct sums {
    struct window window;
    struct column *columns; /* one more than the width */
    trail_cell *cells;
    struct life life;
    size_t summed;
};

static bool sums_init(struct sums *sums, const struct window *window, size_t members)
{
    *sums = (struct sums){.window = *window};
    sums->columns = calloc(window->width + 1, sizeof *sums->columns);
    sums->cells = malloc(window->width * sizeof *sums->cells);
    sums->life.begins = calloc(members + 1, sizeof *sums->life.begins);
    sums->life.ends = calloc(members + 1, sizeof *sums->life.ends);
    return sums->columns && sums->cells && sums->life.begins && sums->life.ends;
}

static void sums_free(struct sums *sums)
{
    free(sums->columns);
    free(sums->cells);
    free(sums->life.begins);
    free(sums->life.ends);
}

static void add_cell(struct sums *sums, const trail_cell *cell)
{
    uint64_t x = pixel_at(&sums->window, cell->begin_ns);
    bool is_whole = cell->count == 1 && cell->ns[cell->state] == cell->end_ns - cell->begin_ns;
    if (is_whole) {
        sums->columns[x].whole[cell->state]++;
        sums->columns[pixel_at(&sums->window, cell->end_ns)].whole[cell->state]--;
        return;
    }
    for (unsigned state = 1; state < TRAIL_SPAN_STATES; state++)
        sums->columns[x].ns[state] += cell->ns[state];
}

/* Returns the cost in cells. */
static uint64_t add_lane(struct sums *sums, const struct members *members, size_t lane)
{
    trail_lane row;
    trail_lanes_get(members->lanes, members->kind, lane, &row);
    sums->life.begins[sums->summed] = row.begin_ns;
    sums->life.ends[sums->summed++] = row.end_ns;
    if (row.end_ns < sums->window.from_ns || row.begin_ns >= sums->window.to_ns)
        return LANE_COST;
    size_t count = trail_lanes_cells(members->lanes, members->kind, lane, sums->window.from_ns,
                                     sums->window.to_ns, sums->window.width, sums->cells);
    for (size_t i = 0; i < count; i++)
        add_cell(sums, &sums->cells[i]);
    return LANE_COST + count;
}

static void add_lanes(struct sums *sums, struct members *members, size_t most)
{
    size_t step = even_step(members->count), at = 0;
    uint64_t cost = 0;
    while (sums->summed < members->count && sums->summed < most && cost < MOST_CELLS) {
        uint64_t its = add_lane(sums, members, members->items[at]);
        cost += its;
        walk_on(&members->pace, its);
        at = (at + step) % members->count;
    }
}

/* Returns the most lanes that existed at once; a lane that ends exactly when another begins does
 * not overlap it. */
static int64_t find_peak(struct life *life, size_t count)
{
    int64_t peak = 0;
    size_t ended = 0;
    qsort(life->begins, count, sizeof *life->begins, order_numbers);
    qsort(life->ends, count, sizeof *life->ends, order_numbers);
    for (size_t begun = 0; begun < count; begun++) {
        while (ended < count && life->ends[ended] <= life->begins[begun])
            ended++;
        int64_t now = (int64_t)begun + 1 - (int64_t)ended;
        peak = now > peak ? now : peak;
    }
    return peak;
}

/* MARK: Answer */

static void put_state(struct json *json, const struct sums *sums, unsigned state)
{
    int64_t whole = 0;
    json_open(json, state_words[state], '[');
    for (size_t x = 0; x < sums->window.width; x++) {
        const struct column *column = &sums->columns[x];
        whole += column->whole[state];
        double part = (double)column->ns[state] /
                      (double)(column_edge(&sums->window, x + 1) - column_edge(&sums->window, x));
        if (column->ns[state] == 0)
            json_signed(json, NULL, whole);
        else
            json_rounded(json, NULL, (double)whole + part, 6);
    }
    json_close(json, ']');
}

static void put_sums(struct json *json, struct sums *sums, size_t members)
{
    json_open(json, NULL, '{');
    json_signed(json, "from", sums->window.from_ns);
    json_signed(json, "to", sums->window.to_ns);
    json_number(json, "columns", sums->window.width);
    json_number(json, "members", members);
    json_number(json, "summed", sums->summed);
    json_signed(json, "peak", find_peak(&sums->life, sums->summed));
    json_open(json, "states", '{');
    for (unsigned state = 1; state < TRAIL_SPAN_STATES; state++) {
        put_state(json, sums, state);
    }
    json_close(json, '}');
    json_close(json, '}');
}

void draw_group(struct exchange *exchange, const trail_lanes *lanes)
{
    struct window window = parameter_window(exchange, trail_lanes_end(lanes));
    size_t most = (size_t)parameter_number(exchange, "most", 1, UINT32_MAX, UINT32_MAX);
    struct members members = {
        .lanes = lanes,
        .kind = parameter_kind(exchange),
        .name = parameter_text(exchange, "name"),
        .creator = parameter_number(exchange, "creator", -1, UINT32_MAX, NO_CREATOR),
        .pace = {.model = exchange->model},
    };
    /* A column lasts at least 1 ns. */
    if ((uint64_t)(window.to_ns - window.from_ns) < window.width)
        window.width = (size_t)(window.to_ns - window.from_ns);
    bool good = each_lane(exchange, lanes, members.kind, add_member, &members);
    if (!exchange->status) {
        struct sums sums = {0};
        good = good && sums_init(&sums, &window, members.count);
        if (good) {
            add_lanes(&sums, &members, most);
            put_sums(&exchange->json, &sums, members.count);
        }
        sums_free(&sums);
    }
    if (!good)
        exchange_refuse(exchange, 500, "no memory");
    free(members.items);
}
