/*
 * The roster: a record for each thread that uses the library, in memory that stays.
 *
 *   free - roster_take -> being set up - roster_enter -> in use - roster_leave -> roster_release -> free
 *
 * Threads move their records without a lock, and a record contains the first buffers of its thread,
 * which stay in it until the generation ends. So neither the first call of a thread nor its end
 * waits for another thread. The thread that starts, stops and ends generations visits each record
 * under the lock of its M, which its thread takes to leave: a visitor sees neither a record that is
 * being set up nor a partial write. docs/models/roster.pml models this.
 */
#pragma once

#include "tracer/tracer.h"

/*
 * What the library owns of a thread: its inner M, which stays valid whatever happens to the host's
 * memory; an M in place of the host's, if it has none; and a goroutine and a P of its own. Aligned
 * to 128 bytes, because it is written at every event and processors fetch lines of 64 bytes in
 * pairs.
 */
struct trail_own_thread_ {
    _Alignas(128) trail_m m; /* first, because a pointer to an inner M is cast to this struct */
    trail_m outer;
    trail_p p;
    trail_g g;
    const trail_m *given; /* the host's M with which it was started; only its address is used */
    bool has_proc;        /* p is registered */
    uint32_t index;       /* in the roster */
    uint32_t next_free;   /* atomic: index + 1 of the next free record; 0: none */
    /* The first buffers of its writers: quiet threads need no others. v1: the first is its P's. */
    _Alignas(64) uint8_t buffers[4][BUFFER_MIN];
};

/* Returns a free record, perhaps with buffers that an ended thread has filled; NULL: no memory. */
struct trail_own_thread_ *roster_take(void);

/*
 * Reserves addresses for enough records that thousands of threads may begin at once; if each mapped
 * memory, they would wait for one another in the kernel.
 */
void roster_prepare(void);

/* Makes a record visible to visitors; all its fields must be set. */
void roster_enter(struct trail_own_thread_ *own);

/* Makes it invisible again. The lock of its M is held. */
void roster_leave(struct trail_own_thread_ *own);

/* Frees a record that has left. */
void roster_release(struct trail_own_thread_ *own);

/*
 * Returns the next M in use, from index *at on, and advances *at; NULL: none. Threads may enter and
 * leave at any time: only atomic fields may be read.
 */
trail_m *roster_next(uint32_t *at);

/* Call `visit` under the lock of each M: of those in use, and of all. */
void roster_visit(void (*visit)(trail_m *m, void *arg), void *arg);
void roster_visit_all(void (*visit)(trail_m *m, void *arg), void *arg);

/* Forgets all threads except the one of `m`, which may be NULL, and everything written. */
void roster_after_fork(trail_m *m);
