/*
 * v2 force: where events are lost, the model is put into the state that the next event requires.
 *
 * Whatever this contradicts is unknown from then on: it gets the implied events of a hole
 * (v2/hole.h), then those of a status. An event that names neither goroutine nor P cannot be used
 * if its thread's are unknown.
 */
#pragma once

#include "read/v2/common.h"

/* Bounds the search of all threads for those that hold what another now has. */
#define V2_FORCED_WORK_MOST (UINT64_C(1) << 28)

/* The maximum number of implied events of one call of v2_force or v2_force_forget. */
#define V2_MAX_FORCED 24

/*
 * Prepares the model for the cursor's event, which waits or has failed. Returns false if it cannot
 * be used.
 */
bool v2_force(struct v2_order *order, struct v2_cursor *cursor);

/* Whether the cursor's event waits for a lost one. */
bool v2_force_is_due(const struct v2_order *order, const struct v2_cursor *cursor);

/* Whether the cursor's event is a copy of an accepted one, or so late that the model is past it. */
bool v2_force_is_over(const struct v2_order *order, const struct v2_cursor *cursor);

/*
 * Whether the cursor's event ends a goroutine that has later events in the file: it then belongs to
 * another goroutine, whose start on the thread is lost.
 */
bool v2_force_ends_another(const struct v2_order *order, const struct v2_cursor *cursor);

/* Whether the cursor's event may be real, not chance bytes. */
bool v2_force_is_plausible(const struct v2_order *order, const struct v2_cursor *cursor);

/* Makes what the thread holds unknown, and keeps the states of its goroutine and P. */
void v2_force_unbind(struct v2_m *m);

/* Events of the thread are lost: makes what it holds unknown, and ends the states of its goroutine
 * and P. */
void v2_force_forget(struct v2_order *order, struct v2_m *m);
