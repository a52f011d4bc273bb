/*
 * The flight recorder's memory: the newest generations, each a list of the buffers that were read (§7.9).
 * All but flight_snapshot is called with tracer.lock held.
 */
#ifndef TRAIL_TRACER_FLIGHT_H
#define TRAIL_TRACER_FLIGHT_H

#include "tracer/tracer.h"

/* Keeps generations from `first` on. */
void flight_begin(const trail_flight_options *options, uint64_t first);
/* Gives everything up. */
void flight_end(void);
bool flight_on(void);

/* Takes a buffer that was read; false if it does not want it. */
bool flight_keep(struct trail_buffer_ *buffer);
/* A generation is complete (began_ns: CLOCK_MONOTONIC), or was lost, and with it what was before it. */
void flight_complete(uint64_t generation, uint64_t began_ns);
void flight_lost(void);

/* The newest complete generation that is kept; 0: none. */
uint64_t flight_newest(void);

/* Writes header and all that is kept. Takes the lock as it needs it; one at a time. */
bool flight_write(int fd, uint64_t *bytes, trail_error *err);

void flight_after_fork(void);

#endif
