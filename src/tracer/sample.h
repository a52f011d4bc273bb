/* CPU samples: a timer signal, a ring, and CPUSample records (§2.13, §5.1). */
#ifndef TRAIL_TRACER_SAMPLE_H
#define TRAIL_TRACER_SAMPLE_H

#include <stdint.h>

/* Maps the ring, before samples can come. */
void sample_prepare(void);

/* SIGPROF `hz` times a second of CPU time, until sample_stop. */
void sample_start(unsigned hz);
void sample_stop(void);
/* The timer is not inherited. */
void sample_after_fork(void);

/* Writes the samples of the generation out; those of later ones stay. By the thread that ends it. */
void sample_drain(uint64_t generation);

#endif
