/*
 * When a thread was on a CPU, beside its ops: the kernel's switches in order of time.
 *
 * The program's clock and the kernel's differ by about a microsecond, in either direction. So an op
 * and a switch are not ordered by their times alone, but by the rule that a thread that is off its
 * CPU does nothing. An op between a switch out and the next switch in is moved to the nearer one:
 * before the switch out, as the beginning of the wait in which the thread was switched out, or
 * after the switch in, as its end. Only the wait for the mutex of a condition variable may begin
 * while the thread is off: it begins when another thread gives the signal.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collect/faults.h"
#include "collect/switch_cost.h"
#include "collect/switches.h"

struct collect;
struct op;
struct thread;

struct cpu_switch {
    uint64_t time; /* ticks */
    int64_t ns;    /* of the kernel's record; 0: there is none */
    enum switch_kind kind;
    struct fault fault; /* for SWITCH_FAULT */
};

/* A thread's switches. */
struct oncpu {
    struct cpu_switch *at; /* not yet taken by the model: [first, first + count) */
    size_t first, count, room;
    struct switch_cost cost;
    uint64_t owed; /* ticks of the cost of switches that could not be applied to any switch yet */
    int64_t newest_ns; /* of the newest record of a switch, taken by the model or not */
    bool newest_out;   /* ... it is a switch out, of the thread's own will */
    bool off;          /* off its CPU, since off_time */
    uint64_t off_time;
    uint64_t woken_at; /* when it was last woken or put on a CPU */
    /* Moments that are counted but not shown. Times in ns; -1: not in one. */
    int64_t on_since;  /* on a CPU within a wait */
    int64_t on_ns;     /* ... so far in this wait */
    int64_t off_since; /* off the CPU for a moment */
    bool preempted;    /* ... because it was preempted */
    bool woken;        /* the thread is ready as soon as its release is written */
    bool over;         /* the wait of the call that it is in has ended */
    bool handles; /* a signal handler has acted within a wait, and the thread has not slept since */
};

/*
 * Spans in which records were lost or not made, the newest last; in an open span the end is
 * UINT64_MAX. Ticks.
 */
#define LOST_SPANS 64
struct lost_spans {
    struct lost_span {
        uint64_t begin, end;
    } at[LOST_SPANS];
    size_t count;
};

/* The kernel's records that have not been given to a thread yet: they may be earlier than the
 * thread's first record. Owned by oncpu.c. */
struct kernel_switches {
    struct kernel_switch {
        struct switch_record record;
        struct fault fault;
        bool late; /* not given out in this step */
    } * at;
    size_t count, room;
    struct kernel_switch **due; /* to be given out in this step */
    size_t due_room;
    int64_t given_ns; /* all records before this have been given to their threads */
    struct lost_spans lost;
};

/* Whether the kernel's switches show when threads run at `time` (ticks). */
bool oncpu_is_known(const struct collect *c, uint64_t time);

/* MARK: Coming in */

/* Reads the kernel's counts of threads' CPU time that are due; called in each step. */
void oncpu_read_count(struct collect *c);

/* Gives each thread its switches that are earlier than a time. */
void oncpu_feed(struct collect *c, int64_t before_ns);
void oncpu_dispose(struct collect *c);

/* The thread was off its CPU when first seen, at `time` (ticks), in the wait that begins there. */
void oncpu_begins_off(struct collect *c, struct thread *thread, uint64_t time);

/* The waiting thread is ready from `time` (ticks) on. */
void oncpu_is_ready(struct collect *c, struct thread *thread, uint64_t time);

/* The process has executed another program: the remaining kernel records belong to that. */
void oncpu_take_over(struct collect *c, struct collect *former);

/* MARK: Beside the ops */

/* Whether a thread has an op or a switch that has not been written. */
bool oncpu_has_next(const struct thread *thread);

/* Whether the thread's next item is a switch rather than an op; the time of that item. There must
 * be one. */
bool oncpu_is_next(const struct thread *thread);
uint64_t oncpu_next_time(const struct thread *thread);

/* Removes and returns the thread's first switch. There must be one. */
struct cpu_switch oncpu_take(struct thread *thread);

/* Whether the thread's next op may be something that it did not do itself at that time. */
bool oncpu_is_done_by_others(const struct thread *thread);

/* Returns when the thread, which is off its CPU, is put on one, in ns; INT64_MAX: not known. */
int64_t oncpu_next_in(const struct collect *c, const struct thread *thread);

/* Returns until when, at least, the thread stays off its CPU, which it has left at `off_ns`; all
 * records before `read_ns` have been read. */
int64_t oncpu_off_until(const struct collect *c, const struct thread *thread, int64_t off_ns,
                        int64_t read_ns);

/* Whether the thread itself does anything more, as far as is known. */
bool oncpu_does_more(const struct thread *thread);

/* Returns the end of the call that the thread is in; NULL: not known yet. */
const struct op *oncpu_wake(const struct thread *thread);

/* The same if nothing precedes it: anything later may end another call. */
const struct op *oncpu_next_end(const struct thread *thread);

/* Returns the page fault for which the thread has just been switched out; NULL: none, or not known
 * yet. */
const struct fault *oncpu_fault(const struct collect *c, const struct thread *thread);

/* Whether the thread, which is off its CPU, is put on one without a record of its wake-up. */
bool oncpu_lacks_waking(const struct thread *thread);

/* Returns how long the thread has been on a CPU since its next switch, up to `until`, in ticks. */
uint64_t oncpu_on_since(const struct thread *thread, uint64_t until);

/* Returns how long the thread is ready before it waits or ends, in ticks. It was woken at `woken`;
 * 0: it is on a CPU. */
uint64_t oncpu_ready_for(const struct thread *thread, uint64_t woken);

/* Whether the kernel puts the thread on a CPU, now or next, only to end it. */
bool oncpu_is_killed_now(const struct thread *thread);

/* Whether the thread ends within the call that it is in. */
bool oncpu_is_killed(const struct thread *thread);

/* Whether the thread, which is in a call, was cancelled before `time`: sleeping while its stack is
 * unwound is another wait. */
bool oncpu_is_unwound(const struct thread *thread, uint64_t time);

/* Whether a signal handler acts before the call's end. */
bool oncpu_is_interrupted(const struct thread *thread);

/* Whether a thread that is switched in within a call, now or next, continues to the end of the
 * call. */
bool oncpu_is_wake(const struct thread *thread);
