/*
 * The model behind the viewer: one thread reads a trace into lanes, batch by batch, while other
 * threads answer requests from what has been read so far.
 */
#pragma once

#include <trail/lanes.h>

#include "serve/shelf.h"

struct model;

/* Progress and totals. */
struct model_status {
    int version; /* of the format; 0: not known yet */
    trail_maker maker;
    bool done;    /* reading has ended */
    bool damaged; /* reading ended early, because of `error` */
    trail_error error;
    int64_t read, size; /* bytes of the source; size -1: not known */
    int64_t received;   /* more than `read` while a generation is not complete */
    trail_lanes_size lanes;
    size_t lane_counts[TRAIL_LANE_KINDS];
    int64_t end_ns;
    bool live;  /* the trace is still being produced */
    bool waits; /* nothing can be drawn before the end: v1 has its tables there */
    bool has_wall;
    int64_t wall_ns;               /* wall clock of time 0 */
    size_t bars[3], logs, samples; /* bars by trail_bar_kind */
};

/*
 * Opens a model without reading. The caller owns the intake and the shelf, where a model of the
 * whole trace is kept; NULL: nowhere. Returns NULL with *err on error.
 */
struct model *model_open(struct intake *intake, const struct shelf *shelf, trail_error *err);

/* Reads about one batch. Returns false at the end. Must always be called by the same thread. */
bool model_read(struct model *model);

/* Stops reading, also while it waits for the intake. May be called from any thread. */
void model_stop(struct model *model);

/* Called when nothing reads any more. Accepts NULL. */
void model_close(struct model *model);

/* Fills *status. May be called from any thread. */
void model_get_status(struct model *model, struct model_status *status);

/*
 * Blocks reading until model_unlock, so keep it short. Returns NULL, without holding the lock, if
 * there is nothing to draw yet.
 */
const trail_lanes *model_lock(struct model *model);
void model_unlock(struct model *model);

/*
 * Lets other threads run during a long answer: gives up the lock and takes it again. Texts and
 * stacks obtained before are invalid afterwards.
 */
void model_yield(struct model *model);
