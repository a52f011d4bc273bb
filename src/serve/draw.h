/*
 * Answers of the API that are computed from the lanes. Each function is called between model_lock
 * and model_unlock, and checks its parameters before it writes anything.
 */
#pragma once

#include "serve/exchange.h"
#include "serve/model.h"

typedef void (*draw_fn)(struct exchange *exchange, const trail_lanes *lanes);

/* draw_NAME answers /api/NAME. */
void draw_lanes(struct exchange *exchange, const trail_lanes *lanes);
void draw_picture(struct exchange *exchange, const trail_lanes *lanes);
void draw_span(struct exchange *exchange, const trail_lanes *lanes);
void draw_stack(struct exchange *exchange, const trail_lanes *lanes);
void draw_bars(struct exchange *exchange, const trail_lanes *lanes);
void draw_marks(struct exchange *exchange, const trail_lanes *lanes);
void draw_mark(struct exchange *exchange, const trail_lanes *lanes);
void draw_metrics(struct exchange *exchange, const trail_lanes *lanes);
void draw_select(struct exchange *exchange, const trail_lanes *lanes);
void draw_spans(struct exchange *exchange, const trail_lanes *lanes);
void draw_waits(struct exchange *exchange, const trail_lanes *lanes);
void draw_like(struct exchange *exchange, const trail_lanes *lanes);
void draw_group(struct exchange *exchange, const trail_lanes *lanes);
void draw_find(struct exchange *exchange, const trail_lanes *lanes);

/* The API's names of the states, NULL-terminated. */
extern const char *const state_words[TRAIL_SPAN_STATES + 1];

/* Returns the first pixel that begins at `ns` or later: the inverse of the division into pixels. */
uint64_t pixel_at(const struct window *window, int64_t ns);

/* Returns the time at which a pixel begins. */
static inline int64_t column_edge(const struct window *window, size_t column)
{
    uint64_t length = (uint64_t)(window->to_ns - window->from_ns);
    return window->from_ns + (int64_t)((__uint128_t)length * column / window->width);
}

/*
 * Calls `add` for the lanes that the parameters `lanes` and `match` select, in order, until it
 * returns false. Returns whether it never did. Makes no call if a parameter is wrong.
 */
bool each_lane(struct exchange *exchange, const trail_lanes *lanes, trail_lane_kind kind,
               bool (*add)(void *context, size_t lane), void *context);

/* Returns the goroutine lane of a mark; -1: none, or not known. */
static inline int64_t mark_lane(const trail_mark *mark)
{
    return mark->lane == UINT32_MAX ? -1 : (int64_t)mark->lane;
}

/*
 * Writes {"lane":..,"id":..,"name":..,"span":.. without the closing brace; with a `key`, after a
 * comma and that key. `span` -1: left out.
 */
void put_lane_ref(struct json *json, const char *key, const trail_lanes *lanes,
                  trail_lane_kind kind, int64_t lane, int64_t span);

/* The same with the closing brace. */
void put_lane_object(struct json *json, const char *key, const trail_lanes *lanes,
                     trail_lane_kind kind, int64_t lane, int64_t span);

/* Writes "stack": a list of frames, innermost first. */
void put_stack(struct json *json, const trail_lanes *lanes, trail_stack stack);

/* Writes the members about what a span waits for, each after a comma. */
void put_wait(struct json *json, const trail_lanes *lanes, const trail_span *row);

/* Writes "held_by", the lane that held the lock for most of the wait, if it is known. */
void put_holder(struct json *json, const trail_lanes *lanes, size_t lane, uint64_t span,
                const trail_span *row);
