/*
 * Pipes, socket pairs, eventfds and epoll sets of the process: which threads wait at them, and
 * which reads and writes wake those.
 *
 *   of_descriptor[fd] -> end - peer -> end        a pipe's or pair's ends have each other; an eventfd itself
 *                         | waiters: threads that have waited here
 *                         ` sets: epoll sets that it is in, which are ends, too
 *
 * An end has a number that is never reused (SHM_DESCRIPTOR, shm.h); duplicated descriptors share
 * it. A thread that waits at an end enters its index into the end's list once; whether it currently
 * waits is in its slot of the area, as for any call. So a read that does not wait pays a load and a
 * branch. A write reads the slots of those few threads and records a release only if one of them
 * waits. An end with more threads than the list holds is a crowd: every write to it is recorded as
 * a release.
 *
 * Descriptors are registered where they are made. Inherited descriptors, and those made without the
 * C library, are unknown, and waits for them have no waker. If other processes are recorded as
 * well, all pipes and sockets have an identity that both sides can compute (board.h); it is
 * determined when a descriptor is first used, and for the ends that are known already just before
 * the process first makes another. FIFOs, whose ends are opened separately, have one in
 * any case once an open has waited or had O_NONBLOCK.
 */
#pragma once

#include "preload/call.h"

#define DESCRIPTORS 16384 /* higher descriptors are not tracked */
#define ENDS        4096  /* end 0 is none */
#define END_WAITERS 8
#define END_SETS    2

_Static_assert(DESCRIPTORS == SHM_DESCRIPTORS, "one limit");

/*
 * Index of the descriptor's end; 0: unknown. Written where descriptors are made and closed; the
 * program orders these.
 */
extern uint16_t of_descriptor[DESCRIPTORS] __attribute__((visibility("hidden")));

ALWAYS unsigned descriptor_end(int fd)
{
    return LIKELY((unsigned)fd < DESCRIPTORS) ? of_descriptor[fd] : 0;
}

/* Whether a descriptor without an end is known to be private to this process. */
extern bool descriptor_is_plain[DESCRIPTORS] __attribute__((visibility("hidden")));

/* Whether the process has opened FIFOs, which are tracked even in a recording of one process. */
extern bool descriptor_fifos __attribute__((visibility("hidden")));

/*
 * Whether the descriptor (or -1) refers to a FIFO, whose other end may be in this process. If so,
 * FIFOs are tracked from now on. Keeps errno if the descriptor is open.
 */
bool descriptor_is_of_fifo(int fd);

/* Finds the end of a descriptor that other processes may share; 0: unknown. */
unsigned descriptor_look(int fd);

/* The same for a descriptor on first use; only for FIFOs if one process is recorded. */
unsigned descriptor_first_used(int fd);

/* Like descriptor_end, for a descriptor that is being used rather than closed or duplicated. */
ALWAYS unsigned descriptor_used(int fd)
{
    unsigned end = descriptor_end(fd);
    if (LIKELY(end || !(board_of_several | descriptor_fifos) || (unsigned)fd >= DESCRIPTORS ||
               descriptor_is_plain[fd]))
        return end;
    return descriptor_first_used(fd);
}

/* MARK: Reading and writing */

/*
 * Called before a read from an end, which wakes threads that wait to write to its peer. Returns the
 * object of a wait.
 */
uint64_t end_reads(unsigned end, const struct unwind_start *caller);
/* The same for a write, which wakes threads that read from its peer, also by poll or epoll_wait. */
uint64_t end_writes(unsigned end, const struct unwind_start *caller);

ALWAYS uint64_t descriptor_reads(int fd, const struct unwind_start *caller)
{
    unsigned end = descriptor_used(fd);
    if (LIKELY(!end))
        return 0;
    struct unwind_start start = *caller;
    return end_reads(end, &start);
}

ALWAYS uint64_t descriptor_writes(int fd, const struct unwind_start *caller)
{
    unsigned end = descriptor_used(fd);
    if (LIKELY(!end))
        return 0;
    struct unwind_start start = *caller;
    return end_writes(end, &start);
}

/* A signalfd was made for these signals, or `changed` to them. */
void descriptor_of_signals(int fd, uint64_t signals, bool changed);

/* MARK: Waiting for several */

/* Called before poll or select: the calling thread may wait at the descriptor. */
void descriptor_polled(int fd);
/* Called for a readable descriptor after a poll that blocked. True: a release ended the wait. */
bool descriptor_ready(int fd, struct call *call);
/* Called before epoll_wait: the calling thread may wait at the shared descriptors in the set. */
void descriptor_set_polled(int set);
/* Called after an epoll_wait that blocked. False: none of the events belongs to a known end. */
bool descriptor_in_events(int set, const struct epoll_event *events, int count, struct call *call);

/* MARK: Connections */

/* Called when a socket gets a peer, perhaps a new one; `made`: connect(2) has succeeded, or is in
 * progress. */
void descriptor_connected(int fd, bool made);

/* Registers one end of a connection whose other end is not known yet; joins two such ends. */
void descriptor_half(int fd);
void descriptors_meet(int fd, int other);

/* MARK: Life */

/*
 * descriptor_new forgets an earlier descriptor whose close was missed; the other precedes a close.
 */
void descriptor_new(int fd);
void descriptor_closed(int fd, const struct unwind_start *caller);

/* Called before the process makes another, which inherits its descriptors. */
void descriptors_inherited(void);

/* Called when the process exits, which closes its ends. */
void descriptors_exit(const struct unwind_start *caller);

/* Forgets all ends, which may have changed unnoticed. No wrapper may be running. */
void descriptors_forget(void);
