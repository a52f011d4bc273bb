/*
 * Pool: what the threads of one start function did, cut into pieces of work, so that more or fewer
 * of them can do it.
 *
 * A chain is cut where its thread holds no lock and is in no region or task: before it waits, and
 * after it has woken another thread, released a lock or ended a region or task. A piece can be
 * taken when the wait with which it begins, or the last one that another piece of its thread begins
 * with, has ended: a queue that was waited for was empty then. The workers of a replay take the
 * pieces in the order in which they began in the trace. What a thread did at its end (it wakes the
 * one that joins it) is done when all pieces are.
 */
#pragma once

#include "analyze/chains.h"

/* A part of the chain of a thread. */
struct pool_piece {
    uint64_t first, count; /* steps */
    int64_t begin_ns;
    uint32_t wait; /* after which it can be taken; CHAIN_NONE: from the start on */
    uint32_t next; /* the next piece with that wait, + 1 */
};

struct pool {
    trail_name name;                  /* of the start function; 0: there is no pool */
    size_t members;                   /* threads in the trace */
    bool decides;                     /* one of them is the thread that decides the end */
    struct pool_piece *pieces, *ends; /* ends: of the members' chains */
    size_t count, end_count, capacity, end_capacity;
    uint32_t *by_wait; /* number of the first piece that can be taken after a wait, + 1 */
    /* While a replay runs. */
    uint32_t *offered; /* a heap of numbers of pieces that can be taken */
    size_t offered_count, taken, next_end;
    size_t busy; /* workers that have a piece */
};

/* Of the threads with this start function. Returns false if out of memory; free it even then. */
bool pool_make(struct pool *pool, const struct chains *chains, trail_name name);
void pool_free(struct pool *pool);

/* The piece can be taken. */
void pool_offer(struct pool *pool, size_t piece);

/* The wait has ended. Returns whether pieces can be taken now that could not before. */
bool pool_wait_ends(struct pool *pool, uint32_t wait);

/* Returns what a worker does next, NULL: nothing now. `had`: it has just finished a piece. */
const struct pool_piece *pool_next(struct pool *pool, bool had);

/* Whether all pieces are done. */
bool pool_is_done(const struct pool *pool);
