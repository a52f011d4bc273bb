/* CPU samples: a timer signal, a ring, and CPUSample records (§2.13, §5.1). */
#pragma once

#include <stdint.h>

/* Maps the ring; called before any sample. */
void sample_prepare(void);

/* Sends SIGPROF `hz` times per second of CPU time until sample_stop. */
void sample_start(unsigned hz);
void sample_stop(void);
/* The child does not inherit the timer. */
void sample_after_fork(void);

/*
 * Writes the samples of a generation. Called by the thread that ends it, and before that by the
 * reading thread. Samples of later generations stay. control is held.
 */
void sample_drain(uint64_t generation);

/* Returns the number of unwritten samples. */
uint64_t sample_waiting(void);
