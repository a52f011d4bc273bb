/*
 * The snapshots of a flight recorder: those that are requested, and those of what was slow, which
 * are limited in number and size. What the limits forbid is counted.
 */
#pragma once

#include "collect/recorder_state.h"

/* Requests a snapshot, which is written once everything up to now has been read. */
void recorder_snapshot(struct recorder *r);

/* Takes what a trace has found slow: see slow.h. `to` is its struct recorded_trace. */
void recorder_found_slow(void *to, const struct slow_event *event);

/* Returns when the next snapshot is due; 0: none is. */
int64_t recorder_snapshots_due_ns(const struct recorder *r);

/* Writes what is due. */
void recorder_write_snapshots(struct recorder *r);

/* The trace is about to be completed: writes its snapshot, if there is one that is not due yet. */
void recorder_write_last_snapshot(struct recorder *r, const struct recorded_trace *to);
