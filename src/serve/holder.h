/* The holder of the lock that a span waits for, and the logs that it is known from. */
#pragma once

#include <trail/lanes.h>

struct holder_lane {
    int64_t lane;  /* of its goroutine; -1: not known */
    bool inferred; /* from what ended the wait, not from a record */
};

/*
 * Returns the lane that held the lock for at least half of a wait of goroutine `lane`. In
 * recordings of C programs the holds are in the trace; for Go's mutexes the holder is inferred.
 */
struct holder_lane holder_of_wait(const trail_lanes *lanes, size_t lane, uint64_t span,
                                  const trail_span *row);

/*
 * Returns the function of Go's package sync that a goroutine waits in, "sync.(*Mutex).Lock", as
 * the table of locks calls it; empty: none. Go's reason for all of them may be "sync".
 */
trail_string sync_function_of(const trail_lanes *lanes, const trail_span *row);

/* Whether a log is one of a recorder, about what the lanes show. */
bool mark_is_recorders(const trail_lanes *lanes, const trail_mark *mark);
