/*
 * v2 hole: damage that the reader goes on behind. What goroutines, Ps and ranges did meanwhile is
 * unknown, so each of them first gets an implied event that ends its state; then the model starts
 * anew, as at the beginning of a trace.
 */
#ifndef TRAIL_READ_V2_HOLE_H
#define TRAIL_READ_V2_HOLE_H

#include "read/v2/order.h"

/* Zero-initialized: no hole. */
struct v2_hole {
    bool open;
    uint64_t *ids; /* of goroutines, then of Ps */
    size_t goroutines, count, next;
};

/* Begins a hole behind the last event. Returns false if out of memory. */
bool v2_hole_begin(struct v2_hole *hole, const struct v2_order *order);

/*
 * Emits implied events, at most one more than needed to be behind `full`, while order->output is
 * before it. Returns whether all are emitted; the model is then empty and the hole closed.
 */
bool v2_hole_emit(struct v2_hole *hole, struct v2_order *order, const trail_event *full);

void v2_hole_free(struct v2_hole *hole);

#endif
