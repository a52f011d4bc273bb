/* The reading side (read.c), as far as other files need it. */
#ifndef TRAIL_TRACER_READ_H
#define TRAIL_TRACER_READ_H

#include "tracer/tracer.h"

/* Whether the calling thread is the reader, which cannot wait for itself. `lock` is held. */
bool read_is_reader(void);

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
void read_at_exit(void);
/* Waits at most a second until the host's sink has returned. It is not called again. */
void read_end_sink(void);

#endif
