/*
 * /api/waits: how long each lane of a page of them waited, by what for.
 */
#include <stdlib.h>

#include "base/grow.h"
#include "base/json.h"
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
    size_t old = sums->capacity;
    if (number < 0 || !GROW(sums->ns, sums->capacity, (size_t)number + 1) ||
        !GROW(sums->touched, sums->touched_capacity, sums->touched_count + 1))
        return false;
    memset(sums->ns + old, 0, (sums->capacity - old) * sizeof *sums->ns);
    if (row->end_ns > row->begin_ns && sums->ns[number] == 0)
        sums->touched[sums->touched_count++] = (uint32_t)number;
    sums->ns[number] += row->end_ns - row->begin_ns;
    return true;
}

static bool put_lane(struct out *out, struct sums *sums, const trail_lanes *lanes,
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
    out_char(out, '[');
    for (size_t i = 0; i < sums->touched_count; i++) {
        uint32_t number = sums->touched[i];
        if (i > 0)
            out_char(out, ',');
        out_u64(out, number);
        out_char(out, ',');
        out_i64(out, sums->ns[number]);
        sums->ns[number] = 0;
    }
    out_char(out, ']');
    sums->touched_count = 0;
    return true;
}

/* The kind of each wait where it is recorded, or else its reason: several may have the same. */
static void put_names(struct out *out, const struct name_list *list, const trail_lanes *lanes)
{
    json_put_key(out, "names");
    out_char(out, '[');
    for (size_t i = 0; i < list->count; i++) {
        trail_wait_for what = trail_lanes_wait_for(lanes, list->names[i]);
        if (i > 0)
            out_char(out, ',');
        (void)json_put_text(out, what.kind ? text_from(what.kind)
                                           : trail_lanes_text(lanes, what.reason));
    }
    out_char(out, ']');
}

void draw_waits(struct exchange *exchange, struct model *model, const trail_lanes *lanes)
{
    struct out *out = exchange->out;
    trail_lane_kind kind = parameter_kind(exchange);
    size_t all = trail_lanes_count(lanes, kind);
    size_t first = (size_t)parameter_number(exchange, "first", 0, UINT32_MAX, 0);
    size_t most = (size_t)parameter_number(exchange, "count", 1, MOST_ROWS, MOST_ROWS);
    struct pace pace = {.model = model};
    struct sums sums = {0};
    bool good = true;
    if (exchange->status)
        return;
    out_char(out, '{');
    put_number(out, "all", (int64_t)all);
    out_str(out, ",\"rows\":[");
    for (size_t i = first; good && i < all && i - first < most; i++) {
        out_str(out, i > first ? ",\n" : "");
        good = put_lane(out, &sums, lanes, kind, i, &pace);
    }
    out_str(out, "],");
    put_names(out, &sums.list, lanes);
    out_char(out, '}');
    if (!good)
        exchange_refuse(exchange, 500, "no memory");
    free(sums.list.names);
    free(sums.list.number);
    free(sums.ns);
    free(sums.touched);
}
