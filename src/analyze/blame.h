/*
 * Blame: which function held other goroutines up, and for how long.
 *
 * A wait counts against the function that ended it, but for the parts of it in which that
 * function's goroutine waited for a lock itself: these count against the function that held that
 * lock. So a waiter that only passes a lock on is not blamed for the one that held it, and chains
 * of locks count against their last link. The same holds for room in channels, which may be locks;
 * and for what goroutines of Go take from a channel and put back, among waits of one row.
 */
#pragma once

#include <trail/analyze.h>

#include "base/grow.h"
#include "base/objects.h"

/* Shorter waits are not followed: for locks and the like, and for all else. */
#define BLAME_LEAST_NS  20000
#define BLAME_OTHERS_NS 200000

/* The waker's own wait had begun long before the one that it ends: by at least this time. */
#define BLAME_BEFORE_NS 10000000

/* Waits that one goroutine ends within this time end together. */
#define BLAME_TOGETHER_NS 50000

/*
 * The length of a union of intervals, added roughly in order of time: only the last stretches are
 * kept, and time before them is left out.
 */
enum { BLAME_STRETCHES = 8 };
struct blame_union {
    int64_t ns; /* of the stretches before `since_ns` */
    int64_t since_ns;
    size_t count;
    struct blame_stretch {
        int64_t begin, end;
    } last[BLAME_STRETCHES]; /* in order, disjoint */
};

int64_t blame_union_ns(const struct blame_union *of);
void blame_union_add(struct blame_union *of, int64_t begin, int64_t end);

struct blame_row;

/*
 * Returns for how long the function of a row has held the lock while something waited. Others may
 * have had it during such a wait, too: readers, or threads that took it before the waiter.
 */
int64_t blame_held_ns(const struct blame_row *row);

/* The entry with most of the time, if one has more than half: a weighted majority vote. */
struct blame_most {
    int64_t key, ns;
};

void blame_most_add(struct blame_most *most, int64_t key, int64_t ns);

struct blame_row {
    trail_name wait;        /* what was waited for; 0: only the place is known */
    trail_name function;    /* that ended the waits, or held the lock; 0: unknown */
    trail_name place;       /* "release (store.c:88)", where it did so last */
    trail_name caller;      /* ... and its caller, if it belongs to a library; else 0 */
    trail_name at;          /* place, or else start function, of the waiters */
    trail_stack waited_in;  /* of the longest wait, of Go's where `at` is no place; else 0 */
    bool lock, once, named; /* named: `wait` identifies the lock; otherwise `at` does */
    uint64_t waits;         /* for a lock, those of which a part counts here; else all */
    int64_t ns;
    int64_t direct_ns;     /* of waits that the function ended */
    trail_longest longest; /* a wait, or the parts of it that count here */
    trail_longest last;    /* the same for the last wait, and when that began */
    int64_t last_begin_ns;
    struct blame_union held, serial; /* while something waited; the same on the serial clock */
    int64_t most_held_ns;            /* upper bound of the function's hold time, where recorded */
    bool held_unknown;               /* the hold times of some waits are not recorded */
    int64_t alike_ns; /* of `direct_ns`: ended by goroutines with the same start function */
    /* Of `direct_ns`, with `back` or by the most frequent `goroutine` for room: ended by those that
     * had waited so, too. */
    int64_t back_ns;
    int64_t own_ns;     /* of `direct_ns`: without what other functions are to blame for */
    int64_t outside_ns; /* of `own_ns`: meanwhile its goroutine waited for something else */
    struct blame_union outside_held; /* while it did */
    bool outside_least; /* outside_ns is a lower bound: a long wait is known only at its end */
    int64_t begun_ns;   /* of `outside_ns`: waits begun long before, for most of this one */
    struct blame_most outside;    /* for what: the name of the wait */
    struct blame_most outside_at; /* where, if that is known; key 0: not */
    struct blame_most goroutine;  /* which one ended the waits */
    trail_name start;             /* its start function */
    trail_name waiter;            /* start function of the last waiter */
    uint64_t together;            /* waits ended with another one by the same goroutine */
    int64_t last_ns, last_waker;  /* end of the last wait */
};

/* A wait that has ended. */
struct blame_wait {
    int64_t goroutine, begin_ns, end_ns, begin_serial, end_serial;
    trail_name wait, at;
    trail_stack waits_in;  /* of Go's where `at` is no place; else 0 */
    trail_name outside_at; /* where, if it was for something outside the program; else 0 */
    bool named;            /* `wait` identifies the object; otherwise `at` does */
    bool lock, once;       /* once: for an initialisation that another one runs */
    bool may_go_on;        /* if nothing in the trace ends it: a permit, a read, ... */
    bool hands_over;       /* may be for work, or for a result */
    bool room;             /* for room in a channel, or a permit of a pool */
    bool back;             /* in Go, a receive or select that one of its own kind ended */
    bool late;             /* counted only when the holder is known, after later waits */
    int64_t exec_ns;       /* what the goroutine has run so far */
    int64_t held_ns;       /* for how long `function` has held the lock in all; 0: not known */
    trail_name own_start, start; /* start functions: its own, and the waker's */
    int64_t waker;               /* TRAIL_NONE: none */
    trail_name function, place, caller;

    /* Several waits that count as one: how many, the longest, and the time between them. */
    uint32_t times; /* 0: it is one */
    int64_t longest_ns, longest_begin_ns, between_ns;
};

/* Waits for work or results of goroutines with one start function that those with another one
 * ended. */
struct blame_pair {
    trail_name waiter, waker; /* start functions */
    trail_name wait, at;      /* of the longest */
    uint64_t waits;
    int64_t ns;
    trail_longest longest;
    struct blame_union waiting; /* while one waited */
};

struct aside;

struct blame {
    struct aside *const
        *aside; /* where waits are counted, if *aside is not NULL: rows are incomplete until then */
    struct idmap subjects;    /* wait << 32 | at -> its number, from 1 */
    struct idmap row_numbers; /* number << 33 | function << 1 | lock -> index in `rows`, + 1 */
    struct blame_row *rows;
    size_t count, capacity;
    struct idmap pair_numbers; /* waiter << 32 | waker -> index in `pairs`, + 1 */
    struct blame_pair *pairs;
    size_t pair_count, pair_capacity;
    struct objects pasts; /* of goroutines: struct blame_past */
};

/* Loops over the rows, and over the pairs. */
#define BLAME_EACH(row, blame) EACH(const struct blame_row, row, (blame)->rows, (blame)->count)
#define PAIRS_EACH(pair, blame)                                                                    \
    EACH(const struct blame_pair, pair, (blame)->pairs, (blame)->pair_count)

/* `aside`: the analysis's. */
void blame_init(struct blame *blame, struct aside *const *aside);
void blame_free(struct blame *blame);

/* Drops what was counted. Returns false if out of memory. */
bool blame_clear(struct blame *blame);

/* Counts a wait. Returns false if out of memory. */
bool blame_add(struct blame *blame, const struct blame_wait *wait);

/* The goroutine was ready, but did not run; `name` is what that counts as. Returns false on out of
 * memory. */
bool blame_ready(struct blame *blame, int64_t goroutine, int64_t begin_ns, int64_t end_ns,
                 trail_name name);

/* The last wait of the goroutine ended at a time limit. Returns false if out of memory. */
bool blame_timed_out(struct blame *blame, int64_t goroutine);

/* The goroutine has ended. Returns false if out of memory. */
bool blame_end(struct blame *blame, int64_t goroutine);
