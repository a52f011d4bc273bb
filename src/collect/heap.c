/* Collects changes of the heap's size, and decides which become events: see heap.h. */
#include "collect/heap.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "collect/parts.h"

/* Smaller changes are not written, nor changes of less than a thousandth of the live heap. */
#define LEAST_BYTES 1024

static void add_move(struct collect *c, uint64_t time, int64_t bytes)
{
    struct heap *heap = &c->heap;
    if (!APPEND(heap->moves, heap->room, heap->count, (struct heap_move){time, bytes})) {
        collect_no_memory(c);
        return;
    }
    c->summary.has_heap = true;
    c->trace->has_heap = true;
}

void heap_take(struct collect *c, struct thread *thread, uint64_t time, int64_t bytes)
{
    if (bytes != thread->heap)
        add_move(c, time, (int64_t)((uint64_t)bytes - (uint64_t)thread->heap));
    thread->heap = bytes;
    thread->heap_at = time;
}

void heap_look(struct collect *c, struct thread *thread, uint64_t time, int64_t bytes)
{
    struct area_open open;
    if (bytes == thread->heap)
        return;
    /* A thread in a call has not allocated since the call began, except within the C library. */
    if (area_open_call(c->area, thread->slot, &open) && open.time < time)
        time = open.time;
    /*
     * The records were read after the counter: if one of them is later, the counter is out of date.
     * A record not yet visible has the counter's own value, or a time after `time`.
     */
    if (thread->heap_at <= time)
        heap_take(c, thread, time, bytes);
}

void heap_look_at_rest(struct collect *c)
{
    int64_t rest = area_heap_rest(c->area);
    /* The first value is the live heap when the recording began. */
    if (rest != c->heap.rest)
        add_move(c, c->heap.rest ? ticks_now(c->ticks) : 0,
                 (int64_t)((uint64_t)rest - (uint64_t)c->heap.rest));
    c->heap.rest = rest;
}

static int by_time(const void *a_, const void *b_)
{
    const struct heap_move *a = a_, *b = b_;
    return a->time < b->time ? -1 : a->time > b->time;
}

void heap_sort(struct collect *c)
{
    struct heap *heap = &c->heap;
    if (heap->count == 0)
        return;
    heap->count -= heap->first;
    memmove(heap->moves, heap->moves + heap->first, heap->count * sizeof heap->moves[0]);
    heap->first = 0;
    qsort(heap->moves, heap->count, sizeof heap->moves[0], by_time);
}

static bool is_worth_writing(const struct heap *heap)
{
    int64_t least = heap->written / 1024 > LEAST_BYTES ? heap->written / 1024 : LEAST_BYTES;
    return heap->written < 0 || heap->live - heap->written >= least ||
           heap->written - heap->live >= least;
}

/* Returns the sum, limited to what a program can have, so that sums do not overflow. */
static int64_t sum_of(int64_t live, int64_t bytes)
{
    const int64_t most = INT64_MAX / 4;
    int64_t sum;
    if (__builtin_add_overflow(live, bytes, &sum) || sum > most || sum < -most)
        return bytes < 0 ? -most : most;
    return sum;
}

/* Updates the program's share of the trace's heap, of which there is only one. */
static void write_share(struct collect *c, int64_t bytes)
{
    c->trace->heap = sum_of(c->trace->heap, bytes - c->heap.share);
    c->heap.share = c->heap.written = bytes;
}

bool heap_next(struct collect *c, uint64_t before, uint64_t *time, uint64_t *bytes)
{
    struct heap *heap = &c->heap;
    bool due = heap->written < 0 && heap->live > 0;
    for (*time = 0; !due && heap->first < heap->count && heap->moves[heap->first].time < before;) {
        const struct heap_move *move = &heap->moves[heap->first++];
        *time = move->time;
        heap->live = sum_of(heap->live, move->bytes);
        due = is_worth_writing(heap);
    }
    if (heap->first == heap->count)
        heap->first = heap->count = 0;
    if (!due)
        return false;
    write_share(c, heap->live > 0 ? heap->live : 0);
    if (heap->written > c->summary.heap_peak)
        c->summary.heap_peak = heap->written;
    *bytes = (uint64_t)c->trace->heap;
    return true;
}

void heap_begin_generation(struct collect *c)
{
    c->heap.written = -1;
}

void heap_end(struct collect *c)
{
    c->heap.first = c->heap.count = 0;
    write_share(c, 0);
}

void heap_dispose(struct collect *c)
{
    free(c->heap.moves);
}
