/*
 * Events of the one model (trail/read.h), of any trace, as a v2 trace of any version. It is written
 * record by record from what the events say, never from the bytes of the other trace: that is what
 * lets a trace of v1, a part of one and a repaired one be written by the same code, and v2 of one
 * version as another, of which a copy of batches would save half the time and need all of the rest
 * again (new sequence numbers behind a cut, other records in 1.22).
 *
 *     struct event_writer *w = event_writer_open(26, reader, label, &sink, &err);
 *     event_writer_put(w, event);                 what was before: only remembered
 *     event_writer_begin(w, event->time_ns, NULL); announces what is alive
 *     event_writer_put(w, event);                 written
 *     ...
 *     if (!event_writer_close(w, &stats, &err)) ...
 *
 * What is written is a trace that readers accept, whatever the events are. Those of v2 all fit, at
 * their times. v1 knows less order: a record that readers need in front of an event is added, as Go's
 * own writer of v2 has it there, and an event that no valid trace can hold is left out (§4.3; which
 * these are, docs/converting-traces.md tells).
 */
#ifndef TRAIL_WRITE_EVENT_WRITER_H
#define TRAIL_WRITE_EVENT_WRITER_H

#include <trail/export.h>

struct event_writer;

#define EVENT_WRITER_ORIGINS 64  /* traces that events can come from */
#define EVENT_WRITER_LABEL   256 /* bytes of a label, at most */

/* Who does what nobody in the traces did: IDs that are in none of them. The goroutine's goes up. */
struct event_writer_helper {
    int64_t thread, proc, goroutine;
};

struct event_writer_stats {
    uint64_t events, added, left_out, generations;
};

/*
 * The texts and stacks of events are those of `reader`, which must live as long, and so must `label`,
 * which stands in front of the names of start functions (EVENT_WRITER_LABEL bytes at most). NULL:
 * *err.
 */
struct event_writer *event_writer_open(int version, trail_reader *reader, trail_string label,
                                       const trail_sink *sink, trail_error *err);

/*
 * Not all goroutines' events will come: Ps are given up, or taken from threads, by system calls that
 * are not told.
 */
void event_writer_set_part(struct event_writer *w);

/* Texts get stand-ins; see write/anonymize.h. -1: *err. */
int event_writer_anonymize(struct event_writer *w, const char *secret, trail_error *err);

/*
 * Begins a generation, the one before ends. Events from `time_ns` on follow. `clocks` were read in
 * the trace at any time, or NULL: then, where a clock must be told, it is the time of the trace.
 * `announce`: tells the state of all that is alive; the first generation needs it, others of traces
 * whose own generations these are do not.
 */
void event_writer_begin(struct event_writer *w, int64_t time_ns, const trail_clock_snapshot *clocks,
                        bool announce);

/* An event that is no Sync, later than the one before. */
void event_writer_put(struct event_writer *w, const trail_event *event);

/*
 * The trace lasts until then, even if the event that was put last is earlier: a P is told to be what
 * it is, in a generation of its own.
 */
void event_writer_last(struct event_writer *w, int64_t time_ns, const trail_clock_snapshot *clocks);

/* A good time to begin another generation of a trace that has none of its own. */
bool event_writer_is_due(const struct event_writer *w, int64_t time_ns);

/* Nothing will be written any more. */
bool event_writer_failed(const struct event_writer *w);

/*
 * MARK: Events of several traces
 *
 * Each event is of the origin that was named last; the first is that of event_writer_open. Times of
 * all are on one clock, and IDs of one origin are none of another's. Metrics and cycles of garbage
 * collection, of which a trace has one, are the caller's business.
 */

/*
 * The number of another origin; -1 without memory, or if there are too many. The arguments are as
 * above.
 */
long event_writer_add_origin(struct event_writer *w, trail_reader *reader, trail_string label);
void event_writer_from(struct event_writer *w, size_t number);

/* There will be several, whose times are above 0; before the first event. */
void event_writer_set_several(struct event_writer *w, const struct event_writer_helper *helper);

/*
 * The present origin begins after the trace did: goroutines that are told to be there come to be then,
 * and what goes on begins.
 */
void event_writer_set_late(struct event_writer *w);

/* Between the two the helper's P is not stopped and started again for each event. */
void event_writer_hold(struct event_writer *w, bool hold);

/* V2_GCBegin, V2_GCEnd, V2_ProcsChange, V2_HeapAlloc or V2_HeapGoal, told by the helper. */
void event_writer_system(struct event_writer *w, int64_t time_ns, unsigned type, uint64_t value);

/* What an origin that leaves has to tell of all that stay: GOMAXPROCS, the end of the cycle. */
struct event_writer_last_words {
    bool procs_change, gc_end;
    uint64_t procs;
};

/* The origin's trace is over before others are: its goroutines end, its Ps become idle. */
void event_writer_leave(struct event_writer *w, size_t number, int64_t time_ns,
                        struct event_writer_last_words *words);

/* A generation cannot last until then: another one must begin. */
bool event_writer_is_far(const struct event_writer *w, int64_t time_ns);

/* Completes the trace, as far as it could be written. False: *err. Frees it in any case. */
bool event_writer_close(struct event_writer *w, struct event_writer_stats *stats, trail_error *err);

#endif
