/*
 * Writes events of the common model (trail/read.h), from any trace, as records of v2 of any
 * version: the base of the writers of a conversion (convert_writer.h) and of a merge
 * (merge_writer.h).
 *
 * A record is written from the meaning of an event, never from the bytes of the other trace. So the
 * same code writes a trace of v1, a part of one and a repaired one, and one version of v2 as
 * another. Copying batches of v2 would take half the time, and still need all of this: after a cut
 * the sequence numbers are new, and 1.22 has other records.
 *
 * Before the first generation, events only change the model. The output is a trace that readers
 * accept, whatever the events are. Events of v2 are all written, at their times. v1 has less order:
 * a record that readers need before an event is added as Go's own v2 writer does, and an event that
 * no valid trace can contain is left out (§4.3; docs/converting-traces.md lists them).
 *
 * Each part uses only those below it:
 *
 *     event_scheduling.c  events of Ps, goroutines and system calls, and the dispatch of events
 *     event_ranges.c      all others: metrics, ranges, annotations, samples
 *     event_v1.c          records that traces of v1 lack
 *     event_writer.c      the trace, its generations, and what is alive when one begins
 *     event_records.c     the thread of a record, and what is announced before it
 *     event_ids.c         strings and stacks
 *     event_state.h       the object, and the current event
 */
#pragma once

#include "write/event_state.h"

/* Returns -1 with *err set on error; nothing needs freeing then. */
int event_writer_init(struct event_writer *w, int version, const trail_sink *sink,
                      trail_error *err);

/* Completes the trace as far as it could be written. Returns false with *err set on error. Frees
 * the contents of `w` in either case. */
bool event_writer_fini(struct event_writer *w, trail_convert_stats *stats, trail_error *err);

/*
 * Begins a generation, which ends the previous one. Events from `time_ns` on follow. `clocks` may
 * be a reading from any time of the trace; NULL: where a clock is needed, the time of the trace is
 * used. With `announce` the generation begins with the state of everything alive: required for the
 * first generation, but not for later ones that match generations of the source.
 */
void event_writer_begin(struct event_writer *w, int64_t time_ns, const trail_clock_snapshot *clocks,
                        bool announce);

/* Whether another generation is due, in a trace whose source has none. */
bool event_writer_is_due(const struct event_writer *w, int64_t time_ns);

/* True after a failure: nothing more will be written. */
bool event_writer_failed(const struct event_writer *w);

/*
 * Writes an event, not a Sync, later than the previous one. An event that no valid trace can
 * contain is counted as left out. A writer that writes the records of some events itself does so
 * between event_writer_take and event_writer_done.
 */
void event_writer_put(struct event_writer *w, const trail_event *e);
