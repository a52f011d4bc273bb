/*
 * Calls that cannot be written because their order, thread or objects are wrong. They are left out
 * of the trace and counted; the first one of a session is kept with its place, for the host's
 * callback and for trail_stop. The checking build (-Dcheck=true) prints it and aborts.
 */
#pragma once

#include <trail/record.h>

/*
 * Counts a wrong call of the function `what`; `what` and `why` are string constants. m: the
 * thread's inner M, or NULL. Returns false.
 */
bool misuse_of(trail_misuse_kind kind, const trail_m *m, const char *what, const char *why);

/* The same without an M; `frame` is the frame of the function that the host called. */
bool misuse_at(trail_misuse_kind kind, uintptr_t frame, const char *what, const char *why);

/* The most frequent kind: the thread lacks a P or a goroutine, or has one. */
static inline bool misuse(const trail_m *m, const char *what, const char *why)
{
    return misuse_of(TRAIL_MISUSE_CONTEXT, m, what, why);
}

/* Forgets the first misuse, at the start of a session. */
void misuse_reset(void);

/* Fills *err with the session's first misuse. Returns false. */
bool misuse_report(trail_error *err);
