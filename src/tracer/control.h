/* The life of a session, from its first consumer (a stream or the flight recorder) to its last. */
#pragma once

#include <time.h>

#include "tracer/tracer.h"

/*
 * Changes the generation, visibly to every thread: sections that begin later belong to `to`.
 * Returns false and changes nothing if the trace has already failed.
 */
bool set_generation(uint64_t from, uint64_t to);

/*
 * Ends the trace early, for lack of memory. What was written is a consistent prefix, because a
 * thread that saw the end cannot wake a goroutine of a thread that did not. tracer.lock is held;
 * the reading thread completes the trace.
 */
void session_fail(void);

/* Returns the time `ns` from now, for waits by CLOCK_MONOTONIC, as on tracer.room and
 * tracer.changed. */
struct timespec deadline_after(int64_t ns);

/* Starts a thread of the library, `what` it does for the error, which handles no signals. */
bool library_thread(pthread_t *thread, void *(*run)(void *), void *context, const char *what,
                    trail_error *err);
