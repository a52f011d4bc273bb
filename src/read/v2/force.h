/*
 * v2 force: where events are lost, the model is put into the state that the next event requires.
 *
 * What it contradicts is unknown from then on: it gets the implied events of a hole (v2/hole.h),
 * and then those of a status. An event that names neither goroutine nor P, on a thread of which
 * they are unknown, cannot be used.
 */
#ifndef TRAIL_READ_V2_FORCE_H
#define TRAIL_READ_V2_FORCE_H

#include "read/v2/common.h"

/* Bounds the search of all threads for those that hold what another has. */
#define V2_FORCED_WORK_MOST (UINT64_C(1) << 28)

/* The maximum number of implied events of a call of v2_force or v2_force_forget. */
#define V2_MAX_FORCED 24

/*
 * Prepares the model for the cursor's event, which waits or has failed. Returns false if it cannot
 * be used.
 */
bool v2_force(struct v2_order *order, struct v2_cursor *cursor);

/* Whether the cursor's event waits for one that is lost. */
bool v2_force_is_due(const struct v2_order *order, const struct v2_cursor *cursor);

/* Whether the cursor's event is a copy of one that was taken, or so late that the model is beyond
 * it. */
bool v2_force_is_over(const struct v2_order *order, const struct v2_cursor *cursor);

/*
 * Whether the cursor's event ends a goroutine of which later events are in the file: it is of
 * another one, whose start on the thread is lost.
 */
bool v2_force_ends_another(const struct v2_order *order, const struct v2_cursor *cursor);

/* Whether the cursor's event may be one of a program, not chance bytes. */
bool v2_force_is_plausible(const struct v2_order *order, const struct v2_cursor *cursor);

/* What the thread holds is unknown; the states of that stay. */
void v2_force_unbind(struct v2_m *m);

/* Events of the thread are lost: what it holds is unknown, and the states of that end. */
void v2_force_forget(struct v2_order *order, struct v2_m *m);

#endif
