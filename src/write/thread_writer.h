/*
 * Writes threads and CPUs in terms of Go's format: a thread is a goroutine on an M of its own,
 * which it never leaves, and a CPU, or a slot of concurrency, is a P. The recorder and the
 * importers write through it.
 *
 * The writer keeps what the format needs beyond the states: sequence numbers, which P is known to
 * readers and which thread runs on it, and the time. The states are the caller's, which writes only
 * events that fit them.
 *
 * Two threads never have events at the same time: among Ms whose next events have equal times, Go's
 * readers may try one twice and another never, and reject the trace.
 */
#pragma once

#include "write/v2_writer.h"

/* A thread in the trace. The caller sets `g`, `m` before the first event, and `p` to -1. */
struct written_thread {
    uint64_t g, m;
    uint64_t seq; /* of the goroutine, in this generation */
    int64_t p;    /* -1: none */
};

struct written_p {
    uint64_t seq;
    bool known;                     /* the trace has an event of the thread */
    struct written_thread *running; /* NULL: idle */
};

/* Set `out`; zero-initialise the rest. */
struct thread_writer {
    struct v2_writer *out;
    struct written_p *ps; /* indexed by a P's ID */
    size_t p_count, p_room;
    int64_t begin_ns; /* of the generation */
    int64_t now_ns;   /* of the last event */
    uint64_t begin_bytes;
    uint64_t generation; /* 1, 2, ...; 0: none has begun */
};

void thread_writer_dispose(struct thread_writer *w);

/* MARK: Time */

/* Advances to `ns`, and by at least 1 ns. Returns the time. */
static inline int64_t thread_writer_at(struct thread_writer *w, int64_t ns)
{
    w->now_ns = ns > w->now_ns ? ns : w->now_ns + 1;
    return w->now_ns;
}

static inline int64_t thread_writer_tick(struct thread_writer *w)
{
    return ++w->now_ns;
}

/* MARK: Generations */

/* Whether the generation is so large that another should begin: readers hold one in memory. */
bool thread_writer_is_full(const struct thread_writer *w);

/* Ends the generation, if there is one. */
void thread_writer_end(struct thread_writer *w);

/*
 * Begins a generation at the current time. The caller then writes its notes, thread_writer_ps, the
 * status of each thread, and thread_writer_begun.
 */
void thread_writer_begin(struct thread_writer *w, int64_t wall_ns, const trail_maker *maker);
void thread_writer_ps(struct thread_writer *w);
void thread_writer_begun(struct thread_writer *w);

/*
 * Writes the status of a thread, V2_GO_..., on the M `on`. `name` is the stack that names the
 * goroutine, in 1.23 and later; 0: none.
 */
void thread_writer_status(struct thread_writer *w, uint64_t on, struct written_thread *thread,
                          int64_t ns, unsigned status, uint64_t name);

/* MARK: Ps */

/* Makes Ps with the IDs below `count`. Returns false if out of memory. */
bool thread_writer_add_ps(struct thread_writer *w, size_t count);

/* Returns the lowest ID of a P on which no thread runs; p_count if all are taken. */
size_t thread_writer_free_p(const struct thread_writer *w);

/* Writes the first event of an idle P on the M `on`, if it has none yet. */
void thread_writer_show_p(struct thread_writer *w, size_t p, uint64_t on, int64_t ns);

void thread_writer_take_p(struct thread_writer *w, struct written_thread *thread, size_t p,
                          int64_t ns);
void thread_writer_give_p(struct thread_writer *w, struct written_thread *thread, int64_t ns);

/* Returns the next sequence number of the thread's P. */
static inline uint64_t thread_writer_next_of_p(struct thread_writer *w,
                                               const struct written_thread *thread)
{
    return ++w->ps[thread->p].seq;
}

/* MARK: Events */

#define THREAD_EVENT(w, m, ns, type, ...)                                                          \
    (void)v2_writer_event((w)->out, m, ns, type, V2_ARGS(__VA_ARGS__))

/* Starts the thread, which is ready and has a P. */
void thread_writer_start(struct thread_writer *w, struct written_thread *thread, int64_t ns);

/* Makes the thread, which waits, ready; `by` is the waker's M or V2_NO_THREAD. */
void thread_writer_unblock(struct thread_writer *w, uint64_t by, struct written_thread *thread,
                           int64_t ns, uint64_t stack);
