/* The reading side, as far as others need it: read.c. */
#ifndef TRAIL_TRACER_READ_H
#define TRAIL_TRACER_READ_H

#include "tracer/tracer.h"

/* The generation should end early. `lock` is held. */
void read_advance_soon(void);

/* A pending generation's number and buffers, for the reader (queue.c). `lock` is held. */
struct pending *queue_head(void);
struct trail_buffer_ *queue_pop_buffer(struct pending *pending);
void queue_pop(void);
void queue_free(struct trail_buffer_ *buffer);

void read_after_fork(void);
void read_at_exit(void);

#endif
