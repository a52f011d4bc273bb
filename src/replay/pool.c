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

/* While a chain is cut. */
struct cutter {
    const struct chains *chains;
    const struct chain_step *steps; /* of the thread */
    bool *holds;                    /* by lock: the thread has it */
    bool *released; /* by step: a lock is taken, and released before it is taken again */
};

/*
 * Of a lock that nothing waits for, the chain may lack the release: it counts as released at once.
 * `holds` is used for what the later steps do with a lock.
 */
static void find_releases(struct cutter *c, uint64_t count)
{
    for (uint64_t i = count; i > 0; i--) {
        const struct chain_step *step = &c->steps[i - 1];
        c->released[i - 1] = step->op == CHAIN_TAKE && c->holds[step->of];
        if (step->op == CHAIN_TAKE || step->op == CHAIN_RELEASE)
            c->holds[step->of] = step->op == CHAIN_RELEASE;
    }
    for (uint64_t i = 0; i < count; i++)
        if (c->steps[i].op == CHAIN_TAKE || c->steps[i].op == CHAIN_RELEASE)
            c->holds[c->steps[i].of] = false;
}

/* How many more things the thread has begun and not ended after a step: they belong to one piece of
 * work. */
static int opens(const struct cutter *c, uint64_t i)
{
    const struct chain_step *step = &c->steps[i];
    switch ((enum chain_op)step->op) {
    case CHAIN_TAKE:
        if (c->holds[step->of] || !c->released[i])
            return 0;
        c->holds[step->of] = true;
        return 1;
    case CHAIN_RELEASE:
        if (!c->holds[step->of])
            return 0;
        c->holds[step->of] = false;
        return -1;
    case CHAIN_REGION_BEGIN:
    case CHAIN_TASK_BEGIN:
    case CHAIN_GC_BEGIN:
        return 1;
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
    return before->op == CHAIN_WAKE || before->op == CHAIN_RELEASE ||
           before->op == CHAIN_REGION_END || before->op == CHAIN_TASK_END ||
           after->op == CHAIN_WAIT || after->op == CHAIN_REGION_BEGIN ||
           after->op == CHAIN_TASK_BEGIN;
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

/* Returns the index of the first of a chain's last steps: those from its last wake-up on, or only
 * its finish, if a wait, a release or the end of a region follows that. */
static uint64_t end_of(const struct chains *chains, const struct chain_thread *thread)
{
    const struct chain_step *steps = chains->steps + thread->first;
    for (uint64_t i = thread->count; i > 0; i--) {
        if (steps[i - 1].op == CHAIN_WAKE)
            return i - 1;
        if (steps[i - 1].op != CHAIN_RUN && steps[i - 1].op != CHAIN_STALL &&
            steps[i - 1].op != CHAIN_QUEUE && steps[i - 1].op != CHAIN_FINISH)
            break;
    }
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

/* Returns the piece that begins with the nth step of the thread; `last` is the one before it. */
static struct pool_piece piece_at(const struct chains *chains, const struct chain_thread *thread,
                                  uint64_t nth, int64_t now, const struct pool_piece *last)
{
    const struct chain_step *step = &chains->steps[thread->first + nth];
    struct pool_piece piece = {
        .first = thread->first + nth, .begin_ns = now, .wait = last ? last->wait : CHAIN_NONE};
    if (nth < thread->count && step->op == CHAIN_WAIT) {
        piece.wait = step->of;
        piece.begin_ns = chains->waits[step->of].end_ns;
    }
    return piece;
}

static bool cut(struct pool *pool, struct cutter *c, const struct chain_thread *thread)
{
    uint64_t end = end_of(c->chains, thread);
    int64_t now = thread->begin_ns;
    int open = 0;
    c->steps = c->chains->steps + thread->first;
    find_releases(c, thread->count);
    struct pool_piece piece = piece_at(c->chains, thread, 0, now, NULL);
    for (uint64_t i = 0; i < end; i++) {
        open += opens(c, i);
        open = open < 0 ? 0 : open; /* it began before the trace */
        now = time_after(c->chains, &c->steps[i], now);
        piece.count++;
        if (i + 1 < end && (open > 0 || !is_cut(&c->steps[i], &c->steps[i + 1])))
            continue;
        if (!add(&pool->pieces, &pool->count, &pool->capacity, &piece))
            return false;
        piece = piece_at(c->chains, thread, i + 1, now, &piece);
    }
    piece.count = thread->count - end;
    return add(&pool->ends, &pool->end_count, &pool->end_capacity, &piece);
}

static int by_begin(const void *a, const void *b)
{
    const struct pool_piece *x = a, *y = b;
    return ORDER(x->begin_ns, y->begin_ns) ?: ORDER(x->first, y->first);
}

static uint64_t longest_chain(const struct chains *chains)
{
    uint64_t most = 0;
    for (size_t i = 0; i < chains->thread_count; i++)
        most = chains->threads[i].count > most ? chains->threads[i].count : most;
    return most;
}

static bool cut_all(struct pool *pool, const struct chains *chains)
{
    struct cutter c = {.chains = chains,
                       .holds = calloc(chains->lock_count + 1, sizeof *c.holds),
                       .released = calloc(longest_chain(chains) + 1, sizeof *c.released)};
    bool good = c.holds && c.released;
    for (size_t i = 0; i < chains->thread_count && good; i++) {
        if (names_kind(chains->names, chains->threads[i].name) != pool->name)
            continue;
        pool->members++;
        pool->decides = pool->decides || i == chains->goal;
        good = cut(pool, &c, &chains->threads[i]);
        for (size_t lock = 0; lock < chains->lock_count; lock++)
            c.holds[lock] = false;
    }
    free(c.holds);
    free(c.released);
    return good;
}

bool pool_make(struct pool *pool, const struct chains *chains, trail_name name)
{
    *pool = (struct pool){.name = name};
    if (!cut_all(pool, chains))
        return false;
    pool->by_wait = calloc(chains->wait_count + 1, sizeof *pool->by_wait);
    pool->offered = calloc(pool->count + 1, sizeof *pool->offered);
    if (!pool->by_wait || !pool->offered)
        return false;
    if (pool->count > 0)
        qsort(pool->pieces, pool->count, sizeof *pool->pieces, by_begin);
    for (size_t i = 0; i < pool->count; i++) {
        struct pool_piece *piece = &pool->pieces[i];
        if (piece->wait == CHAIN_NONE)
            continue;
        piece->next = pool->by_wait[piece->wait];
        pool->by_wait[piece->wait] = (uint32_t)i + 1;
    }
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

bool pool_wait_ends(struct pool *pool, uint32_t wait)
{
    uint32_t next = pool->by_wait[wait];
    pool->by_wait[wait] = 0;
    for (uint32_t number = next; number > 0; number = pool->pieces[number - 1].next)
        pool_offer(pool, number - 1);
    return next > 0;
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
