/* What all parts of the event writer share: the written trace, its model, and the current event. */
#pragma once

#include <trail/export.h>

#include "write/origin.h"
#include "write/trace_model.h"

struct anonymizer;

/* Times of v1 begin with 0, and its Sync comes first; readers accept no time below 1. */
#define EVENT_WRITER_V1_SHIFT_NS 2

/* An added record is this much earlier than the event that needs it, if there is room. */
#define EVENT_WRITER_AHEAD_NS INT64_C(2)

/* The limit on a generation's length: readers count in doubles. */
#define EVENT_WRITER_FAR_NS (INT64_C(1) << 53)

struct event_writer {
    struct v2_writer *out;
    struct origin *origins;              /* linked by `next`; set together with `from` */
    struct origin *from;                 /* of the current event; set by the writer that is built on
                                          * this */
    const struct anonymizer *anonymizer; /* NULL: texts are unchanged */
    int version;
    bool begun;
    bool initial; /* in the first generation */
    bool too_far; /* the generation would be too long: nothing more is written */
    struct trace_model model;
    int64_t shift_ns;
    int64_t last_ns;    /* of the last record written, as readers will show it */
    int64_t time_ns;    /* of the current event */
    int64_t implied_ns; /* of a ProcSteal implied by the next event; 0: none */
    int64_t begin_ns;   /* of the generation */
    uint64_t generation_events;
    bool left_out; /* the current event is left out, together with those that it implies */
    trail_convert_stats stats;
};

/* Whether the record of another event implies this one; a ProcSteal gives that record its time. */
static inline bool event_is_implied(const trail_event *e)
{
    return (e->flags & TRAIL_EVENT_IMPLIED) && e->wire != V2_ProcSteal;
}

/* Whether the event was inferred where others were lost: no record can express an unknown state. */
static inline bool event_is_of_damage(const trail_event *e)
{
    return e->flags & TRAIL_EVENT_INFERRED;
}

/* Completes an event begun by event_writer_take; unless `written`, it is counted as left out. */
static inline void event_writer_done(struct event_writer *w, const trail_event *e, bool written)
{
    w->left_out = !written;
    w->stats.left_out += !written && w->begun;
    if (!(e->wire == V2_ProcSteal && (e->flags & TRAIL_EVENT_IMPLIED)))
        w->implied_ns = 0;
    w->model.nobody.g_id = w->model.nobody.p_id = TRAIL_NONE;
}

/*
 * Makes `e` the current event. Returns false if nothing is to be written for it: the record of
 * another event implies it, or its time is too far away.
 */
static inline bool event_writer_take(struct event_writer *w, const trail_event *e)
{
    w->time_ns = (int64_t)((uint64_t)e->time_ns + (uint64_t)w->shift_ns);
    if (event_is_implied(e)) {
        bool left_out = w->left_out || event_is_of_damage(e);
        *(left_out ? &w->stats.left_out : &w->stats.events) += w->begun;
        return false;
    }
    origin_refresh(w->from, w->model.generation);
    w->generation_events++;
    if (!w->begun || (w->time_ns >= 0 && w->time_ns - w->begin_ns < EVENT_WRITER_FAR_NS))
        return true;
    w->too_far = true;
    event_writer_done(w, e, true);
    return false;
}
