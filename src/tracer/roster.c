/* The records of threads: see roster.h. */
#include "tracer/roster.h"

#include "tracer/memory.h"
#include "tracer/pause.h"
#include "tracer/states.h"
#include "tracer/tsan.h"

/*
 * Records are never unmapped and are found by index, so a thread may look at one that another has
 * just taken. There is room for as many as Linux has thread IDs.
 */
#define FIRST_BLOCK 64
#define BLOCK       1024
#define BLOCKS      ((4u << 20) / BLOCK)
#define PREPARED    8 /* blocks, of addresses; their pages are used only by threads */

static struct trail_own_thread_ first_block[FIRST_BLOCK];
static struct trail_own_thread_
    *blocks[BLOCKS];     /* atomic; set before records of the block are used */
static uint32_t records; /* atomic: all, in use or not */

/*
 * The newest free record: changes << 32 | index + 1. The number of changes makes the exchange fail
 * in a thread that was preempted while others took the record and released it again.
 */
static uint64_t newest_free; /* atomic */

static struct trail_own_thread_ *record_at(uint32_t index)
{
    if (index < FIRST_BLOCK)
        return &first_block[index];
    index -= FIRST_BLOCK;
    /* Pairs with the exchange in has_block. */
    return &__atomic_load_n(&blocks[index / BLOCK], __ATOMIC_ACQUIRE)[index % BLOCK];
}

/* Ensures that the record's memory is mapped; false: no memory. */
static bool has_block(uint32_t index)
{
    struct trail_own_thread_ **block, *none = NULL, *block_new;
    if (index < FIRST_BLOCK)
        return true;
    if (index >= FIRST_BLOCK + BLOCKS * BLOCK)
        return false;
    block = &blocks[(index - FIRST_BLOCK) / BLOCK];
    if (__atomic_load_n(block, __ATOMIC_ACQUIRE))
        return true;
    block_new = memory_reserve(BLOCK * sizeof *block_new);
    if (block_new && !__atomic_compare_exchange_n(block, &none, block_new, false, __ATOMIC_RELEASE,
                                                  __ATOMIC_RELAXED))
        memory_unreserve(block_new, BLOCK * sizeof *block_new);
    return block_new;
}

/* A new record, which is all zero. */
static void set_up(uint32_t index)
{
    struct trail_own_thread_ *own = record_at(index);
    own->index = index;
    for (int i = 0; i < 2; i++) {
        writer_own(&own->m.writers_[i], own->buffers[i]);
        writer_own(&own->m.strings_[i], own->buffers[2 + i]);
    }
}

/*
 * Whether the thread that takes the record also maps the next block. It is mapped halfway through a
 * block, so that not many threads map one at once when it is full.
 */
static bool is_ahead(uint32_t index)
{
    return index == FIRST_BLOCK / 2 || (index - FIRST_BLOCK) % BLOCK == BLOCK / 2;
}

static struct trail_own_thread_ *take_new(void)
{
    uint32_t index = __atomic_load_n(&records, __ATOMIC_RELAXED);
    do {
        if (!has_block(index))
            return NULL;
        /* Released: a thread that finds the index finds its block. */
    } while (!__atomic_compare_exchange_n(&records, &index, index + 1, true, __ATOMIC_RELEASE,
                                          __ATOMIC_RELAXED));
    set_up(index);
    memory_use(sizeof(struct trail_own_thread_));
    if (is_ahead(index))
        (void)has_block(index + BLOCK / 2);
    return record_at(index);
}

void roster_prepare(void)
{
    for (uint32_t i = 0; i < PREPARED && has_block(FIRST_BLOCK + i * BLOCK); i++)
        ;
}

static uint64_t changed(uint64_t newest, uint32_t to)
{
    return ((newest >> 32) + 1) << 32 | to;
}

static struct trail_own_thread_ *take_free(void)
{
    uint64_t newest = __atomic_load_n(&newest_free, __ATOMIC_ACQUIRE);
    struct trail_own_thread_ *own;
    uint32_t next;
    do {
        if (!(uint32_t)newest)
            return NULL;
        own = record_at((uint32_t)newest - 1);
        next = __atomic_load_n(&own->next_free, __ATOMIC_RELAXED);
    } while (!__atomic_compare_exchange_n(&newest_free, &newest, changed(newest, next), true,
                                          __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE));
    return own;
}

struct trail_own_thread_ *roster_take(void)
{
    struct trail_own_thread_ *own = take_free();
    if (!own)
        return take_new();
    tsan_acquire(own);
    return own;
}

void roster_release(struct trail_own_thread_ *own)
{
    uint64_t newest = __atomic_load_n(&newest_free, __ATOMIC_RELAXED);
    tsan_release(own);
    do
        __atomic_store_n(&own->next_free, (uint32_t)newest, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&newest_free, &newest, changed(newest, own->index + 1),
                                        true, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

void roster_enter(struct trail_own_thread_ *own)
{
    /* Pairs with the load in roster_next. As with busy_, either a switch of generations sees it, or
     * the thread sees the new generation. */
    __atomic_store_n(&own->m.in_use_, true, __ATOMIC_RELEASE);
}

void roster_leave(struct trail_own_thread_ *own)
{
    /* Pairs with the load in roster_next: its sections are over. */
    __atomic_store_n(&own->m.in_use_, false, __ATOMIC_RELEASE);
}

trail_m *roster_next(uint32_t *at)
{
    while (*at < __atomic_load_n(&records, __ATOMIC_ACQUIRE)) {
        struct trail_own_thread_ *own = record_at((*at)++);
        if (__atomic_load_n(&own->m.in_use_, __ATOMIC_ACQUIRE))
            return &own->m;
    }
    return NULL;
}

void roster_visit_all(void (*visit)(trail_m *m, void *arg), void *arg)
{
    for (uint32_t i = 0; i < __atomic_load_n(&records, __ATOMIC_ACQUIRE); i++) {
        trail_m *m = &record_at(i)->m;
        states_lock(m);
        tracer_pause(PAUSE_VISITS);
        visit(m, arg);
        states_unlock(m);
    }
}

struct visit {
    void (*in_use)(trail_m *m, void *arg);
    void *arg;
};

static void visit_in_use(trail_m *m, void *arg)
{
    const struct visit *visit = arg;
    if (__atomic_load_n(&m->in_use_, __ATOMIC_ACQUIRE))
        visit->in_use(m, visit->arg);
}

void roster_visit(void (*visit)(trail_m *m, void *arg), void *arg)
{
    roster_visit_all(visit_in_use, &(struct visit){visit, arg});
}

static void forget(trail_m *m)
{
    m->in_use_ = m->lock_ = 0;
    for (int i = 0; i < 2; i++) {
        writer_after_fork(&m->writers_[i]);
        writer_after_fork(&m->strings_[i]);
    }
}

/* Other threads' records are not reused, because a thread may have been changing one. */
void roster_after_fork(trail_m *m)
{
    for (uint32_t i = 0; i < records; i++)
        forget(&record_at(i)->m);
    newest_free = 0;
    if (m)
        m->in_use_ = true;
}
