/* The reading side (read.c), and the consumers that it delivers to (consumers.c). */
#pragma once

#include "tracer/tracer.h"

/* Where the trace goes. Guarded by tracer.lock; read.c and consumers.c change it. */
struct stream {
    bool on;             /* from the start until the stop is complete */
    bool pull;           /* read by trail_read */
    int fd;              /* a duplicate: a thread may stay stuck in a write to it; -1: none */
    trail_chunk_fn sink; /* NULL: fd */
    void *context;
    uint64_t first, last; /* generations; last 0: not known yet */
    bool header_due;
    bool wrote; /* data followed the header, so a loss leaves a gap */
    /* nothing more is delivered, after an error or a gap that a descriptor cannot express */
    bool cut;
    bool ended; /* everything was delivered */
    trail_error error;
    bool has_puller; /* `puller` is set: a thread has called trail_read in this stream */
    pthread_t puller;
};
extern struct stream stream;

/* Whether the calling thread is the reader, which cannot wait for itself. `lock` is held. */
bool read_is_reader(void);

/* Whether the calling thread is the library's, which calls sinks. */
bool read_is_own_thread(void);

/* Fails in a callback that the library made from within a call, where waiting would never end. */
bool read_refuses_call(trail_error *err);

/* Lets the reading thread see a consumer that begins now. `lock` is held. */
void read_restart(void);

/* Starts the library's thread with all signals blocked, unless it runs. control is held. */
bool read_start_thread(trail_error *err);

/*
 * Joins the library's thread, which has no more work, or abandons it with its buffer if it is stuck
 * in a write or sink. No lock is held, and a stop is in progress.
 */
void read_end_thread(bool stuck);

/* Waits until the stream is complete; false if its consumer is stuck. `lock` is held. */
bool read_wait_for_stream(void);

/* Closes the stream's descriptor, or leaves that to the thread that is writing to it. `lock` is
 * held. */
void read_close_fd(void);

/* Requests an early end of the generation. `lock` is held. */
void read_advance_soon(void);

/*
 * For the reader (implemented in queue.c): the oldest pending generation, its buffers, and their
 * release. `lock` is held.
 */
struct pending *queue_head(void);
struct trail_buffer_ *queue_pop_buffer(struct pending *pending);
void queue_pop(void);
void queue_free(struct trail_buffer_ *buffer);

void read_after_fork(void);
void consumers_after_fork(void);
void consumers_at_exit(void);
/* Waits at most a second until the host's sink has returned. It is not called again. */
void read_end_sink(void);
