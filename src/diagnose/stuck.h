/*
 * Stuck: goroutines that wait for a lock when the trace or the window ends, the holders, and cycles
 * of goroutines that wait for each other.
 *
 * Go's traces do not record holders, nor which lock or channel a goroutine waits for: such a wait
 * has its place only.
 */
#pragma once

#include <trail/analyze.h>

#include "analyze/goroutines.h"
#include "base/idmap.h"
#include "wire/waits.h"

/* What a goroutine waits for; a lock, or an object of another kind that has a name. */
enum stuck_for {
    STUCK_LOCK,
    STUCK_CONDITION,
    STUCK_SEND,
    STUCK_POOL,  /* in Go, something from a pool that a package keeps */
    STUCK_JOIN,  /* the exit of `holder` */
    STUCK_READ,  /* a pipe */
    STUCK_WRITE, /* room in a pipe or socket */
    STUCK_CHILD, /* the end of a process */
};

/* A goroutine that waits at the end for a lock, or for what only another goroutine ends. */
struct stuck_wait {
    int64_t goroutine, begin_ns, ns;
    trail_name name;   /* its start function */
    trail_name kind;   /* of the lock: "mutex"; 0: only the place is known, as in Go's traces */
    trail_name object; /* "stats_mu" */
    trail_name place;  /* "main.work (main.go:42)", where `kind` is 0 */
    enum stuck_for wanted;
    bool can_be_held; /* a thread may hold what it waits for, as far as is known */
    /* No other wait at the place has ended since this one began (of `still`: at any time). */
    bool unmoved;
    /* Only of `still`: its own kind ended such waits before; and where others wait for its
     * condition variable, 0: nowhere. */
    bool for_own;
    trail_name other_place;
    int64_t holder; /* TRAIL_NONE: unknown */
    trail_name holder_name;
    bool inferred;         /* the holder is, by the variables in its stack */
    bool ended;            /* ... has ended without a release */
    bool by_use;           /* ... is, as the only one seen to use the other end of the pipe */
    bool by_owner;         /* ... is known by the lock itself: its hold's start is not recorded */
    trail_name signalled;  /* where its condition was signalled in vain before; 0: not known */
    trail_name woke_other; /* where a wait of another thread for the same was ended meanwhile */
    trail_name read_since; /* where others took the rwlock to read meanwhile; 0: not known */
    int64_t creator;       /* if that waits for a WaitGroup; else TRAIL_NONE */
    trail_name creator_name, creator_place;
    /*
     * For a lock in Go: the ID of a goroutine that waits at a channel for what only goroutines of
     * this kind have done so far, or TRAIL_NONE.
     */
    int64_t asks;
    trail_name asks_name, asks_place;
    int64_t asks_ns;
    bool asks_sends;  /* it waits to send, else to receive */
    bool asks_unseen; /* it is the only one that waits to send; its peers were hardly seen */
    /* The processes that alone can end it; NULL: not known. Valid until the window has ended. */
    const trail_recorded *ends;
    bool can_go;   /* known to depend on more than waits that never end */
    size_t next;   /* index of the holder's wait; SIZE_MAX: it waits for no lock */
    size_t circle; /* 0: none; else the number of its cycle */
};

/* A goroutine that waits at the end for a WaitGroup, and those that it, or its creator, created
 * last. */
struct stuck_group {
    int64_t goroutine, begin_ns, ns;
    int64_t quiet_ns;             /* how long it has waited without any of them ending */
    trail_name name, place;       /* its start function, and where it waits */
    trail_name start, created_at; /* the same of the others */
    uint64_t created, ended;
    int64_t left;  /* one that has not ended; TRAIL_NONE: all have */
    uint64_t stay; /* members left that wait forever; if any, `left` is one of them */
    bool sleeps;
    /*
     * The members left wait for what only the goroutine that waits has done so far: to receive what
     * it sends, or for a sync.Cond.
     */
    bool receive;
    bool own;        /* ... for what only they have sent so far */
    int64_t left_ns; /* how long that one has waited */
    trail_name left_name, left_reason, left_place;
};

struct stuck {
    struct trail_analysis *analysis;
    struct waits *waits_at; /* for the places; NULL: not requested */
    const struct holders *holders;
    struct stuck_wait *waits; /* by goroutine; made at the end */
    size_t count, capacity;
    struct idmap ends;   /* goroutine -> the row about its wait */
    struct idmap wakers; /* kinds of goroutines that have ended waits of others */
    size_t circles;
    int64_t last_end_ns; /* when the last goroutine ended */
    int64_t still_ns;    /* for how long every goroutine has waited, and none has ended */
    /*
     * At the end every goroutine waits for another one: the longest wait for what no goroutine is
     * known to hold, and another goroutine's wait for that one's exit.
     */
    bool has_still, has_joiner;
    bool ticks;        /* ... but for tickers: see stuck_is_ticker */
    bool ticks_beside; /* the same of `circles`, as far as rows of the recorder decide */
    struct stuck_wait still, joiner, main; /* `main`: goroutine 1; otherwise zero */
    bool has_group;
    struct stuck_group group; /* of the groups that seem never to end, the one waiting longest */
};

/* Whether it is for a lock of Go at which no wait has ended since it began. */
static inline bool stuck_is_at_lock_of_go(const struct stuck_wait *wait)
{
    return wait->kind == 0 && wait->can_be_held && wait->unmoved;
}

/* The order of `waits`. */
int stuck_by_goroutine(const void *a, const void *b);

/*
 * Whether the goroutine only waits for time to pass, at the end as well, does little in between and
 * has woken no other: a heartbeat or watchdog. It goes on even if all others wait forever.
 */
bool stuck_is_ticker(const struct stuck *stuck, const struct goroutine *g, int64_t now);

/* MARK: Waits that never end (stuck_endless.c) */

/* Takes the rows, before the waits of `stuck` are made. Returns false if out of memory. */
bool stuck_endless_take(struct stuck *stuck, int64_t now);

/* Returns the row about the wait of a goroutine; NULL: none. */
const trail_recorded *stuck_endless_ends(const struct stuck *stuck, enum wire_wait kind,
                                         int64_t goroutine);

/*
 * Marks the waits that can go on. One that cannot, and has a row, is linked to a wait that keeps it
 * from going on, in a process with the other end. Returns false if out of memory.
 */
bool stuck_endless_find(struct stuck *stuck, int64_t now);
