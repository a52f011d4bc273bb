/*
 * The writer of a merge: several traces side by side as one. Each has tables of its own. A trace that
 * begins later than the first has its goroutines and Ps created when it enters, and one that ends
 * earlier than others has them ended when it leaves; where no goroutine or P of the traces can do that,
 * a helper thread does, with a P and goroutines that are in none of them.
 *
 * Times of all are on one clock and above 0, and IDs of one are none of another's. What a trace has one
 * of, metrics and cycles of garbage collection, is the caller's business.
 */
#ifndef TRAIL_WRITE_MERGE_WRITER_H
#define TRAIL_WRITE_MERGE_WRITER_H

#include "write/event_writer.h"

/* IDs that are in none of the traces; that of the goroutine goes up with each use. */
struct merge_helper {
    int64_t thread, proc, goroutine;
};

/* What a trace that leaves has to record for all that stay: GOMAXPROCS, the end of the GC cycle. */
struct merge_last_words {
    bool procs_change, gc_end;
    uint64_t procs;
};

struct merge_writer {
    struct event_writer base;
    struct merge_origin {
        struct origin ids;
        bool late;
    } origins[TRAIL_MERGE_MOST];
    size_t count;
    struct merge_helper helper;
    bool entering;     /* the helper keeps its P from one event to the next */
    uint64_t left_out; /* when that began */
    struct merge_last_words *last_words;
};

/* Traces to follow: `count`, one at least, by merge_writer_add. -1: *err. */
int merge_writer_init(struct merge_writer *w, int version, size_t count,
                      const struct merge_helper *helper, const trail_sink *sink, trail_error *err);

/* The next trace, number 0 and on. `reader` and `label` (ORIGIN_LABEL bytes at most) must live as long. */
void merge_writer_add(struct merge_writer *w, trail_reader *reader, trail_string label);

/* The events that follow are of the trace with that number. */
void merge_writer_from(struct merge_writer *w, size_t number);

/* Writes an event that is no Sync, not earlier than the one before. */
void merge_writer_put(struct merge_writer *w, const trail_event *e);

/*
 * The present trace begins after the first one did. Between the two calls, the events that are put are
 * the statuses of what it has then; those of its own that follow may repeat them.
 */
void merge_writer_enter(struct merge_writer *w);
void merge_writer_entered(struct merge_writer *w);

/* The trace ends before others do: its goroutines end, its Ps become idle. */
void merge_writer_leave(struct merge_writer *w, size_t number, int64_t time_ns,
                        struct merge_last_words *words);

/* Writes a V2_GCBegin, V2_GCEnd, V2_ProcsChange, V2_HeapAlloc or V2_HeapGoal of the helper. */
void merge_writer_system(struct merge_writer *w, int64_t time_ns, unsigned type, uint64_t value);

/* Whether another generation must begin, because none can last until then. */
bool merge_writer_is_far(const struct merge_writer *w, int64_t time_ns);

/* As event_writer_fini. */
bool merge_writer_fini(struct merge_writer *w, trail_convert_stats *stats, trail_error *err);

#endif
