/* A thread that decodes the next events into a ring of blocks. */
#include "read/ahead.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "read/reader.h"

/* All blocks fit into the CPU's own cache. A thread that waits is woken when half of them are there
 * for it, since a wake-up costs as much as reading several hundred events. */
enum { BLOCKS = 4, HALF = BLOCKS / 2, BLOCK_EVENTS = 2048 };

struct block {
    long count;
    trail_reader_stats stats; /* as of its last event */
    trail_event events[BLOCK_EVENTS];
};

struct ahead {
    trail_reader *reader;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t given_some, done_some, worked;
    /* Guarded by the lock. */
    uint64_t given, done; /* blocks, from the start; given - done <= BLOCKS */
    bool stop;            /* the reader is being closed */
    bool over;            /* only `result` follows the blocks given */
    long result;
    /* The caller's work, for whichever thread would otherwise wait; has_work: there may be some. */
    bool (*work)(void *context);
    void *work_context;
    bool has_work, works;
    /* Used by the caller's thread. */
    bool holds; /* the caller is processing block `done` */
    trail_reader_stats stats;
    /*
     * Used by the reading thread: the number of events in block `given` so far. The blocks
     * themselves need no lock.
     */
    long filled;
    struct block blocks[BLOCKS];
};

/* MARK: Work */

/* Does lent work. Returns false if there is none now. Called with the lock held. */
static bool work_once(struct ahead *a)
{
    if (!a->work || !a->has_work || a->works)
        return false;
    a->has_work = false;
    a->works = true;
    (void)pthread_mutex_unlock(&a->lock);
    bool more = a->work(a->work_context);
    (void)pthread_mutex_lock(&a->lock);
    a->works = false;
    a->has_work |= more;
    (void)pthread_cond_signal(&a->worked);
    return true;
}

void ahead_lend(struct ahead *a, bool (*work)(void *context), void *context)
{
    (void)pthread_mutex_lock(&a->lock);
    while (a->works)
        (void)pthread_cond_wait(&a->worked, &a->lock);
    a->work = work;
    a->work_context = context;
    a->has_work = false;
    (void)pthread_mutex_unlock(&a->lock);
}

void ahead_has_work(struct ahead *a)
{
    (void)pthread_mutex_lock(&a->lock);
    a->has_work = true;
    (void)pthread_cond_signal(&a->done_some);
    (void)pthread_mutex_unlock(&a->lock);
}

/* MARK: The thread */

static struct block *filling(struct ahead *a)
{
    return &a->blocks[a->given % BLOCKS];
}

static void give(struct ahead *a)
{
    struct block *block = filling(a);
    if (a->filled == 0)
        return;
    block->count = a->filled;
    block->stats = a->reader->stats;
    a->filled = 0;
    (void)pthread_mutex_lock(&a->lock);
    a->given++;
    if (a->given - a->done >= HALF)
        (void)pthread_cond_signal(&a->given_some);
    (void)pthread_mutex_unlock(&a->lock);
}

/*
 * Waits until at most `most` blocks are unprocessed. Returns false if the reader is being closed.
 */
static bool wait_done(struct ahead *a, uint64_t most)
{
    (void)pthread_mutex_lock(&a->lock);
    while (!a->stop && a->given - a->done > most) {
        (void)pthread_cond_signal(&a->given_some);
        if (!work_once(a))
            (void)pthread_cond_wait(&a->done_some, &a->lock);
    }
    bool wanted = !a->stop;
    (void)pthread_mutex_unlock(&a->lock);
    return wanted;
}

bool ahead_settle(struct ahead *a)
{
    give(a);
    return wait_done(a, 0);
}

/* Offers the rest of a block to the decoder. Returns false if the reader is being closed. */
static bool offer(struct ahead *a)
{
    if (BLOCK_EVENTS - a->filled < READER_ROOM)
        give(a);
    if (a->filled == 0 && !wait_done(a, BLOCKS - 1))
        return false;
    a->reader->room = filling(a)->events + a->filled;
    a->reader->room_size = (size_t)(BLOCK_EVENTS - a->filled);
    return true;
}

/*
 * Takes a batch. Copies it if the decoder put it elsewhere, or into a block that has since been
 * given (ahead_settle). Returns false if the reader is being closed.
 */
static bool put(struct ahead *a, const trail_event *events, long count)
{
    while (count > 0) {
        if (a->filled == 0 && !wait_done(a, BLOCKS - 1))
            return false;
        trail_event *to = filling(a)->events + a->filled;
        long room = BLOCK_EVENTS - a->filled, part = count < room ? count : room;
        if (events != to)
            memcpy(to, events, (size_t)part * sizeof *events);
        a->filled += part;
        events += part;
        count -= part;
        if (a->filled == BLOCK_EVENTS)
            give(a);
    }
    return true;
}

static void *read_ahead(void *context)
{
    struct ahead *a = context;
    const trail_event *events;
    long count = 0;
    while (offer(a) && (count = a->reader->ops->next_batch(a->reader, &events)) > 0)
        if (!put(a, events, count))
            break;
    give(a);
    (void)pthread_mutex_lock(&a->lock);
    a->result = count < 0 ? -1 : 0;
    a->over = true;
    (void)pthread_cond_signal(&a->given_some);
    while (!a->stop)
        if (!work_once(a))
            (void)pthread_cond_wait(&a->done_some, &a->lock);
    (void)pthread_mutex_unlock(&a->lock);
    return NULL;
}

/* MARK: The caller */

long ahead_next(struct ahead *a, const trail_event **events)
{
    (void)pthread_mutex_lock(&a->lock);
    if (a->holds) {
        a->done++;
        if (a->given - a->done <= HALF)
            (void)pthread_cond_signal(&a->done_some);
    }
    while (a->given == a->done && !a->over)
        if (!work_once(a))
            (void)pthread_cond_wait(&a->given_some, &a->lock);
    a->holds = a->given > a->done;
    const struct block *block = &a->blocks[a->done % BLOCKS];
    long result = a->holds ? block->count : a->result;
    (void)pthread_mutex_unlock(&a->lock);
    *events = block->events;
    a->stats = a->holds ? block->stats : a->reader->stats;
    return result;
}

const trail_reader_stats *ahead_stats(const struct ahead *a)
{
    return &a->stats;
}

/* MARK: Start and stop */

static void ahead_free(struct ahead *a)
{
    (void)pthread_cond_destroy(&a->worked);
    (void)pthread_cond_destroy(&a->done_some);
    (void)pthread_cond_destroy(&a->given_some);
    (void)pthread_mutex_destroy(&a->lock);
    free(a);
}

void ahead_start(trail_reader *reader)
{
    struct ahead *a = malloc(sizeof *a);
    if (!a)
        return;
    memset(a, 0, offsetof(struct ahead, blocks));
    a->reader = reader;
    a->stats = reader->stats;
    (void)pthread_mutex_init(&a->lock, NULL);
    (void)pthread_cond_init(&a->given_some, NULL);
    (void)pthread_cond_init(&a->done_some, NULL);
    (void)pthread_cond_init(&a->worked, NULL);
    reader->ahead = a; /* the thread uses it */
    if (pthread_create(&a->thread, NULL, read_ahead, a) == 0)
        return;
    reader->ahead = NULL;
    ahead_free(a);
}

void ahead_stop(struct ahead *a)
{
    if (!a)
        return;
    (void)pthread_mutex_lock(&a->lock);
    a->stop = true;
    (void)pthread_cond_signal(&a->done_some);
    (void)pthread_mutex_unlock(&a->lock);
    (void)pthread_join(a->thread, NULL);
    ahead_free(a);
}
