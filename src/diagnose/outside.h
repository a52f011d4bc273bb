/*
 * Outside: sleeps, and waits for files, peers and child processes, by kind and the function that
 * waits.
 */
#pragma once

#include <trail/analyze.h>

#include "analyze/blame.h"
#include "base/intern.h"
#include "base/objects.h"
#include "wire/waits.h"

struct goroutine;

/* What ended a wait: its start function (0: unknown), and what that did meanwhile. */
struct outside_peer {
    trail_name start, wait, place; /* `place`: where it waited */
    int64_t ns;                    /* for `wait` */
    int64_t ran_ns;                /* at least */
};

/* Waits of one kind in one function. */
struct outside_row {
    enum wire_wait kind;
    trail_name function;
    trail_name place; /* "read_block (store.c:88)", of the longest */
    trail_name wait;  /* of the longest */
    trail_longest longest;
    trail_name waiter;        /* of the longest: start function */
    bool waiters_differ;      /* another one waited here, too */
    bool of_main;             /* the main goroutine did */
    uint64_t longest_ends;    /* `ends` of the goroutine with the longest, at its last wait here */
    uint64_t beginners;       /* goroutines that had their very first wait here */
    struct outside_peer peer; /* of the longest */
    trail_histogram spread;
    struct blame_union at_least_one; /* while a goroutine waits here */
    uint64_t returns;          /* a goroutine waited here again, without another wait in between */
    int64_t exec_ns;           /* that it ran in between */
    trail_histogram runs;      /* the same of each */
    trail_longest longest_run; /* the longest of these, from the end of the wait before */
    uint64_t runs_before;      /* how many were before it */
    trail_name runner;         /* the start function of the goroutine with the longest run */
    int64_t between_ns;        /* from one wait to the next */
    uint64_t woke;             /* others that it woke in between */
    uint64_t created;          /* others that it created in between */
    bool called;               /* the function that sleeps was called by another one with a name */
    uint64_t doubled; /* sleeps twice as long as the one before, which was itself doubled */
    uint64_t until;   /* sleeps until a point in time: a pace that the program keeps */
    bool in_sqlite;   /* a sleep of SQLite, which tries again and again to lock a database */
    bool of_server;   /* for what a server sends over a connection that the program made */
    bool deadline;    /* ended by the time-out of a context of Go */
    uint64_t asked;   /* waits that a timer ended (Go), begun after waking another goroutine */

    /*
     * For sleeps in Go: how many ended as soon as another goroutine was preempted, how late these
     * may have been, the start function of the other goroutine, and its longest run since it leads.
     */
    uint64_t late;
    int64_t late_ns;
    struct blame_most late_by;
    trail_longest late_run;

    /*
     * For answers and time-outs: the start function; whether the request was made in a region; how
     * long the waits took that something in the trace ended; and the place that ended them, in a C
     * program the start function.
     */
    trail_name start;
    bool in_region;
    int64_t answered_ns;
    struct blame_most answerer;
    struct blame_most answered_by; /* of Go's: the start function, */
    struct blame_most slept_at;    /* ... and where it slept meanwhile */
};

/* A goroutine that has waited for something outside. */
struct outside_now {
    size_t row; /* of its present or last wait, + 1 */
    bool waits;
    trail_name wait, place, waiter;
    int64_t begin_ns, end_ns;
    int64_t exec_ns; /* its exec_ns when its last wait ended */
    uint64_t woke, created;
    uint64_t ends;    /* of its waits, in all rows */
    int64_t slept_ns; /* by its last sleep, if it sleeps in this row again and again; else 0 */
    uint64_t doubled; /* how many sleeps in a row were twice as long as the one before */
};

/* Call outside_init. */
struct outside {
    struct intern keys; /* the number is the index in `rows`, + 1 */
    struct outside_row *rows;
    size_t count, capacity;
    struct objects now; /* of goroutines: struct outside_now */
};

/* Loops over the rows. */
#define OUTSIDE_EACH(row, outside)                                                                 \
    EACH(const struct outside_row, row, (outside)->rows, (outside)->count)

void outside_init(struct outside *outside);
void outside_free(struct outside *outside);

/* Drops what was counted. */
void outside_clear(struct outside *outside);

/* A wait that begins, after the goroutine ran for `exec_ns` in all. */
struct outside_wait {
    int64_t goroutine, begin_ns, exec_ns;
    enum wire_wait kind;
    trail_name wait, function, place;
    trail_name caller; /* of a sleep: the program's function that called; 0: none */
    trail_name waiter; /* start function */
    bool in_sqlite, of_server, deadline;
    bool called; /* the caller has a name */
};

/* Returns false if out of memory. */
bool outside_begin(struct outside *outside, const struct outside_wait *wait);

/*
 * The wait of the goroutine has ended, if it was one of these. `waker`: the goroutine that ended
 * it, or NULL. Returns false if out of memory.
 */
bool outside_end(struct outside *outside, int64_t goroutine, int64_t now, int64_t exec_ns,
                 const struct goroutine *waker);

/* The last wait of the goroutine was a sleep until a point in time. */
void outside_was_until(struct outside *outside, int64_t goroutine);

/* The goroutine waits for something else. */
void outside_break(struct outside *outside, int64_t goroutine);

/* The goroutine has woken another one. */
void outside_woke(struct outside *outside, int64_t goroutine);

/* The goroutine has created another one. */
void outside_created(struct outside *outside, int64_t goroutine);

/* How long after a time the last sleep of the row ended; negative: before it. */
int64_t outside_slept_on_ns(const struct outside_row *row, int64_t time_ns);

/* The goroutine has ended. */
void outside_forget(struct outside *outside, int64_t goroutine);
