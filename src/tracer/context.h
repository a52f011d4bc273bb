/*
 * Threads that annotate or create a goroutine without running one on a P: in a system call, between
 * two goroutines, without a P, or not announced at all. What readers require for an event (§6.5) is
 * borrowed for the call, by events before and after it:
 *
 *   the thread          before                                           after
 *   in a system call,   the call ends (v1: goes on)                      it begins again
 *   with its P
 *   the same, P lost    own P starts; call ends as blocked; G starts     call begins; own P stops
 *                       (v1: GoSysExit, GoStart)                         (v1: GoSysCall, GoSysBlock)
 *   no goroutine        own P starts; own G is created or woken, starts  own G waits; own P stops
 *
 * The P starts only if the thread holds none. Own: the library's, one for each thread.
 *
 * A thread that is not announced holds its own P and is in a system call with its own goroutine: in
 * code that the trace knows nothing of, as a foreign thread of Go's. In v2 that is sufficient for
 * tasks and logs, without further events. It runs while it has a region open.
 */
#ifndef TRAIL_TRACER_CONTEXT_H
#define TRAIL_TRACER_CONTEXT_H

#include "tracer/event.h"

/* Bits of trail_m.borrowed_. */
enum {
    BORROWED_PROC = 1,      /* its own P */
    BORROWED_GOROUTINE = 2, /* its own goroutine */
    BORROWED_CALL = 4,      /* out of a system call */
    BORROWED_IDLE = 8,      /* v1: of which readers do not know that it has the P */
    BORROWED_LOST = 16,     /* v1: which has no P */
    BORROWED_LOCK = 32,     /* the lock of its P */
};

/*
 * Lets the thread run a goroutine on a P, in the current section; context_return follows. Returns
 * `m`. The thread may leave the section meanwhile and enter a newer one: *generation changes. NULL:
 * nothing is recorded any more, or the state of the thread allows no such event (counted as misuse
 * of `what`); the section is over.
 */
trail_m *context_borrow(trail_m *m, uint64_t *generation, const char *what);

/* The same for a task or log, which a thread that is not announced may write in v2 as it is. */
trail_m *context_annotate(trail_m *m, uint64_t *generation, const char *what);

/* A P is sufficient if the thread has no goroutine. */
trail_m *context_create(trail_m *m, uint64_t *generation, const char *what);

void context_return(trail_m *m, uint64_t generation);

/* A thread that is not announced begins or ends its outermost region: it stays as it is now. */
void context_keep(trail_m *m);

/* It has no region open any more. */
void context_pause(trail_m *m, uint64_t generation);

/* Guards the P of a thread in a system call, against other threads that take it. */
void context_lock(trail_p *p);
void context_unlock(trail_p *p);

/* MARK: What the library owns of a thread (thread.c) */

/* Returns the thread's own P, and its own goroutine, which may not exist yet (TRAIL_G_NONE_). */
trail_p *thread_own_proc(trail_m *m);
trail_g *thread_own_goroutine(trail_m *m);

#endif
