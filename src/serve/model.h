/*
 * The model behind the viewer: a trace that is read into lanes, batch by batch, by one thread, while
 * others ask about what has been read so far.
 */
#ifndef TRAIL_SERVE_MODEL_H
#define TRAIL_SERVE_MODEL_H

#include <trail/lanes.h>

#include "serve/intake.h"

struct model;

/* What can be said without a look at the lanes. */
struct model_status {
    int version;  /* of the format; 0: not known yet */
    bool done;    /* all has been read that there is */
    bool damaged; /* `error` says why the rest was not */
    trail_error error;
    int64_t read, size; /* bytes of the source; size -1: not known */
    trail_lanes_size lanes;
    size_t lane_counts[TRAIL_LANE_KINDS];
    int64_t end_ns;
    bool live;  /* where the trace ends is not known before */
    bool waits; /* nothing can be drawn before all has come: v1 has its tables at the end */
    bool has_wall;
    int64_t wall_ns;               /* wall clock of time 0 */
    size_t bars[3], logs, samples; /* bars by trail_bar_kind */
};

/* Nothing is read yet. The intake stays the caller's. NULL: *err says why. */
struct model *model_open(struct intake *intake, trail_error *err);

/* Reads on, a batch or so. False when it is over. Always by the same thread. */
bool model_read(struct model *model);

/* Ends the reading where it is, also while it waits for the intake. From any thread. */
void model_stop(struct model *model);

/* When nobody reads any more. Accepts NULL. */
void model_close(struct model *model);

void model_get_status(struct model *model, struct model_status *status);

/* Between the two nothing is read; keep it short. NULL: there is nothing to draw, and no unlocking. */
const trail_lanes *model_lock(struct model *model);
void model_unlock(struct model *model);

/* Who takes long lets others ask in between; texts and stacks from before do not hold any more. */
void model_breathe(struct model *model);

#endif
