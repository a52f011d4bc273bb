/*
 * Pipes, socket pairs, eventfds and epoll sets that the process made: which threads wait for them, and which reads and
 * writes wake them.
 *
 *   of_descriptor[fd] -> end - peer -> end        a pipe's or pair's ends have each other; an eventfd itself
 *                         | waiters: threads that have waited here
 *                         ` sets: epoll sets that it is in, which are ends, too
 *
 * An end has a number, which is used once (SHM_DESCRIPTOR, shm.h); duplicated descriptors share it. A thread that waits
 * at an end writes its index into the end's list, once; whether it waits now is in its slot of the area, as for any call.
 * So a read that does not wait pays a load and a branch, and a write reads the slots of those few threads and records a
 * release only if one of them waits. An end with more threads than the list holds is a crowd: each write to it is
 * recorded as a release.
 *
 * Descriptors are registered where they are made. Those that the process inherited, or made by other means than the C
 * library's functions, are unknown, and waits for them have no waker: unless other processes are recorded as well. Then
 * pipes and sockets have an identity that their other ends' processes know, too (board.h), also those that this process
 * made; it is found out when a descriptor is used first. FIFOs, whose ends are opened one by one, have it in any case, once
 * an open of one has waited, or one was opened not to wait (O_NONBLOCK).
 */
#ifndef TRAIL_PRELOAD_DESCRIPTORS_H
#define TRAIL_PRELOAD_DESCRIPTORS_H

#include "preload/call.h"

#define DESCRIPTORS 16384 /* higher descriptors are unknown */
#define ENDS        4096  /* end 0 is none */
#define END_WAITERS 8
#define END_SETS    2

_Static_assert(DESCRIPTORS == SHM_DESCRIPTORS, "one limit");

/* Index of the descriptor's end; 0: unknown. Written where descriptors are made and closed, which the program orders. */
extern uint16_t of_descriptor[DESCRIPTORS] __attribute__((visibility("hidden")));

ALWAYS unsigned descriptor_end(int fd)
{
    return LIKELY((unsigned)fd < DESCRIPTORS) ? of_descriptor[fd] : 0;
}

/* Whether an unknown descriptor was found to be none that other processes have. */
extern bool descriptor_is_plain[DESCRIPTORS] __attribute__((visibility("hidden")));

/* Whether the process has opened FIFOs, whose ends are looked for although no other process is recorded. */
extern bool descriptor_fifos __attribute__((visibility("hidden")));

/*
 * Whether the descriptor, or -1, is of a FIFO, whose other end may be in this process: ends are looked for from then on.
 * Keeps errno if it is open.
 */
bool descriptor_is_of_fifo(int fd);

/* Finds the end of a descriptor of anything that other processes may have; 0: it is unknown. */
unsigned descriptor_look(int fd);

/* The same for a descriptor that is used for the first time: only a FIFO's if no other process is recorded. */
unsigned descriptor_first_used(int fd);

/* The same as descriptor_end for a descriptor that is used, not only closed or duplicated. */
ALWAYS unsigned descriptor_used(int fd)
{
    unsigned end = descriptor_end(fd);
    if (LIKELY(end || !(board_of_several | descriptor_fifos) || (unsigned)fd >= DESCRIPTORS ||
               descriptor_is_plain[fd]))
        return end;
    return descriptor_first_used(fd);
}

/* MARK: Reading and writing */

/* Called before a read at an end, which wakes threads that wait to write at its peer. Returns the object of a wait. */
uint64_t end_reads(unsigned end, const struct unwind_start *caller);
/* The same for a write, which wakes threads that wait to read at its peer, also in poll or epoll_wait. */
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

/* A descriptor was made to read these signals, or `changed`. */
void descriptor_of_signals(int fd, uint64_t signals, bool changed);

/* Called before shutdown(2), which wakes the threads that wait at the peer. */
void descriptor_shut(int fd, const struct unwind_start *caller);

/* MARK: Waiting for several */

/* Called before poll or select: the calling thread may wait at the descriptor. */
void descriptor_polled(int fd);
/* Called after poll or select blocked, for a readable descriptor. True: a release there ended the wait. */
bool descriptor_ready(int fd, struct call *call);
/* Called before epoll_wait: the calling thread may wait at the descriptors in the set that other processes have. */
void descriptor_set_polled(int set);
/* Called after an epoll_wait that blocked. False: none of the events is of a known end. */
bool descriptor_in_events(int set, const struct epoll_event *events, int count, struct call *call);

/* MARK: Connections */

/* A socket has a peer now, perhaps another one. */
void descriptor_connected(int fd);

/* Registers one end of a connection, whose other end is not known yet; joins the two ends of one. */
void descriptor_half(int fd);
void descriptors_meet(int fd, int other);

/* MARK: Life */

/* Called for a new descriptor: forgets the end of an earlier one whose close was not seen; called before a close. */
void descriptor_new(int fd);
void descriptor_closed(int fd, const struct unwind_start *caller);

/* The process exits: its ends will be closed. */
void descriptors_exit(const struct unwind_start *caller);

/* Forgets all ends: they may have changed unseen. No wrapper is called meanwhile. */
void descriptors_forget(void);

#endif
