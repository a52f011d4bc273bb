/*
 * The flight recorder's memory: the newest generations, each a list of buffers that were read
 * (§7.9). All functions but flight_write and flight_after_fork require tracer.lock.
 */
#pragma once

#include "tracer/tracer.h"

/* Keeps generations from `first` on. */
void flight_begin(const trail_flight_options *options, uint64_t first);
/* Drops everything, after any snapshot in progress. */
void flight_end(void);
bool flight_on(void);

/*
 * Takes ownership of a buffer that was read. False if the recorder is off or the buffer belongs to
 * an earlier generation.
 */
bool flight_keep(struct trail_buffer_ *buffer);
/* Adds a complete generation (began_ns: CLOCK_MONOTONIC); after a loss, drops all earlier ones. */
void flight_complete(uint64_t generation, uint64_t began_ns);
void flight_lost(void);

/* Returns the newest complete generation that is kept; 0 if there is none. */
uint64_t flight_newest(void);

/* Writes the header and everything that is kept. Takes the lock itself; one call at a time. */
bool flight_write(int fd, uint64_t *bytes, trail_error *err);

void flight_after_fork(void);
