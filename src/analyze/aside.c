/*
 * Aside: a ring of blocks of items. One thread fills it; whichever thread has time takes from it.
 */
#include "analyze/aside.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* 1 MB: some milliseconds of work, in which the other thread may read or have no processor. */
enum { BLOCKS = 16, BLOCK_ITEMS = 512 };

/* How many items ahead of its turn an item is announced. */
enum { AHEAD = 4 };

struct item {
    aside_take *take;
    void *of;
    char data[ASIDE_ITEM_SIZE];
};

struct aside {
    trail_reader *reader;
    size_t block_count; /* 1: there is no other thread */
    pthread_mutex_t lock;
    pthread_cond_t taken_one;
    /* Guarded by the lock. */
    uint64_t given, taken; /* blocks, from the start; given - taken <= BLOCKS */
    bool taking;           /* a thread takes block `taken` */
    bool failed;
    /* Used by the thread that gives: items in block `given`. Blocks themselves need no lock. */
    size_t filled;
    size_t counts[BLOCKS];
    struct item blocks[BLOCKS][BLOCK_ITEMS];
};

/* Takes the oldest block. Returns false if there is none, or another thread takes it; with the
 * lock. */
static bool take_oldest(struct aside *a)
{
    if (a->taking || a->taken == a->given)
        return false;
    const struct item *item = a->blocks[a->taken % a->block_count];
    const struct item *end = item + a->counts[a->taken % a->block_count];
    bool good = !a->failed;
    a->taking = true;
    (void)pthread_mutex_unlock(&a->lock);
    for (; good && item < end; item++)
        good = item->take(item->of, item->data, end - item > AHEAD ? item[AHEAD].data : NULL);
    (void)pthread_mutex_lock(&a->lock);
    a->taking = false;
    a->failed |= !good;
    a->taken++;
    (void)pthread_cond_signal(&a->taken_one);
    return true;
}

static bool work(void *context)
{
    struct aside *a = context;
    (void)pthread_mutex_lock(&a->lock);
    bool took = take_oldest(a);
    (void)pthread_mutex_unlock(&a->lock);
    return took;
}

/*
 * Takes blocks, or waits for another thread to do so, until at most `most` are left. Called with
 * the lock held.
 */
static void wait_taken(struct aside *a, uint64_t most)
{
    while (a->given - a->taken > most)
        if (!take_oldest(a))
            (void)pthread_cond_wait(&a->taken_one, &a->lock);
}

/* Gives the block that is being filled, and waits until the next is free. */
static bool give(struct aside *a)
{
    (void)pthread_mutex_lock(&a->lock);
    a->counts[a->given % a->block_count] = a->filled;
    a->given++;
    a->filled = 0;
    wait_taken(a, a->block_count - 1);
    bool good = !a->failed;
    (void)pthread_mutex_unlock(&a->lock);
    trail_reader_has_work(a->reader);
    return good;
}

struct aside *aside_open(trail_reader *reader)
{
    struct aside *a = malloc(sizeof *a);
    if (!a)
        return NULL;
    memset(a, 0, offsetof(struct aside, counts));
    a->reader = reader;
    (void)pthread_mutex_init(&a->lock, NULL);
    (void)pthread_cond_init(&a->taken_one, NULL);
    a->block_count = trail_reader_lend(reader, work, a) ? BLOCKS : 1;
    return a;
}

bool aside_put(struct aside *a, aside_take *take, void *of, const void *item, size_t size)
{
    struct item *to = &a->blocks[a->given % a->block_count][a->filled++];
    to->take = take;
    to->of = of;
    memcpy(to->data, item, size);
    return a->filled < BLOCK_ITEMS || give(a);
}

void aside_drop(struct aside *a)
{
    if (!a)
        return;
    (void)pthread_mutex_lock(&a->lock);
    a->failed = true;
    (void)pthread_mutex_unlock(&a->lock);
    (void)aside_close(a);
}

bool aside_close(struct aside *a)
{
    bool good = true;
    if (!a)
        return true;
    good = give(a);
    (void)pthread_mutex_lock(&a->lock);
    wait_taken(a, 0);
    good = good && !a->failed;
    (void)pthread_mutex_unlock(&a->lock);
    (void)trail_reader_lend(a->reader, NULL, NULL);
    (void)pthread_cond_destroy(&a->taken_one);
    (void)pthread_mutex_destroy(&a->lock);
    free(a);
    return good;
}
