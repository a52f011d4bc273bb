/*
 * The writer of a conversion: one trace, whole or in part, as v2 of any version.
 *
 *     struct convert_writer w;
 *     if (convert_writer_init(&w, 26, reader, &sink, &err) < 0) ...
 *     convert_writer_put(&w, event);                       before the window: only tracked
 *     event_writer_begin(&w.base, event->time_ns, NULL, true);
 *     convert_writer_put(&w, event);                       written
 *     ...
 *     if (!convert_writer_fini(&w, &stats, &err)) ...
 */
#pragma once

#include "write/anonymize.h"
#include "write/event_writer.h"

struct convert_writer {
    struct event_writer base;
    struct origin origin;
    struct anonymizer anonymizer;
    /*
     * Only the events of some goroutines are written: system calls of other goroutines may release
     * Ps or steal them from threads.
     */
    bool part;
};

/* Events refer to the strings and stacks of `reader`, which must outlive the writer. Returns -1
 * with *err set on error. */
int convert_writer_init(struct convert_writer *w, int version, trail_reader *reader,
                        const trail_sink *sink, trail_error *err);

/* Makes the writer anonymize texts (write/anonymize.h); called before the first event. Returns -1
 * with *err set on error. */
int convert_writer_anonymize(struct convert_writer *w, const char *secret, trail_error *err);

/* Writes an event that may need changing in a part of a trace, or in 1.22. */
void convert_writer_change(struct convert_writer *w, const trail_event *e);

/* Writes an event, not a Sync, later than the previous one. */
static inline void convert_writer_put(struct convert_writer *w, const trail_event *e)
{
    if (e->wire == V2_ProcSteal || w->base.version < 23)
        convert_writer_change(w, e);
    else
        event_writer_put(&w->base, e);
}

/*
 * Extends the trace to `time_ns` if its last event is earlier, by a generation that announces a P.
 */
void convert_writer_last(struct convert_writer *w, int64_t time_ns,
                         const trail_clock_snapshot *clocks);

/* As event_writer_fini. */
bool convert_writer_fini(struct convert_writer *w, trail_convert_stats *stats, trail_error *err);
