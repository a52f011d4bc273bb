/*
 * v2 hole: damage after which the reader continues. What goroutines, Ps and ranges did meanwhile is
 * unknown, so each of them first gets an implied event that ends its state; then the model starts
 * anew, as at the beginning of a trace.
 *
 * Within a generation with lost events, a state is kept only if it certainly lasts until the next
 * event of its goroutine or P: if the next event of its thread, or the event with the next sequence
 * number, is in the file (v2/successors.h). Other states end where they begin, and the goroutine or
 * P has no state until an event shows it again.
 */
#pragma once

#include "read/v2/order.h"

/* Zero-initialized: no hole. */
struct v2_hole {
    bool open;
    bool within;   /* within a generation, not before one */
    uint64_t *ids; /* of goroutines, then of Ps */
    size_t goroutines, count, next;
};

/* Begins a hole after the last event. Returns false if out of memory. */
bool v2_hole_begin(struct v2_hole *hole, const struct v2_order *order);

/* Whether the next event of the thread, if it has one in this generation, is in the file. */
typedef bool v2_is_whole(void *context, const struct v2_m *m);

/*
 * The same within a generation, for the states that are not certain. Threads whose next event may
 * be lost hold nothing from now on.
 */
bool v2_hole_begin_within(struct v2_hole *hole, struct v2_order *order, v2_is_whole *is_whole,
                          void *context);

/*
 * Emits implied events while order->output is before `full`, and at most one more. Returns whether
 * all are emitted; the hole is then closed and, if it was before a generation, the model empty.
 */
bool v2_hole_emit(struct v2_hole *hole, struct v2_order *order, const trail_event *full);

void v2_hole_free(struct v2_hole *hole);

/* Ends those states begun by a step's events, from `event` on, that are not certain. */
void v2_hole_check(struct v2_order *order, const trail_event *event);

/* Whether a later event of the goroutine is in the file. */
bool v2_hole_goes_on(const struct v2_order *order, const struct v2_g *g);

/* Ends the state of a goroutine or P, if it has one, within a generation. Both emit at most three
 * events. */
void v2_hole_forget_g(struct v2_order *order, int64_t id);
void v2_hole_forget_p(struct v2_order *order, int64_t id);
void v2_hole_end_gc(struct v2_order *order);

/* Returns whether the goroutine or P had sequence number *n when its state was given up. */
bool v2_hole_forgotten(const struct idmap *forgotten, uint64_t id, uint64_t *n);

/*
 * Emits an implied event that begins an unknown state. It comes from NOT_EXIST: a state that comes
 * from UNDETERMINED has lasted since the generation began.
 */
void v2_hole_begin_goroutine(struct v2_order *order, const struct v2_g *g);
void v2_hole_begin_proc(struct v2_order *order, const struct v2_p *p);
