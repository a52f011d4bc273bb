/*
 * Locks: who waited for what, who had it, and who waited for whom at once.
 *
 * In recordings of C programs a log "wait" in front of a wait names what is waited for, and a log
 * "held" who had it for how long; that is the row. Elsewhere the row is the stack of the wait and
 * that of who ended it.
 *
 * Chains: when a wait ends it is known who ended it, and what that one waited for meanwhile is over
 * and known too. So each goroutine keeps the last few pieces of its past in which it waited, each
 * with a list of links: itself, whom it waited for, whom that one waited for. The lists share their
 * ends, and only lead to what was over before: they are counted references.
 */
#ifndef TRAIL_ANALYZE_LOCKS_H
#define TRAIL_ANALYZE_LOCKS_H

#include <trail/analyze.h>

#include "base/arena.h"
#include "base/idmap.h"
#include "base/intern.h"
#include "base/slab.h"

struct analysis_part;
struct trail_analysis;

enum { LOCK_PIECES = 8, LOCK_CHAINS = 64 };

struct lock {
    trail_lock row; /* first: rows are handed out as pointers to it */
    size_t place;   /* made at the end: among the rows */
    bool for_work;  /* its kind can be a wait for work (WIRE_WAIT_IDLE) */
};

/* A wait in a chain. Counted: a piece, a chain that is kept and a link before it refer to it. */
struct lock_link {
    struct lock_link *next; /* what the holder waited for meanwhile */
    struct lock *lock;
    int64_t goroutine, holder;
    int64_t begin_ns, end_ns;
    trail_name name, holder_name;
    uint32_t refs, depth; /* waits from here on */
};

/* A time in which a chain held. */
struct lock_piece {
    int64_t begin_ns, end_ns;
    struct lock_link *chain;
};

/* A goroutine alive that has waited, or said what it is about to wait for. */
struct lock_waiter {
    bool waits;
    struct lock *announced; /* while `waits`: what the log in front of the wait names; or NULL */
    struct lock *ended;     /* what it waited for last; NULL: not counted */
    trail_stack stack;      /* of the wait */
    trail_name reason;
    /* The lock that it last reported to have held, until it is known whether that release wakes a waiter. */
    struct lock *gives_up;
    trail_stack taken, released;
    int64_t held_ns, given_up_ns;
    unsigned piece_count;
    struct lock_piece pieces[LOCK_PIECES];
};

/* What the log of a hold says. */
struct lock_text {
    struct lock *lock; /* NULL: no lock */
    int64_t held_ns;
};

struct lock_chain {
    struct lock_piece piece;
    uint64_t others;
    int64_t other, other_end_ns; /* the last of these: its goroutine, and the end of its wait */
};

/* Of one lock, from one place. */
struct lock_place_row {
    struct lock *lock;
    bool holds;
    trail_lock_place row;
};

struct locks {
    struct trail_analysis *analysis;
    struct lock **all;
    size_t row_count; /* made at the end: so many of them are rows */
    size_t count, capacity;
    struct idmap by_name;    /* kind and name -> struct lock */
    struct idmap by_stacks;  /* of wait and waker -> struct lock */
    struct idmap held_texts; /* name of a log's text -> struct lock_text */
    struct arena texts;
    struct idmap waiters; /* goroutine -> struct lock_waiter */
    struct slab waiter_slab, link_slab;
    struct intern place_keys; /* number: the place in `places`, + 1 */
    struct lock_place_row *places;
    size_t place_count, place_capacity;
    struct lock_chain chains[LOCK_CHAINS]; /* the longest first */
    size_t chain_count;
    trail_lock_place *place_rows; /* made at the end, as the two below */
    trail_lock_chain *chain_rows;
    trail_lock_link *link_rows;
};

extern const struct analysis_part locks_part;

#endif
