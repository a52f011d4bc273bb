/*
 * Threads that annotate or create a goroutine without running one on a P: in a system call, between
 * two goroutines, without a P, or not announced at all. Events before and after the call borrow
 * what readers require for an event (§6.5):
 *
 *   the thread          before                                           after
 *   in a system call,   the call ends (v1: continues)                   it begins again
 *   with its P
 *   the same, P lost    own P starts; call ends as blocked; G starts     call begins; own P stops
 *                       (v1: GoSysExit, GoStart)                         (v1: GoSysCall, GoSysBlock)
 *   no goroutine        own P starts; own G is created or woken, starts  own G waits; own P stops
 *
 * The P starts only if the thread holds none. Own: the library's, one for each thread.
 *
 * A thread that is not announced holds its own P and is in a system call with its own goroutine,
 * like a foreign thread in Go, in code unknown to the trace. In v2 that suffices for tasks and
 * logs. While it has a region open, it runs.
 */
#pragma once

#include "tracer/event.h"

/* Bits of trail_m.borrowed_. */
enum {
    BORROWED_PROC = 1,      /* its own P */
    BORROWED_GOROUTINE = 2, /* its own goroutine */
    BORROWED_CALL = 4,      /* out of a system call */
    BORROWED_IDLE = 8,      /* v1: ... in which readers take its P for idle */
    BORROWED_LOST = 16,     /* v1: ... without a P */
    BORROWED_LOCK = 32,     /* the lock of its P */
};

/*
 * Lets the thread run a goroutine on a P in the current section; context_return must follow.
 * Returns `m`. The thread may leave the section and enter a newer one, which changes *generation.
 * NULL, with the section over: nothing is recorded any more, or the thread's state allows no such
 * event (counted as misuse of `what`).
 */
trail_m *context_borrow(trail_m *m, uint64_t *generation, const char *what);

/* The same for a task or log. In v2 an unannounced thread can write these as it is. */
trail_m *context_annotate(trail_m *m, uint64_t *generation, const char *what);

/* The same for a creation, for which a P suffices if the thread has no goroutine. */
trail_m *context_create(trail_m *m, uint64_t *generation, const char *what);

void context_return(trail_m *m, uint64_t generation);

/* Keeps what was borrowed: an unannounced thread begins or ends its outermost region. */
void context_keep(trail_m *m);

/* Returns what was borrowed: the thread has no open region any more. */
void context_pause(trail_m *m, uint64_t generation);

/* Guard the P of a thread in a system call against threads that would take it. */
void context_lock(trail_p *p);
void context_unlock(trail_p *p);

/* MARK: What the library owns of a thread (thread.c) */

/* Return the thread's own P, and its own goroutine, which may not exist yet (TRAIL_G_NONE_). */
trail_p *thread_own_proc(trail_m *m);
trail_g *thread_own_goroutine(trail_m *m);
