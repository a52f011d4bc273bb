/*
 * The events of the one model (trail/read.h), of any trace, as records of v2 of any version: what the
 * writers of a conversion (convert_writer.h) and of a merge (merge_writer.h) have in common.
 *
 * A record is written from what an event means, never from the bytes of the other trace. So one code
 * writes a trace of v1, a part of one and a repaired one, and v2 of one version as another. To copy
 * batches of v2 would take half the time, and still need all of this: behind a cut the sequence numbers
 * are new, and 1.22 has other records.
 *
 * Before the first generation events only change the model. What is written is a trace that readers
 * accept, whatever the events are. Those of v2 all fit, at their times. v1 knows less order: a record
 * that readers need in front of an event is added, as Go's own writer of v2 has it there, and an event
 * that no valid trace can hold is left out (§4.3; docs/converting-traces.md lists them).
 *
 *     event_writer.c      the trace, its generations, and what is alive when one begins
 *     event_ids.c         strings and stacks
 *     event_v1.c          records that traces of v1 lack
 *     event_scheduling.c  events of Ps, goroutines and system calls
 *     event_ranges.c      all others: metrics, ranges, annotations, samples
 */
#ifndef TRAIL_WRITE_EVENT_WRITER_H
#define TRAIL_WRITE_EVENT_WRITER_H

#include <trail/export.h>

#include "write/event_ids.h"
#include "write/trace_model.h"

struct anonymizer;

/* Times of v1 begin with 0, and its Sync stands before: readers take no time below 1. */
#define EVENT_WRITER_V1_SHIFT_NS 2

/* An added record is so much earlier than the event that needs it, if there is room. */
#define EVENT_WRITER_AHEAD_NS INT64_C(2)

/* A generation is shorter, because readers count in doubles. */
#define EVENT_WRITER_FAR_NS (INT64_C(1) << 53)

struct event_writer {
    struct v2_writer *out;
    struct origin *origins;              /* all, linked by `next`; set as `from` is */
    struct origin *from;                 /* of the event at hand; set by the writer on this base */
    const struct anonymizer *anonymizer; /* NULL: texts stay as they are */
    int version;
    bool begun;
    bool initial; /* in the first generation */
    struct trace_model model;
    int64_t shift_ns;
    int64_t last_ns;    /* of the record written last, as readers will show it */
    int64_t time_ns;    /* of the event at hand */
    int64_t implied_ns; /* of a ProcSteal that the event behind it implies; 0: none */
    int64_t begin_ns;   /* of the generation */
    uint64_t generation_events;
    trail_error err;
    trail_convert_stats stats;
};

/* -1: *err; nothing is left to be freed. */
int event_writer_init(struct event_writer *w, int version, const trail_sink *sink,
                      trail_error *err);

/* Completes the trace, as far as it could be written. False: *err. Frees what is in `w` in any case. */
bool event_writer_fini(struct event_writer *w, trail_convert_stats *stats, trail_error *err);

/*
 * Begins a generation, which ends the one before. Events from `time_ns` on follow. `clocks` were read
 * in the trace at any time; NULL: where a clock is needed, it is the time of the trace. With `announce`
 * the generation begins with the state of all that is alive. The first one needs that; others do not if
 * they are generations of the trace that is read.
 */
void event_writer_begin(struct event_writer *w, int64_t time_ns, const trail_clock_snapshot *clocks,
                        bool announce);

/* Whether this is a good time to begin another generation of a trace that has none of its own. */
bool event_writer_is_due(const struct event_writer *w, int64_t time_ns);

/* Whether nothing more will be written. */
bool event_writer_failed(const struct event_writer *w);

/*
 * Writes an event: no Sync, later than the one before. One that no valid trace can hold counts as left
 * out. A writer that writes the records of some events itself does so between event_writer_take and
 * event_writer_done.
 */
void event_writer_put(struct event_writer *w, const trail_event *e);

/* Whether the record of another event stands for this one; a ProcSteal gives that record its time. */
static inline bool event_is_implied(const trail_event *e)
{
    return (e->flags & TRAIL_EVENT_IMPLIED) && e->wire != V2_ProcSteal;
}

/* Ends what event_writer_take began; if not `written`, the event counts as left out. */
static inline void event_writer_done(struct event_writer *w, const trail_event *e, bool written)
{
    w->stats.left_out += !written && w->begun;
    if (!(e->wire == V2_ProcSteal && (e->flags & TRAIL_EVENT_IMPLIED)))
        w->implied_ns = 0;
    w->model.nobody.g_id = w->model.nobody.p_id = TRAIL_NONE;
}

/* The generation would be too long: nothing more is written. */
void event_writer_too_far(struct event_writer *w);

/*
 * Makes `e` the event at hand. False: nothing is to be written for it, because the record of another
 * event implies it, or because it is too far.
 */
static inline bool event_writer_take(struct event_writer *w, const trail_event *e)
{
    if (event_is_implied(e)) {
        w->stats.events += w->begun;
        return false;
    }
    origin_refresh(w->from, w->model.generation);
    w->time_ns = (int64_t)((uint64_t)e->time_ns + (uint64_t)w->shift_ns);
    w->generation_events++;
    if (!w->begun || (w->time_ns >= 0 && w->time_ns - w->begin_ns < EVENT_WRITER_FAR_NS))
        return true;
    event_writer_too_far(w);
    event_writer_done(w, e, true);
    return false;
}

#endif
