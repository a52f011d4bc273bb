/*
 * Answers of the API that are read off the lanes. Each is called between model_lock and
 * model_unlock, and asks for its parameters before it puts anything.
 */
#ifndef TRAIL_SERVE_DRAW_H
#define TRAIL_SERVE_DRAW_H

#include "serve/model.h"
#include "serve/question.h"

typedef void (*draw_fn)(struct question *question, struct model *model, const trail_lanes *lanes);

void draw_lanes(struct question *question, struct model *model, const trail_lanes *lanes);
void draw_picture(struct question *question, struct model *model, const trail_lanes *lanes);
void draw_span(struct question *question, struct model *model, const trail_lanes *lanes);
void draw_stack(struct question *question, struct model *model, const trail_lanes *lanes);
void draw_bars(struct question *question, struct model *model, const trail_lanes *lanes);
void draw_marks(struct question *question, struct model *model, const trail_lanes *lanes);
void draw_mark(struct question *question, struct model *model, const trail_lanes *lanes);
void draw_metrics(struct question *question, struct model *model, const trail_lanes *lanes);
void draw_select(struct question *question, struct model *model, const trail_lanes *lanes);
void draw_like(struct question *question, struct model *model, const trail_lanes *lanes);
void draw_find(struct question *question, struct model *model, const trail_lanes *lanes);

/* The states as the API calls them, ended by NULL. */
extern const char *const state_words[TRAIL_SPAN_STATES + 1];

/* Of which goroutine it is; -1: nobody knows. */
static inline int64_t mark_lane(const trail_mark *mark)
{
    return mark->lane == UINT32_MAX ? -1 : (int64_t)mark->lane;
}

/*
 * {"lane":..,"id":..,"name":..,"span":.. without the brace that ends it, behind a comma where it has a
 * `key`. `span` -1: is left out.
 */
void put_who(struct out *out, const char *key, const trail_lanes *lanes, trail_lane_kind kind,
             int64_t lane, int64_t span);

/* "stack": a list of frames, leaf first. */
void put_stack(struct out *out, const trail_lanes *lanes, trail_stack stack);

/* Whether the text has `part` in it, whatever the case of ASCII letters. */
bool has_part(trail_string text, const char *part);

#endif
