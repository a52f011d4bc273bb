/*
 * The model: merges the ops and context switches of all threads by time, and cuts the trace into
 * generations. ops.h says what an op means, states.h what goroutines and Ps are.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct collect;
struct collect_summary;
struct trace;
struct thread;

/* When a program's context switches were lost or not recorded. Owned by model.c. */
struct unseen {
    int64_t since_ns; /* 0: the switches are known */
    int64_t ns;       /* total length of the spans that have ended */
    bool wakings;     /* wake-ups are being lost */
    bool unlogged;    /* a span has begun that is not in any log */
    bool logged;      /* what the last WIRE_READINESS log states: inferred */
};

/* Owned by model.c. */
struct model {
    struct thread **queue; /* a heap, by the time of each thread's next item */
    size_t queue_count, queue_room;
    int64_t begin_ns;   /* of the first generation */
    int64_t written_ns; /* everything before it is written; INT64_MAX: everything */
    /* The op that waits for a lock without a name: its thread and its time; and when that was first
     * noticed, in ticks. */
    uint64_t nameless_thread, nameless_time, nameless_at;
};

/* Writes the ops before the watermark. */
void model_run(struct trace *t);

/* Ends the trace: writes the ends of what is alive. */
void model_end(struct trace *t);

/* Begins a new generation. */
void model_cut(struct trace *t);

/* Explains moments off a CPU that belong to no wait: sets short_ns to the part that short calls
 * account for, and adds the rest. */
void model_summarize(const struct collect *c, struct collect_summary *summary);

void model_dispose(struct trace *t);
