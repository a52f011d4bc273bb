/* Pool: cuts chains into pieces, and hands these out. */
#include "replay/pool.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/heap.h"
#include "base/order.h"

static inline bool is_earlier(const uint32_t *a, const uint32_t *b)
{
    return *a < *b;
}
HEAP(offer, uint32_t, is_earlier)

/* MARK: Cutting */

/* How many things the thread has begun and not ended that belong to one piece of work. */
static int opens(const struct chain_step *step)
{
    switch ((enum chain_op)step->op) {
    case CHAIN_TAKE:
    case CHAIN_REGION_BEGIN:
    case CHAIN_TASK_BEGIN:
    case CHAIN_GC_BEGIN:
        return 1;
    case CHAIN_RELEASE:
    case CHAIN_REGION_END:
    case CHAIN_TASK_END:
    case CHAIN_GC_END:
        return -1;
    default:
        return 0;
    }
}

static bool is_cut(const struct chain_step *before, const struct chain_step *after)
{
    return before->op == CHAIN_WAKE || before->op == CHAIN_REGION_END ||
           before->op == CHAIN_TASK_END || after->op == CHAIN_WAIT ||
           after->op == CHAIN_REGION_BEGIN || after->op == CHAIN_TASK_BEGIN;
}

/* Returns the time after the step, which begins at `ns`. */
static int64_t time_after(const struct chains *chains, const struct chain_step *step, int64_t ns)
{
    const struct chain_wait *wait;
    switch ((enum chain_op)step->op) {
    case CHAIN_RUN:
    case CHAIN_STALL:
    case CHAIN_DELAY:
    case CHAIN_QUEUE:
        return ns + step->ns;
    case CHAIN_UNTIL:
        return ns > step->ns ? ns : step->ns;
    case CHAIN_WAIT:
        wait = &chains->waits[step->of];
        return wait->end != CHAIN_OPEN ? wait->end_ns : ns;
    default:
        return ns;
    }
}

/* Returns the index of the first of a chain's last steps: those from its last wake-up on, or only its finish, if a wait or
 * an end of a region follows that. */
static uint64_t end_of(const struct chains *chains, const struct chain_thread *thread)
{
    const struct chain_step *steps = chains->steps + thread->first;
    for (uint64_t i = thread->count;
         i > 0 && steps[i - 1].op != CHAIN_WAIT && opens(&steps[i - 1]) == 0; i--)
        if (steps[i - 1].op == CHAIN_WAKE)
            return i - 1;
    return thread->count > 0 ? thread->count - 1 : 0;
}

static bool add(struct pool_piece **pieces, size_t *count, size_t *capacity,
                const struct pool_piece *piece)
{
    if (piece->count == 0)
        return true;
    if (!GROW(*pieces, *capacity, *count + 1))
        return false;
    (*pieces)[(*count)++] = *piece;
    return true;
}

/* Returns the piece that begins with the nth step of the thread. */
static struct pool_piece piece_at(const struct chains *chains, const struct chain_thread *thread,
                                  uint64_t nth, int64_t now)
{
    const struct chain_step *step = &chains->steps[thread->first + nth];
    struct pool_piece piece = {.first = thread->first + nth, .begin_ns = now, .wait = CHAIN_NONE};
    if (nth < thread->count && step->op == CHAIN_WAIT) {
        piece.wait = step->of;
        piece.begin_ns = chains->waits[step->of].end_ns;
    }
    return piece;
}

static bool cut(struct pool *pool, const struct chains *chains, const struct chain_thread *thread)
{
    const struct chain_step *steps = chains->steps + thread->first;
    uint64_t end = end_of(chains, thread);
    int64_t now = thread->begin_ns;
    int open = 0;
    struct pool_piece piece = piece_at(chains, thread, 0, now);
    for (uint64_t i = 0; i < end; i++) {
        open += opens(&steps[i]);
        open = open < 0 ? 0 : open; /* it began before the trace */
        now = time_after(chains, &steps[i], now);
        piece.count++;
        if (i + 1 < end && (open > 0 || !is_cut(&steps[i], &steps[i + 1])))
            continue;
        if (!add(&pool->pieces, &pool->count, &pool->capacity, &piece))
            return false;
        piece = piece_at(chains, thread, i + 1, now);
    }
    piece.count = thread->count - end;
    return add(&pool->ends, &pool->end_count, &pool->end_capacity, &piece);
}

static int by_begin(const void *a, const void *b)
{
    const struct pool_piece *x = a, *y = b;
    int order = ORDER(x->begin_ns, y->begin_ns);
    return order ? order : ORDER(x->first, y->first);
}

bool pool_make(struct pool *pool, const struct chains *chains, trail_name name)
{
    *pool = (struct pool){.name = name};
    for (size_t i = 0; i < chains->thread_count; i++) {
        if (chains->threads[i].name != name)
            continue;
        pool->members++;
        pool->decides = pool->decides || i == chains->goal;
        if (!cut(pool, chains, &chains->threads[i]))
            return false;
    }
    pool->by_wait = calloc(chains->wait_count + 1, sizeof *pool->by_wait);
    pool->offered = calloc(pool->count + 1, sizeof *pool->offered);
    if (!pool->by_wait || !pool->offered)
        return false;
    if (pool->count > 0)
        qsort(pool->pieces, pool->count, sizeof *pool->pieces, by_begin);
    for (size_t i = 0; i < pool->count; i++)
        if (pool->pieces[i].wait != CHAIN_NONE)
            pool->by_wait[pool->pieces[i].wait] = (uint32_t)i + 1;
    return true;
}

void pool_free(struct pool *pool)
{
    free(pool->pieces);
    free(pool->ends);
    free(pool->by_wait);
    free(pool->offered);
}

/* MARK: Handing out */

void pool_offer(struct pool *pool, size_t piece)
{
    offer_up(pool->offered, pool->offered_count++, (uint32_t)piece);
}

bool pool_is_done(const struct pool *pool)
{
    return pool->busy == 0 && pool->taken == pool->count;
}

const struct pool_piece *pool_next(struct pool *pool, bool had)
{
    pool->busy -= had;
    if (pool->offered_count > 0) {
        uint32_t first = pool->offered[0], last = pool->offered[--pool->offered_count];
        if (pool->offered_count > 0)
            offer_down(pool->offered, pool->offered_count, 0, last);
        pool->busy++;
        pool->taken++;
        return &pool->pieces[first];
    }
    return pool_is_done(pool) && pool->next_end < pool->end_count ? &pool->ends[pool->next_end++]
                                                                  : NULL;
}
