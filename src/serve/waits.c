/* Answers /api/waits: how long each lane on a page of lanes waited, by what it waited for. */
#include <stdlib.h>

#include "base/grow.h"
#include "serve/draw.h"
#include "serve/pace.h"

enum { MOST_ROWS = 50000 };

/* The waits of one lane; cleared for the next. */
struct sums {
    struct name_list list; /* what the waits of all lanes are for */
    int64_t *ns;           /* by number in the list */
    size_t capacity;
    uint32_t *touched; /* numbers with an entry in `ns` that is not 0 */
    size_t touched_capacity, touched_count;
};

static bool add_wait(struct sums *sums, const trail_span *row)
{
    int64_t number = name_list_add(&sums->list, row->reason);
    if (number < 0 || !GROW_ZEROED(sums->ns, sums->capacity, (size_t)number + 1) ||
        !GROW(sums->touched, sums->touched_capacity, sums->touched_count + 1))
        return false;
    if (row->end_ns > row->begin_ns && sums->ns[number] == 0)
        sums->touched[sums->touched_count++] = (uint32_t)number;
    sums->ns[number] += row->end_ns - row->begin_ns;
    return true;
}

static bool put_lane(struct json *json, struct sums *sums, const trail_lanes *lanes,
                     trail_lane_kind kind, size_t lane, struct pace *pace)
{
    trail_span_cursor cursor;
    trail_span row;
    trail_lanes_seek(lanes, kind, lane, 0, &cursor);
    while (trail_lanes_next(lanes, &cursor, &row)) {
        walk_on(pace, 1);
        if (row.state == TRAIL_SPAN_WAITING && !add_wait(sums, &row))
            return false;
    }
    json_open(json, NULL, '[');
    for (size_t i = 0; i < sums->touched_count; i++) {
        uint32_t number = sums->touched[i];
        json_number(json, NULL, number);
        json_signed(json, NULL, sums->ns[number]);
        sums->ns[number] = 0;
    }
    json_close(json, ']');
    sums->touched_count = 0;
    return true;
}

/* The kind of each wait if it is recorded, or else its reason: several may have the same. */
static void put_names(struct json *json, const struct name_list *list, const trail_lanes *lanes)
{
    json_open(json, "names", '[');
    for (size_t i = 0; i < list->count; i++) {
        trail_wait_for what = trail_lanes_wait_for(lanes, list->names[i]);
        json_text(json, NULL,
                  what.kind ? text_from(what.kind) : trail_lanes_text(lanes, what.reason));
    }
    json_close(json, ']');
}

void draw_waits(struct exchange *exchange, const trail_lanes *lanes)
{
    struct json *json = &exchange->json;
    trail_lane_kind kind = parameter_kind(exchange);
    size_t all = trail_lanes_count(lanes, kind);
    size_t first = (size_t)parameter_number(exchange, "first", 0, UINT32_MAX, 0);
    size_t most = (size_t)parameter_number(exchange, "count", 1, MOST_ROWS, MOST_ROWS);
    struct pace pace = {.model = exchange->model};
    struct sums sums = {0};
    bool good = true;
    if (exchange->status)
        return;
    json_open(json, NULL, '{');
    json_number(json, "all", all);
    json_open(json, "rows", '[');
    for (size_t i = first; good && i < all && i - first < most; i++) {
        good = put_lane(json, &sums, lanes, kind, i, &pace);
    }
    json_close(json, ']');
    put_names(json, &sums.list, lanes);
    json_close(json, '}');
    if (!good)
        exchange_refuse(exchange, 500, "no memory");
    free(sums.list.names);
    free(sums.list.number);
    free(sums.ns);
    free(sums.touched);
}
