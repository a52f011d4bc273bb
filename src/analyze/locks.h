/*
 * Locks: waits and holds by lock, and chains of waits.
 *
 * In recordings of C programs a log "wait" before a wait names its lock, and a log "held" gives the
 * holder and the hold time; the row is that lock. Elsewhere a mutex has a row for each
 * stack of a wait, whichever goroutine ends it; other objects, such as a channel, have one for each
 * pair of stacks, of the wait and of the waker.
 *
 * Chains: when a wait ends, its waker is known, and so are the waker's own waits up to then. Each
 * goroutine keeps its last few pieces of time in which it waited, each with a list of links:
 * itself, the goroutine it waited for, the one that that waited for. The lists share their tails
 * and only refer to waits that ended before, so reference counts suffice.
 */
#pragma once

#include <trail/analyze.h>

#include "analyze/futexes.h"
#include "base/arena.h"
#include "base/intern.h"
#include "base/objects.h"

struct trail_analysis;

enum { LOCK_PIECES = 8, LOCK_CHAINS = 64 };

struct lock {
    trail_lock row;   /* first: pointers to rows are pointers to it */
    size_t place;     /* index among the rows; set at the end */
    bool for_work;    /* its kind can be a wait for work (WIRE_WAIT_IDLE) */
    trail_name futex; /* of a futex: the name of its waits; 0: another kind */
    /* Of a semaphore: the goroutines that have waited, and the sum of the waits that one of these
     * ended. Users of a lock end each other's waits; a producer of work does not wait for it. */
    bool can_be_lock;
    struct idmap waited;
    int64_t among_ns;
};

/*
 * A wait in a chain. Counted references: from pieces, from kept chains and from the link before it.
 */
struct lock_link {
    struct lock_link *next; /* what the holder waited for meanwhile */
    struct lock *lock;
    trail_lock_link row;
    uint32_t refs, depth; /* depth: number of waits from here on */
};

/* A stretch of time in which a chain held. */
struct lock_piece {
    int64_t begin_ns, end_ns;
    struct lock_link *chain;
};

/* A goroutine alive that has waited, or has logged what it is about to wait for. */
struct lock_waiter {
    bool waits;
    struct lock *announced; /* while `waits`: the lock named by the log before the wait; or NULL */
    struct lock *ended;     /* what it waited for last; NULL: not counted */
    trail_stack stack;      /* of the wait */
    trail_name reason;
    /* The lock of its last log "held", until it is known whether that release wakes a waiter. */
    struct lock *gives_up;
    trail_stack taken, released;
    int64_t held_ns, given_up_ns;
    int64_t held_by; /* the goroutine that took it */
    unsigned piece_count;
    struct lock_piece pieces[LOCK_PIECES];
};

/* The contents of a log of a hold. */
struct lock_text {
    struct lock *lock; /* NULL: not a lock */
    int64_t held_ns;
    int64_t by; /* as in struct wait_text */
};

struct lock_chain {
    struct lock_piece piece;
    uint64_t others;
    int64_t other, other_end_ns; /* the last of these: its goroutine, and the end of its wait */
};

/* What a place is to a lock. LOCK_WOKEN: where waits were ended, for the row's `woken`. */
enum lock_place_kind { LOCK_WAITED, LOCK_HELD, LOCK_WOKEN };

/* Waits or holds of one lock at one place. */
struct lock_place_row {
    struct lock *lock;
    enum lock_place_kind kind;
    trail_lock_place row;
};

struct locks {
    struct trail_analysis *analysis;
    const struct holders *holders;
    struct lock **all;
    size_t row_count; /* how many are rows; set at the end */
    size_t count, capacity;
    struct idmap by_name;    /* kind and name -> struct lock */
    struct idmap by_stacks;  /* of wait and waker -> struct lock */
    struct idmap held_texts; /* name of a log's text -> struct lock_text */
    struct arena texts;
    struct objects waiters; /* of goroutines: struct lock_waiter */
    struct futexes futexes;
    struct slab link_slab;
    struct intern place_keys; /* number: index in `places`, + 1 */
    struct lock_place_row *places;
    size_t place_count, place_capacity;
    struct lock_chain chains[LOCK_CHAINS]; /* longest first */
    size_t chain_count;
    trail_lock_place *place_rows; /* set at the end, as the two below */
    trail_lock_chain *chain_rows;
    trail_lock_link *link_rows;
};
