/*
 * The live heap over time: by how much the threads' counters changed, and when. Most changes are
 * found by reading the counters in each step; quick and large ones come as records with exact
 * times. They are sorted together, and written between the ops by time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct collect;
struct thread;

/* The live heap grew, or shrank if negative, by `bytes`. */
struct heap_move {
    uint64_t time; /* ticks */
    int64_t bytes;
};

/* Owned by heap.c. */
struct heap {
    struct heap_move *moves;   /* changes that are not written yet, in order of time */
    size_t first, count, room; /* moves[first], up to moves[count] */
    int64_t rest;              /* the part of the area's rest that is already among the moves */
    int64_t live;
    int64_t written; /* the value in the last event; -1: none in this generation */
    int64_t share;   /* of the trace's heap, which is the sum over its programs */
};

/* Takes a value of the thread's counter, `bytes` at `time`. */
void heap_take(struct collect *c, struct thread *thread, uint64_t time, int64_t bytes);

/*
 * Takes a slot's counter, read as `bytes` no earlier than `time` and before the records of its
 * thread.
 */
void heap_look(struct collect *c, struct thread *thread, uint64_t time, int64_t bytes);

/* Takes the area's counter of bytes that belong to no thread. */
void heap_look_at_rest(struct collect *c);

/* Called after a step's last move: sorts the moves. */
void heap_sort(struct collect *c);

/* Returns whether the moves before `before` need an event: *time is its time in ticks (0: now),
 * *bytes the trace's live heap then. */
bool heap_next(struct collect *c, uint64_t before, uint64_t *time, uint64_t *bytes);

/* Called when a generation begins, which has no heap event yet. */
void heap_begin_generation(struct collect *c);

/* The program has ended: the trace continues without its heap. */
void heap_end(struct collect *c);

void heap_dispose(struct collect *c);
