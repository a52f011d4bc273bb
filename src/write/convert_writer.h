/*
 * The writer of a conversion: one trace, whole or in part, as v2 of any version.
 *
 *     struct convert_writer w;
 *     if (convert_writer_init(&w, 26, reader, &sink, &err) < 0) ...
 *     convert_writer_put(&w, event);                       before the window: only remembered
 *     event_writer_begin(&w.base, event->time_ns, NULL, true);
 *     convert_writer_put(&w, event);                       written
 *     ...
 *     if (!convert_writer_fini(&w, &stats, &err)) ...
 */
#ifndef TRAIL_WRITE_CONVERT_WRITER_H
#define TRAIL_WRITE_CONVERT_WRITER_H

#include "write/anonymize.h"
#include "write/event_writer.h"

struct convert_writer {
    struct event_writer base;
    struct origin origin;
    struct anonymizer anonymizer;
    /*
     * Events of some goroutines only: Ps are given up, or taken from threads, by system calls that are
     * not among them.
     */
    bool part;
};

/* Events have the strings and stacks of `reader`, which must live as long. -1: *err. */
int convert_writer_init(struct convert_writer *w, int version, trail_reader *reader,
                        const trail_sink *sink, trail_error *err);

/* Before the first event: texts get stand-ins (write/anonymize.h). -1: *err. */
int convert_writer_anonymize(struct convert_writer *w, const char *secret, trail_error *err);

/* Writes an event that may differ in a part of a trace, or in 1.22. */
void convert_writer_change(struct convert_writer *w, const trail_event *e);

/* Writes an event that is no Sync, later than the one before. */
static inline void convert_writer_put(struct convert_writer *w, const trail_event *e)
{
    if (e->wire == V2_ProcSteal || w->base.version < 23)
        convert_writer_change(w, e);
    else
        event_writer_put(&w->base, e);
}

/*
 * Makes the trace last until then, if the event that was put last is earlier: a generation of its own
 * announces a P.
 */
void convert_writer_last(struct convert_writer *w, int64_t time_ns,
                         const trail_clock_snapshot *clocks);

/* As event_writer_fini. */
bool convert_writer_fini(struct convert_writer *w, trail_convert_stats *stats, trail_error *err);

#endif
