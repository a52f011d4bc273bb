/*
 * Waits, each by itself: how long goroutines were ready before they ran, and how long each wait
 * took, by start function; and where locks and conditions are waited for.
 *
 * A place is the first frame of a stack that is not of the runtime or of the lock itself. Stacks
 * are looked up once a generation; only waits for locks and conditions are looked up at all.
 */
#ifndef TRAIL_ANALYZE_WAITS_H
#define TRAIL_ANALYZE_WAITS_H

#include <trail/analyze.h>

#include "analyze/activity.h"
#include "base/idmap.h"
#include "base/intern.h"
#include "base/slab.h"

/* What is waited for at a place. */
enum place_kind { PLACE_OTHER, PLACE_LOCK, PLACE_CONDITION };

/* Those who wake others up at a place, most of them. */
enum { PLACE_WAKERS = 4 };
struct place_waker {
    trail_name name;
    uint64_t count;
};

/* Where locks or conditions are waited for. Lives as long as the analysis. */
struct place {
    trail_name name; /* "main.work (main.go:42)" */
    enum place_kind kind;
    uint64_t waits; /* that ended */
    int64_t ns;
    trail_longest longest;
    uint64_t futile;   /* waits that began again at once, with nothing done between */
    uint64_t waiters;  /* now */
    int64_t serial_ns; /* while somebody waited here, at most one goroutine worked */
    int64_t serial_at; /* activity.serial_ns when the first of the waiters came */
    struct place_waker wakers[PLACE_WAKERS];
};

/* What a goroutine that waits at a place, or was woken there, is up to. */
struct parked {
    struct place *place;    /* where it waits now */
    struct place *woken_at; /* where it was woken, until it does something or waits again */
    int64_t woken_exec_ns;  /* exec_ns of the goroutine then */
};

struct wait_group {
    trail_wait_group row;
    trail_wait *waits;
    size_t wait_capacity;
    uint64_t held; /* kept a P for long although others waited for it */
    trail_longest held_longest;
    uint64_t stuck, stuck_early; /* made at the end: blocked for long; created in the first half */
    int64_t stuck_since_ns;      /* the first of these */
    int64_t stuck_goroutine;
};

/*
 * Waits of one thread at one place and of one kind that a thread can wait for work in. They are waits for work if
 * it came back at least IDLE_RETURNS times and waited there for more than half of its life.
 */
enum { IDLE_RETURNS = 3 };
struct idle_place {
    trail_name wait; /* the kind */
    uint64_t count;  /* of waits that ended, as `ns` */
    int64_t ns;
    size_t next; /* of the same goroutine, + 1 */
};

struct waits {
    struct trail_analysis *analysis;
    struct activity *activity;   /* its clocks, and how many wait for locks */
    struct wait_group **by_name; /* NULL where there is none */
    size_t by_name_count, by_name_capacity;
    struct wait_group **items;
    size_t count, capacity;
    struct idmap places; /* name and kind -> struct place */
    struct place **all;
    size_t place_count, place_capacity;
    struct idmap by_stack; /* in this epoch -> struct place */
    struct idmap wakers;   /* in this epoch -> name, as a pointer */
    uint64_t epoch;
    struct idmap parked; /* goroutine -> struct parked */
    struct slab parked_slab;
    struct intern
        idle_keys; /* of goroutine, place and kind; the number is the place in `idle`, + 1 */
    struct idle_place *idle;
    size_t idle_capacity;
    struct idmap idle_first;    /* goroutine -> the first of its idle places, + 1, as a pointer */
    struct idmap idle_now;      /* the same of the one where it waits now */
    uint64_t watched;           /* goroutines that were woken at a place and did nothing yet */
    trail_name sync, condition; /* reasons */
};

extern const struct analysis_part waits_part;

#endif
