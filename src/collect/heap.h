/*
 * The live heap over time: by how much the threads' counters moved, and when. Most moves are found
 * by reading the counters in each step; quick and large ones come as records, with their exact
 * times. They are sorted together, and written between the ops of their time.
 */
#ifndef TRAIL_COLLECT_HEAP_H
#define TRAIL_COLLECT_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct collect;
struct thread;

/* The live heap grew by `bytes`, or shrank. */
struct heap_move {
    uint64_t time; /* ticks */
    int64_t bytes;
};

/* Owned by heap.c. */
struct heap {
    struct heap_move *moves;   /* from the first to the last that is not written */
    size_t first, count, room; /* moves[first], up to moves[count] */
    int64_t rest;              /* how much of the area's rest is among the moves */
    int64_t live;
    int64_t written; /* as of the last event; -1: none in this generation */
    int64_t share;   /* of the trace's heap, which is the sum over its programs */
};

/* The thread's counter was `bytes` at a time. */
void heap_take(struct collect *c, struct thread *thread, uint64_t time, int64_t bytes);

/*
 * A slot's counter was read as `bytes`, not before `time`, and then the records of its thread.
 */
void heap_look(struct collect *c, struct thread *thread, uint64_t time, int64_t bytes);

/* The area's counter of what no thread has. */
void heap_look_at_rest(struct collect *c);

/* Called after a step's last move: sorts the moves. */
void heap_sort(struct collect *c);

/* Returns whether the moves before `before` need an event: *time is its time in ticks (0: now),
 * *bytes the trace's live heap at that time. */
bool heap_next(struct collect *c, uint64_t before, uint64_t *time, uint64_t *bytes);

/* A generation begins: it has no event of the heap yet. */
void heap_begin_generation(struct collect *c);

/* The program has ended, and the trace goes on without its heap. */
void heap_end(struct collect *c);

void heap_dispose(struct collect *c);

#endif
