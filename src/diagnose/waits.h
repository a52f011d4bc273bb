/*
 * Waits: how long goroutines were ready before they ran, and how long each wait took, by start
 * function; and where locks and condition variables are waited for.
 *
 * A place is the first frame of a stack that is not of the runtime or of the lock itself. Stacks
 * are looked up once per generation, and only for waits for locks and condition variables.
 */
#pragma once

#include <trail/analyze.h>

#include "analyze/activity.h"
#include "analyze/blame.h"
#include "analyze/futexes.h"
#include "analyze/idle.h"
#include "analyze/part.h"
#include "base/objects.h"
#include "diagnose/families.h"
#include "diagnose/outside.h"

/* What is waited for at a place. */
enum place_kind { PLACE_OTHER, PLACE_LOCK, PLACE_CONDITION, PLACE_GROUP, PLACE_ONCE };

/* Where locks, condition variables or a WaitGroup are waited for. Lives as long as the analysis. */
struct place {
    trail_name name; /* "main.work (main.go:42)" */
    trail_name lock; /* the wait's name, "mutex stats_mu"; 0: unknown, or not always the same */
    bool locks_differ;
    enum place_kind kind;
    uint64_t waits; /* that ended */
    uint64_t woken; /* ... by another goroutine, as far as that is known */
    int64_t ns;
    trail_longest longest;
    uint64_t futile;               /* waits that began again at once, without work in between */
    struct blame_union futile_for; /* while one was woken for that */
    uint64_t waiters;              /* current number */
    uint64_t most_waiters;
    trail_name waiter; /* start function of the last that was woken in vain */
    int64_t left_ns;   /* when the last wait ended */
    int64_t left_by;   /* the goroutine that ended it */
    int64_t serial_ns; /* with a waiter here and at most one goroutine working */
    int64_t serial_at; /* activity.serial_ns when the first of the current waiters came */
};

/* A goroutine that waits at a place, or was woken there. */
struct parked {
    struct place *place;    /* where it waits now */
    struct place *woken_at; /* where it was woken, until it works or waits again */
    int64_t woken_ns;       /* when */
    int64_t woken_exec_ns;  /* exec_ns of the goroutine at its wake-up */
    bool woken_together;    /* with others, by one goroutine */
    trail_stack stack;      /* of the wait, where its name is recorded; else 0 */
    int64_t serial_at;      /* activity.serial_ns when the wait began */
};

/* What ended another goroutine's wait for a condition variable. */
struct signal {
    int64_t ns;
    trail_name place, function;
};

/* A condition variable of a C program. */
struct condition {
    trail_name wait; /* "condition variable queue_ready" */
    uint64_t signals;
    struct signal last;
    uint64_t timed_out;    /* waits */
    uint64_t missed;       /* of these: exactly one signal came meanwhile */
    uint64_t rounds;       /* ... how many different signals these were */
    struct signal missing; /* the last of these */
    trail_name at;         /* where the last of these waits was */
    trail_longest longest; /* from such a signal to the time-out */
    struct blame_union late;
};

/* A goroutine that waits for a condition variable, or has waited and began no other wait since. */
struct condition_wait {
    struct condition *condition;
    uint64_t signals;     /* before the wait */
    struct signal signal; /* the last before its end */
    int64_t end_ns;
    trail_name at;
    bool signalled, missed; /* how it ended; missed: if it timed out */
};

/* An rwlock of a C program. */
struct rwlock {
    uint64_t reads;        /* holds to read that have ended */
    int64_t last_taken_ns; /* when the last of these began */
    int64_t longest_hold_ns;
    int64_t written_ns;          /* when the last hold to write ended */
    trail_name reader, function; /* the place where it was last taken to read, and its function */
    uint64_t waits;              /* to write */
    uint64_t kept_out;           /* of these: others took it to read after they had begun */
    int64_t ns;                  /* ... in all */
    trail_longest longest;
    struct blame_union beyond; /* ... after the longest hold */
    trail_name wait, at;       /* of the last one: "rwlock price_rw", and the place */
    trail_name waiter;         /* its start function */
};

struct wait_group {
    trail_wait_group row;
    trail_wait *waits;
    size_t wait_capacity;
    uint64_t held; /* times that it kept a P for long while others were ready */
    int64_t held_ns;
    trail_longest held_longest;
    uint64_t stuck,
        stuck_early; /* set at the end: blocked for long; of these, created in the first half */
    uint64_t stuck_sends;   /* of these, in Go: they wait to send */
    int64_t stuck_since_ns; /* since when the first of these has been waiting */
    int64_t stuck_goroutine;
    trail_name stuck_for, stuck_at; /* of these: what they wait for, and where; 0: they differ */
    uint64_t most_alive;            /* at once, of those created in the trace */
    trail_name creator; /* start function of a goroutine that created some of these; 0: unknown */
    trail_name created_at; /* where the first of these was created; 0: unknown */
    uint64_t workers;      /* goroutines that ended, how long they ran, and existed */
    int64_t exec_ns, lived_ns;
    trail_longest busiest; /* the one that ran for longest */
    trail_longest life;    /* of that one, from its start to its end */
    int64_t last_end_ns;   /* when the last of them ended */
    uint64_t unseen;       /* waits in the kernel in calls that are not recorded */
    int64_t unseen_ns;
    uint64_t yields;     /* by runtime.Gosched, or sched_yield */
    int64_t yield_ns;    /* of sched_yield: from the first to the last of each series */
    trail_name yield_at; /* ... the function; 0: unknown */
    uint64_t brief;      /* waits in which work is handed over, too short for events */
    int64_t brief_ns;
    trail_name brief_for; /* the title of their kind */
};

/* A goroutine that never waited, but ended short waits of others to send. */
struct spinner {
    trail_name name;
    uint64_t count;
    int64_t goroutine, begin_ns, exec_ns;
};

/* Goroutines of Go that wait forever on a nil channel: the first, and how many there are. */
struct at_nil_channel {
    int64_t goroutine, begin_ns;
    trail_name name, place;
    bool sends;
    uint64_t count;
};

/* The last goroutine of Go that kept a P for long, and was preempted. */
enum { PREEMPTED_PROCS = 64 };
struct preempted {
    int64_t proc, ns, ran_ns, goroutine;
    trail_name name; /* its start function */
};

/* Goroutines that ended long after all others of their family, while a WaitGroup, their exit, or by
 * their creator what they send, was waited for. */
struct straggler {
    trail_name start;          /* start function */
    trail_name created_at, at; /* of the longest: where they were created, and waited for */
    uint64_t times;
    int64_t ns;            /* in all */
    trail_longest longest; /* from the end of the last of the others on */
    trail_name wait;       /* what was waited for then */
};

/* Connections of a Go program. */
struct connections {
    uint8_t *by_stack; /* of each trail_stack: enum connection, + 1; 0: not known yet */
    size_t stack_capacity;
    struct idmap accepts; /* set of goroutines that accept connections */
    struct idmap serves;  /* set of goroutines that such a goroutine created */
    int64_t reply_ns;     /* the last write of one of these, */
    trail_name reply;     /* and where, */
    trail_name reply_by;  /* by a goroutine with this start function, */
    trail_name slept_at;  /* which has slept last at this place; 0: has not, or waited since */
    int64_t slept_since_ns, slept_until_ns;
};

/* How long a function has held a lock, by the logs of its holds. */
struct hold_sum {
    enum wire_wait kind; /* of the lock; NONE: several locks of this name */
    int64_t ns;
};

/* The last hold that a goroutine logged. */
struct last_hold {
    enum wire_wait kind;
    trail_name object;
    trail_place at; /* where it was taken */
    int64_t by;     /* the goroutine that took it */
};

/*
 * A wait of the goroutine that had a lock of a library, which records its owner but no release: it
 * is read while others wait for it.
 */
struct owned {
    int64_t goroutine, begin_ns, end_ns;
    trail_name start, function, place;
};

/*
 * The last waits for locks that ended although another goroutine had the lock: at their time limit.
 * What held it is known when it releases the lock.
 */
enum { GIVEN_UP_MOST = 1024 };
struct given_up {
    struct given_up_wait {
        uint64_t lock;          /* lock_key; 0: it is part of another one */
        struct blame_wait wait; /* or several, one after the other */
    } of[GIVEN_UP_MOST];
    size_t count;
    uint64_t locks; /* a bit for each lock among them, perhaps shared with others */
};

/* A hold of a lock that has ended. */
struct held {
    int64_t goroutine;
    trail_name start, function, place; /* its start function; where the lock was taken */
    int64_t taken_ns;
    int64_t all_ns; /* of all holds of the function so far */
};

/*
 * Pools and semaphores of Go's packages: their users wait for one another in a receive or select.
 */
enum { WAITS_POOL_SQL, WAITS_POOL_SEMAPHORE, WAITS_POOL_HTTP, WAITS_POOLS };
extern const char *const waits_pools[WAITS_POOLS];

/* Where a stack waits for something outside, or sleeps. */
struct wait_place {
    trail_name function, place;
    trail_name caller;      /* of a sleep: the program's function that called it; 0: none */
    trail_name with_caller; /* the place, and the caller's */
    bool called;            /* the caller has a name */
};

/*
 * A function that sleeps, where it does, and a caller. If it has several callers, those count as
 * what sleeps.
 */
struct helper {
    trail_name function, place, caller, by; /* `by`: the caller's place */
};

struct waits {
    struct trail_analysis *analysis;
    struct activity *activity;   /* for its clocks, and the number of waits for locks */
    struct wait_group **by_name; /* NULL where there is none */
    size_t by_name_capacity;
    struct wait_group **items;
    size_t count, capacity;
    struct idmap places; /* name and kind -> struct place */
    struct place **all;
    size_t place_count, place_capacity;
    struct idmap by_stack; /* in this epoch -> struct place */
    uint64_t epoch;
    struct objects parked;          /* of goroutines: struct parked */
    struct objects conditions;      /* of names of waits: struct condition */
    struct objects condition_waits; /* of goroutines: struct condition_wait */
    struct objects rwlocks;         /* of names of objects: struct rwlock */
    struct futexes futexes;
    struct blame blame;
    struct objects hold_sums;  /* of an object's name and a function: struct hold_sum */
    struct objects last_holds; /* of goroutines: struct last_hold */
    struct given_up *given_up; /* NULL before the first */
    struct objects owned;      /* of a lock's kind and name: struct owned */
    struct objects owners; /* of goroutines: the key in `owned` of what each has while it waits */
    struct outside outside;
    struct families families;
    struct connections connections;
    struct objects stragglers;  /* of start functions: struct straggler */
    struct objects wait_places; /* of a stack, and whether it sleeps: struct wait_place */
    struct objects helpers;     /* of a name with the caller: struct helper */
    struct idmap callers; /* function that sleeps -> its caller, + 1; this map: it has several */
    struct idmap blamed_places; /* function and line -> name of the place, as a pointer */
    struct idmap calls; /* goroutine -> name of what it waits for in a system call, as a pointer */
    struct idle idle;   /* the user of a place is the name of the wait's kind */
    struct idmap idle_now;  /* goroutine -> number of the place where it waits now, as a pointer */
    uint64_t watched;       /* goroutines woken at a place that have not worked since */
    struct idmap served;    /* goroutine -> number of short waits to send that it ended last */
    struct idmap busy;      /* goroutine -> for how many microseconds it had work, as a pointer */
    struct spinner spinner; /* the one that ran for longest */
    struct at_nil_channel at_nil_channel;
    struct preempted preempted[PREEMPTED_PROCS]; /* by the P's number, modulo this */
    bool inferred;                               /* a state was, where events are lost */
    bool is_go; /* system calls have the stack that they were called from */
    trail_name network, sync, condition, sleep, send, receive, select, yield,
        collection;                /* reasons */
    trail_name ready;              /* "ready": what a holder without a CPU counts as */
    trail_name pools[WAITS_POOLS]; /* waits_pools */
};

/*
 * Whether it is a wait for another goroutine of a kind with which work or results are handed over.
 */
bool waits_hands_over(const struct waits *waits, trail_name wait);

/* Whether it is a wait for a result that another goroutine makes for it. */
bool waits_for_result(const struct waits *waits, trail_name wait);

/* Returns the name of what a row of blame is about, the same for reading and writing a lock. */
trail_name waits_blamed(struct waits *waits, trail_name wait);

/* Returns the name of the place of a stack, "main.work (main.go:42)"; 0: none. */
trail_name waits_place(struct waits *waits, trail_stack stack);

/* The same of the innermost function on it that belongs to no package of Go's. */
trail_name waits_calling_place(struct waits *waits, trail_stack stack);

/*
 * What the files of the waits share: groups and blame (waits.c), places (waits_places.c), condition
 * variables (waits_conditions.c), rwlocks (waits_readers.c), waits for work (waits_work.c) and for
 * what is outside the program (waits_outside.c). Functions that return bool return false if out of
 * memory, unless their comments say otherwise.
 */

/* MARK: Groups */

/* The slow path of waits_group. */
struct wait_group *waits_make_group(struct waits *waits, trail_name name);

/* Loops over the groups. */
#define GROUPS_EACH(group, waits)                                                                  \
    for (const struct wait_group *group,                                                           \
             *const *group##_at = (const struct wait_group *const *)(waits)->items,                \
                    *const *group##_end = (waits)->count > 0 ? group##_at + (waits)->count         \
                                                             : group##_at;                         \
         group##_at < group##_end && (group = *group##_at, true); group##_at++)

/* Returns the group of a start function, or of named threads of one kind (names_kind); NULL if
 * there is none. */
static inline struct wait_group *waits_find_group(const struct waits *waits, trail_name name)
{
    name = names_kind(&waits->analysis->names, name);
    return name < waits->by_name_capacity ? waits->by_name[name] : NULL;
}

/* Returns the group of a start function; NULL if out of memory. */
static inline struct wait_group *waits_group(struct waits *waits, trail_name name)
{
    name = names_kind(&waits->analysis->names, name);
    if (__builtin_expect(name < waits->by_name_capacity && waits->by_name[name], 1))
        return waits->by_name[name];
    return waits_make_group(waits, name);
}

/* Returns the row of a wait, or of its kind where that is known; NULL if out of memory. */
trail_wait *waits_row(const struct names *names, struct wait_group *group, trail_name wait);

/* MARK: What held it up */

/* Returns the name of a frame's place. */
trail_name waits_name_frame(struct waits *waits, const trail_place *frame);

/* The start function of a goroutine, or the kind of a named thread (names_kind); 0: unknown. */
trail_name waits_start(const struct waits *waits, int64_t id);

/* The wait of `g` at `place` (NULL: elsewhere), which was for `wait`, has ended. */
bool waits_blame(struct waits *waits, const struct goroutine *g, const struct place *place,
                 int64_t serial_at, trail_name wait, const trail_event *event);

/* MARK: Places */

/* Returns the place of a stack, and what is waited for there. 0: no frame of the program. */
trail_name waits_name_place(struct waits *waits, trail_stack_handle stack, enum place_kind *kind);

/* Returns the reason of a wait; of one that began before the trace, the one of its stack. */
trail_name waits_reason(const struct waits *waits, const trail_event *event);

/* A wait begins, or has ended, perhaps at a place. */
bool waits_enter_place(struct waits *waits, const struct goroutine *g, const trail_event *event,
                       trail_name reason);
bool waits_leave_place(struct waits *waits, const struct goroutine *g, const trail_event *event);

/*
 * A goroutine of Go has received what one that it created sends: this may be its result, if it
 * sends nothing more before it ends.
 */
void waits_received(struct waits *waits, const struct goroutine *g, const trail_event *event);
bool waits_sender_ends(struct waits *waits, int64_t goroutine);

/* The goroutine has done some work since it was woken. */
void waits_works(struct waits *waits, int64_t id);

/* The goroutine has woken `g`, or created it. */
void waits_woke(struct waits *waits, const struct goroutine *g, int64_t id);

/* MARK: Condition variables */

/* A wait for `wait` begins, or has ended, perhaps for a condition variable; `at` is its place. */
bool waits_enter_condition(struct waits *waits, const struct goroutine *g, trail_name wait);
void waits_leave_condition(struct waits *waits, const struct goroutine *g, trail_name at,
                           const trail_event *event);

/* The goroutine's last wait timed out. */
void waits_miss_condition(struct waits *waits, int64_t goroutine);

/* MARK: Rwlocks (waits_readers.c) */

/* A wait at that place has ended, perhaps one to write. Returns false if out of memory. */
bool waits_leave_rwlock(struct waits *waits, const struct goroutine *g, trail_name at,
                        const trail_event *event);

/* Returns where others took the rwlock to read for which the goroutine already waits to write; 0:
 * they did not, or it is not known. */
trail_name waits_read_since(const struct waits *waits, const struct goroutine *g);

/* A log of a hold that has ended. Returns false if out of memory. */
bool waits_read_rwlock(struct waits *waits, const trail_event *event);

/* MARK: Work */

/* A wait begins, or has ended, that may be for work. */
bool waits_enter_idle(struct waits *waits, const struct goroutine *g, const trail_event *event);
void waits_leave_idle(struct waits *waits, const struct goroutine *g, int64_t now);

/* The goroutine ends: which of its waits were for work. */
bool waits_judge_idle(struct waits *waits, const struct goroutine *g, int64_t now);

/* A wait to send was ended soon, or late. */
bool waits_count_served(struct waits *waits, const struct goroutine *sender,
                        const trail_event *event);
bool waits_count_late(struct waits *waits, int64_t goroutine);

/* The goroutine ends, which ran for that long. */
void waits_note_spinner(struct waits *waits, const struct goroutine *g, int64_t ran);
bool waits_count_worker(struct waits *waits, const struct goroutine *g, int64_t ran, int64_t now);

/* MARK: Outside */

/* A wait for `wait` begins that may be for something outside. */
bool waits_enter_outside(struct waits *waits, struct goroutine *g, trail_name wait,
                         const trail_event *event);

/* Returns what is known of the place, where several functions of the program call the one that
 * sleeps there; else NULL. */
const struct helper *waits_helper(const struct waits *waits, trail_name place);

/* Returns the name of the place of a sleep, without the caller if it is always the same. */
trail_name waits_sleep_place(const struct waits *waits, trail_name place);

/* Returns where a wait began that is the longest of its place; empty if it is not known. */
trail_string waits_longest_at(const trail_analysis *analysis, const trail_longest *wait);

/* At the end, when all callers are known: names the rows of sleeps. */
void waits_settle_sleeps(struct waits *waits);

/* A wait of Go begins, perhaps for an answer. */
bool waits_enter_answer(struct waits *waits, struct goroutine *g, const trail_event *event);

/* Returns which of waits->pools a wait with this stack is for; 0: none. */
trail_name waits_pool(struct waits *waits, trail_stack stack);
bool waits_is_pool(const struct waits *waits, trail_name wait);

/* Returns the frame of the program that calls Go's packages; of a stack with frames. */
trail_place waits_calling_frame(const struct waits *waits, const struct stack_row *stack);

/* Returns whether a goroutine of Go with this stack waits for the answer to an HTTP request. */
bool waits_asks(struct waits *waits, trail_stack stack);

/* `creator` created the goroutine: one that accepts connections creates those that serve them. */
bool waits_serves(struct waits *waits, int64_t creator, int64_t goroutine);

/* A goroutine that waits for something outside at times goes on. */
bool waits_leave_outside(struct waits *waits, const struct goroutine *g, const trail_event *event);

/*
 * A wait for the lock, a lock_key, ended while another goroutine may have had it. Returns false if
 * out of memory.
 */
bool waits_give_up(struct waits *waits, uint64_t lock, const struct blame_wait *wait);

/* Counts those that ended in a hold of the lock against it. Returns false if out of memory. */
bool waits_blame_given_up(struct waits *waits, uint64_t lock, const struct held *held);

/*
 * The goroutine's wait for something outside has ended: it may have had a library's lock meanwhile.
 */
bool waits_leave_owned(struct waits *waits, const struct goroutine *g, int64_t now);

/* A wait of Go that can be for a timer has ended. */
bool waits_leave_timed(struct waits *waits, struct goroutine *g, const trail_event *event);

/* A system call begins; one that a log announced is a wait. */
bool waits_call_begins(struct waits *waits, struct goroutine *g, const trail_event *event);

/* A system call of Go has ended that took long: it waited for something outside. */
bool waits_go_call_ends(struct waits *waits, const struct goroutine *g, const trail_event *event);
