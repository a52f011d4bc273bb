/*
 * Pipes, socket pairs, eventfds and epoll sets that the process made: who waits for them, and who wakes whom
 * by reading and writing.
 *
 *   of_descriptor[fd] -> end - peer -> end        a pipe's or pair's ends have each other; an eventfd itself
 *                         | waiters: threads that have waited here
 *                         ` sets: epoll sets that it is in, which are ends, too
 *
 * An end is known by its number, which is given once (SHM_DESCRIPTOR, shm.h); descriptors that were duplicated
 * share it. To wait at it a thread writes its index into the end's list, once; that it waits now is said by its
 * slot in the area, as in any call. So who does not wait pays a load and a branch, and who writes looks into
 * the slots of those few threads, and tells of a release only if one of them waits. An end with more threads
 * than the list holds is a crowd: each write to it tells of a release.
 *
 * Descriptors are learned of where they are made, not by looking at them: those that the process inherited, or
 * made by other means than the C library's functions, are unknown, and nobody is said to wake who waits there.
 */
#ifndef TRAIL_PRELOAD_DESCRIPTORS_H
#define TRAIL_PRELOAD_DESCRIPTORS_H

#include "preload/call.h"

#define DESCRIPTORS 16384 /* higher ones are unknown */
#define ENDS        4096  /* end 0 is none */
#define END_WAITERS 8
#define END_SETS    2

_Static_assert(DESCRIPTORS == SHM_DESCRIPTORS, "one limit");

/* Index of the descriptor's end; 0: unknown. Written by whoever makes and closes it, as the program orders that. */
extern uint16_t of_descriptor[DESCRIPTORS] __attribute__((visibility("hidden")));

ALWAYS unsigned descriptor_end(int fd)
{
    return LIKELY((unsigned)fd < DESCRIPTORS) ? of_descriptor[fd] : 0;
}

/* MARK: Reading and writing */

/* Begins a wait to read at an end, which lets in who waits to write at its peer; the object of the wait. */
uint64_t end_reads(unsigned end, const struct unwind_start *caller);
/* And to write: lets in who waits to read at its peer, or in a poll or epoll_wait for it. */
uint64_t end_writes(unsigned end, const struct unwind_start *caller);

ALWAYS uint64_t descriptor_reads(int fd, const struct unwind_start *caller)
{
    unsigned end = descriptor_end(fd);
    if (LIKELY(!end))
        return 0;
    struct unwind_start start = *caller;
    return end_reads(end, &start);
}

ALWAYS uint64_t descriptor_writes(int fd, const struct unwind_start *caller)
{
    unsigned end = descriptor_end(fd);
    if (LIKELY(!end))
        return 0;
    struct unwind_start start = *caller;
    return end_writes(end, &start);
}

/* Lets in who waits, without writing: the peer is shut down. */
void descriptor_shut(int fd, const struct unwind_start *caller);

/* MARK: Waiting for several */

/* Before a poll or select: this thread is one of those who wait at it. */
void descriptor_polled(int fd);
/* After one that blocked: the descriptor is ready to be read. True: it was let in there by a release. */
bool descriptor_ready(int fd, struct call *call);
/* After an epoll_wait that blocked: false if none of the events is of an end that is known. */
bool descriptor_in_events(int set, const struct epoll_event *events, int count);

/* MARK: Connections */

/* One end of a connection, whose other end is not known yet; and the two ends of one. */
void descriptor_half(int fd);
void descriptors_meet(int fd, int other);

/* MARK: Life */

/* Nothing is known of a new descriptor; where a number was closed unseen, what was known is forgotten. */
void descriptor_new(int fd);
void descriptor_closed(int fd, const struct unwind_start *caller);

#endif
