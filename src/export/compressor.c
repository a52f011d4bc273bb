/* Compressor: a ring of blocks. */
#include "export/compressor.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* Two blocks of each take 1 MB. */
enum { MOST_THREADS = 16, MOST_BLOCKS = 2 * MOST_THREADS };

struct block {
    uint8_t *data;
    uint8_t *packed; /* with COMPRESSOR_HEAD bytes before the compressed ones */
    size_t size;
    uLongf packed_size;
    bool done, good;
};

struct compressor {
    compressor_write write;
    void *context;
    size_t most;
    unsigned threads, started; /* the caller's counts for `threads` only */
    pthread_t thread[MOST_THREADS];
    pthread_mutex_t lock;
    pthread_cond_t given_one, done_one;
    /* Guarded by the lock. first <= next <= end <= first + block_count. */
    uint64_t first, next, end; /* the next block to be written, compressed, given */
    bool stop;
    size_t block_count;
    struct block blocks[MOST_BLOCKS]; /* one that is given and not done needs no lock */
};

static struct block *block_at(struct compressor *c, uint64_t number)
{
    return &c->blocks[number % c->block_count];
}

/* Compresses a block. Returns false if none is left; with the lock. */
static bool compress_next(struct compressor *c)
{
    if (c->next == c->end)
        return false;
    struct block *block = block_at(c, c->next++);
    (void)pthread_mutex_unlock(&c->lock);
    block->packed_size = compressBound(c->most);
    block->good = compress2(block->packed + COMPRESSOR_HEAD, &block->packed_size, block->data,
                            block->size, Z_BEST_SPEED) == Z_OK;
    (void)pthread_mutex_lock(&c->lock);
    block->done = true;
    (void)pthread_cond_signal(&c->done_one);
    return true;
}

static void *compress_blocks(void *context)
{
    struct compressor *c = context;
    (void)pthread_mutex_lock(&c->lock);
    while (!c->stop)
        if (!compress_next(c))
            (void)pthread_cond_wait(&c->given_one, &c->lock);
    (void)pthread_mutex_unlock(&c->lock);
    return NULL;
}

static bool write_first(struct compressor *c)
{
    struct block *block = block_at(c, c->first);
    (void)pthread_mutex_lock(&c->lock);
    while (!block->done)
        if (!compress_next(c))
            (void)pthread_cond_wait(&c->done_one, &c->lock);
    c->first++;
    (void)pthread_mutex_unlock(&c->lock);
    if (block->good)
        return c->write(c->context, block->packed + COMPRESSOR_HEAD, block->packed_size);
    errno = ENOMEM;
    return false;
}

/* Gives the block at `end` away, and starts a thread if more are waiting than the caller takes. */
static void give(struct compressor *c)
{
    (void)pthread_mutex_lock(&c->lock);
    c->end++;
    bool wanted = c->end - c->next > 1;
    (void)pthread_cond_signal(&c->given_one);
    (void)pthread_mutex_unlock(&c->lock);
    if (wanted && c->started + 1 < c->threads &&
        pthread_create(&c->thread[c->started], NULL, compress_blocks, c) == 0)
        c->started++;
}

bool compressor_put(struct compressor *c, const void *data, size_t size)
{
    if (c->end - c->first == c->block_count && !write_first(c))
        return false;
    struct block *block = block_at(c, c->end);
    block->size = size;
    block->done = false;
    memcpy(block->data, data, size);
    give(c);
    return true;
}

bool compressor_flush(struct compressor *c)
{
    bool good = true;
    while (good && c->first < c->end)
        good = write_first(c);
    return good;
}

struct compressor *compressor_open(size_t most, unsigned threads, compressor_write write,
                                   void *context)
{
    struct compressor *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    *c = (struct compressor){.write = write, .context = context, .most = most};
    c->threads = threads < 1 ? 1 : threads < MOST_THREADS ? threads : MOST_THREADS;
    c->block_count = c->threads == 1 ? 1 : 2 * (size_t)c->threads;
    (void)pthread_mutex_init(&c->lock, NULL);
    (void)pthread_cond_init(&c->given_one, NULL);
    (void)pthread_cond_init(&c->done_one, NULL);
    for (size_t i = 0; i < c->block_count; i++) {
        struct block *block = &c->blocks[i];
        block->data = malloc(most);
        block->packed = malloc(COMPRESSOR_HEAD + compressBound(most));
        if (!block->data || !block->packed) {
            compressor_close(c);
            return NULL;
        }
    }
    return c;
}

void compressor_close(struct compressor *c)
{
    if (!c)
        return;
    (void)pthread_mutex_lock(&c->lock);
    c->stop = true;
    (void)pthread_cond_broadcast(&c->given_one);
    (void)pthread_mutex_unlock(&c->lock);
    for (unsigned i = 0; i < c->started; i++)
        (void)pthread_join(c->thread[i], NULL);
    for (size_t i = 0; i < c->block_count; i++) {
        free(c->blocks[i].data);
        free(c->blocks[i].packed);
    }
    (void)pthread_cond_destroy(&c->done_one);
    (void)pthread_cond_destroy(&c->given_one);
    (void)pthread_mutex_destroy(&c->lock);
    free(c);
}
