/*
 * Writes events of the common model (trail/read.h), from any trace, as records of v2 of any
 * version: the base of the writers of a conversion (convert_writer.h) and of a merge
 * (merge_writer.h).
 *
 * A record is written from the meaning of an event, never from the bytes of the other trace. So the
 * same code writes a trace of v1, a part of one and a repaired one, and v2 of one version as
 * another. Copying batches of v2 would take half the time, and still need all of this: after a cut
 * the sequence numbers are new, and 1.22 has other records.
 *
 * Before the first generation, events only change the model. The output is a trace that readers
 * accept, whatever the events are. Events of v2 are all written, at their times. v1 has less order:
 * a record that readers need before an event is added as in Go's own writer of v2, and an event
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

/* Times of v1 begin with 0, and its Sync comes before; readers accept no time below 1. */
#define EVENT_WRITER_V1_SHIFT_NS 2

/* An added record is this much earlier than the event that needs it, if there is room. */
#define EVENT_WRITER_AHEAD_NS INT64_C(2)

/* Upper limit of a generation's length: readers count in doubles. */
#define EVENT_WRITER_FAR_NS (INT64_C(1) << 53)

struct event_writer {
    struct v2_writer *out;
    struct origin *origins;              /* all, linked by `next`; set together with `from` */
    struct origin *from;                 /* of the current event; set by the writer on this base */
    const struct anonymizer *anonymizer; /* NULL: texts are unchanged */
    int version;
    bool begun;
    bool initial; /* in the first generation */
    struct trace_model model;
    int64_t shift_ns;
    int64_t last_ns;    /* of the last record written, as readers will show it */
    int64_t time_ns;    /* of the current event */
    int64_t implied_ns; /* of a ProcSteal that the next event implies; 0: none */
    int64_t begin_ns;   /* of the generation */
    uint64_t generation_events;
    trail_error err;
    trail_convert_stats stats;
};

/* Returns -1 with *err set on error; then nothing has to be freed. */
int event_writer_init(struct event_writer *w, int version, const trail_sink *sink,
                      trail_error *err);

/* Completes the trace as far as it could be written. Returns false with *err set on error. Frees
 * the contents of `w` in either case. */
bool event_writer_fini(struct event_writer *w, trail_convert_stats *stats, trail_error *err);

/*
 * Begins a generation, which ends the previous one. Events from `time_ns` on follow. `clocks` were
 * read at any time of the trace; NULL: where a clock is needed, the time of the trace is used. With
 * `announce` the generation begins with the state of all that is alive: required for the first one;
 * not for others that are generations of the trace that is read.
 */
void event_writer_begin(struct event_writer *w, int64_t time_ns, const trail_clock_snapshot *clocks,
                        bool announce);

/* Whether it is time for another generation, in a trace that has none of its own. */
bool event_writer_is_due(const struct event_writer *w, int64_t time_ns);

/* True after a failure: nothing more will be written. */
bool event_writer_failed(const struct event_writer *w);

/*
 * Writes an event, not a Sync, later than the previous one. An event that no valid trace can hold
 * is counted as left out. A writer that writes the records of some events itself does so between
 * event_writer_take and event_writer_done.
 */
void event_writer_put(struct event_writer *w, const trail_event *e);

/* Whether the record of another event implies this one; a ProcSteal gives that record its time. */
static inline bool event_is_implied(const trail_event *e)
{
    return (e->flags & TRAIL_EVENT_IMPLIED) && e->wire != V2_ProcSteal;
}

/* Completes an event of event_writer_take; unless `written`, the event is counted as left out. */
static inline void event_writer_done(struct event_writer *w, const trail_event *e, bool written)
{
    w->stats.left_out += !written && w->begun;
    if (!(e->wire == V2_ProcSteal && (e->flags & TRAIL_EVENT_IMPLIED)))
        w->implied_ns = 0;
    w->model.nobody.g_id = w->model.nobody.p_id = TRAIL_NONE;
}

/* Fails because the generation would be too long: nothing more is written. */
void event_writer_too_far(struct event_writer *w);

/*
 * Makes `e` the current event. Returns false if nothing is to be written for it: the record of
 * another event implies it, or it is too far.
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
