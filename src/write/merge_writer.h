/*
 * The writer of a merge: several traces side by side as one. Each has its own tables. The
 * goroutines and Ps of a trace that begins later than the first are created when it begins, and
 * those of a trace that ends before others are ended when it ends; where no goroutine or P of the
 * traces can do that, a helper thread does, with a P and goroutines that are in none of them.
 *
 * All times are on one clock and above 0, and no two traces share an ID. The caller merges what a
 * trace can have only one of: metrics and cycles of garbage collection.
 */
#pragma once

#include "write/event_writer.h"

/* IDs that no trace uses; the goroutine's is incremented with each use. */
struct merge_helper {
    int64_t thread, proc, goroutine;
};

/* What a trace that ends must record for the remaining ones: GOMAXPROCS, the end of the GC
 * cycle. */
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
    bool entering;     /* the helper keeps its P between events */
    uint64_t left_out; /* its value when that began */
    struct merge_last_words *last_words;
};

/* Initialises a writer for `count` traces, at least one, to be added with merge_writer_add. Returns
 * -1 with *err set on error. */
int merge_writer_init(struct merge_writer *w, int version, size_t count,
                      const struct merge_helper *helper, const trail_sink *sink, trail_error *err);

/* Adds the next trace, numbered from 0. `reader` and `label` (at most ORIGIN_LABEL bytes) must
 * outlive the writer. */
void merge_writer_add(struct merge_writer *w, trail_reader *reader, trail_string label);

/* The following events are from the trace with that number. */
void merge_writer_from(struct merge_writer *w, size_t number);

/* Writes an event, not a Sync, not earlier than the previous one. */
void merge_writer_put(struct merge_writer *w, const trail_event *e);

/*
 * Called when the current trace begins after the first one. The events put between the two calls
 * are the status of what it contains then; its own subsequent events may repeat them.
 */
void merge_writer_enter(struct merge_writer *w);
void merge_writer_entered(struct merge_writer *w);

/* Called when a trace ends before others: its goroutines end, its Ps become idle. */
void merge_writer_leave(struct merge_writer *w, size_t number, int64_t time_ns,
                        struct merge_last_words *words);

/* Writes a V2_GCBegin, V2_GCEnd, V2_ProcsChange, V2_HeapAlloc or V2_HeapGoal on the helper. */
void merge_writer_system(struct merge_writer *w, int64_t time_ns, unsigned type, uint64_t value);

/* Whether a new generation must begin before then, because of the limit of its length. */
bool merge_writer_is_far(const struct merge_writer *w, int64_t time_ns);

/* As event_writer_fini. */
bool merge_writer_fini(struct merge_writer *w, trail_convert_stats *stats, trail_error *err);
