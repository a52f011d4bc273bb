/*
 * v1, check: whether the events, in their final order, are consistent (§3.6). Also completes events
 * with data of earlier ones: the stack of a goroutine's first start, the lanes of the GC and the
 * network poller, the name and parent of a task that ends.
 *
 * A misused annotation is kept and marked (v1_event.misused). Repair: a state that contradicts an
 * event is corrected, and the event is kept.
 */
#pragma once

#include "base/objects.h"
#include "read/v1/merge.h"

struct v1_check {
    const struct v1_merge *merge; /* for positions */
    const struct tables *tables;
    struct v1_gs *gs;
    struct v1_repairs *repairs;
    int version;
    bool newer_rules;
    bool strict;      /* a misused annotation is a contradiction */
    uint64_t misused; /* annotations marked as such */
    bool repaired;    /* an earlier pass has made repairs: events are lost */
    bool gc_running, stopped_world;
    struct objects tasks; /* tasks that have not ended */
    trail_error error;
};

void v1_check_init(struct v1_check *check, const struct v1_merge *merge,
                   const struct tables *tables, struct v1_repairs *repairs, bool strict);
void v1_check_fini(struct v1_check *check);

/*
 * Checks an event and completes it: arg[1..3] of a UserTaskEnd become parent and name ID of its
 * task, and whether it is known. Returns -1 with check->error if it contradicts earlier events.
 */
int v1_check_event(struct v1_check *check, struct v1_event *event);
