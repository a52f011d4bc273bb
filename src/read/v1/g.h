/*
 * v1, goroutines: the state of a goroutine for all stages in one struct, so that an event costs one
 * look-up.
 *
 * Millions of goroutines occur in a long trace. When one ends, its struct is freed and only one bit
 * remains. That suffices: for the order, an ended goroutine stays "running", a state in which only
 * its own events could be ready, and no P runs it any more (§3.3); for the checks it is dead but
 * known (§3.6). v1_gs_get recreates a struct in that state if the ID occurs again.
 *
 * Code that keeps a pointer over several events keeps the ID too and checks v1_g_is: memory of the
 * structs is not returned to the system before v1_gs_fini, so reading a stale one is harmless.
 */
#pragma once

#include <stdbool.h>

#include "base/objects.h"

/* States of the order (§3.3). */
enum v1_status { V1_DEAD, V1_RUNNABLE, V1_RUNNING, V1_WAITING };

struct v1_region {
    uint64_t task;
    uint64_t name; /* string ID */
    struct v1_region *outer;
};

/* Events that a FutileWakeup may remove (§3.5): positions in the merge since the last unblock. */
struct v1_futile_list {
    uint64_t *position;
    size_t count, capacity;
    bool futile;
};

/* Fields that nearly every event uses come first, within one or two cache lines. */
struct v1_g {
    /*
     * Ps whose next event needs another state of this goroutine; NULL: none. In a freed struct this
     * word belongs to the slab: check v1_g_is before reading it.
     */
    struct v1_waiters *waiters;
    uint64_t id;
    uint64_t seq;     /* v1_frontier */
    uint8_t status;   /* v1_frontier: enum v1_status */
    uint8_t last;     /* v1_frontier: type of the event that last changed the status */
    uint8_t state;    /* v1_check: enum v1_status */
    uint8_t event;    /* v1_check: type of the event whose counterpart is pending, 0 if none */
    bool alive;       /* in v1_gs.live */
    bool known;       /* v1_check: it had an event of its own, or was created */
    bool call_open;   /* v1_order: it had no event since its GoSysCall at offset `call` */
    bool fresh;       /* v1_check: created and not started yet */
    bool mark_assist; /* v1_check: between GCMarkAssistStart and Done */
    bool snapshot;    /* v1_reader: created before the snapshot ended, and no event since */
    uint64_t call;
    /* v1_order: time of its last GoSysBlock or GoInSyscall; 0 if none */
    int64_t blocked_ticks;
    uint64_t create_stack;        /* v1_check: stack of the first start, while fresh */
    struct v1_region *regions;    /* v1_check: innermost first */
    struct v1_futile_list wakeup; /* v1_order */
};

struct v1_gs {
    struct objects live; /* of struct v1_g */
    struct idmap ended;  /* id / bits of a word -> a word with a bit for each ended goroutine */
    struct slab region_slab;
    struct slab waiters_slab;
};

void v1_gs_init(struct v1_gs *gs);
void v1_gs_fini(struct v1_gs *gs);

/* Restores the state after v1_gs_init. */
void v1_gs_reset(struct v1_gs *gs);

/* Returns goroutine `id`, created if needed. NULL if out of memory. */
struct v1_g *v1_gs_get_slow(struct v1_gs *gs, uint64_t id);

static inline struct v1_g *v1_gs_get(struct v1_gs *gs, uint64_t id)
{
    struct v1_g *g = objects_find(&gs->live, id);
    return __builtin_expect(g != NULL, 1) ? g : v1_gs_get_slow(gs, id);
}

static inline bool v1_g_is(const struct v1_g *g, uint64_t id)
{
    return g && g->id == id && g->alive;
}

/* Frees an ended goroutine's struct and records the end. Returns false if out of memory. */
bool v1_gs_end(struct v1_gs *gs, struct v1_g *g);

/* Removes the region at *link, in the list `regions` of a goroutine or in `outer`. */
void v1_g_drop_region(struct v1_gs *gs, struct v1_region **link);
