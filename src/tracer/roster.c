/* The records of threads: see roster.h. */
#include "tracer/roster.h"

#include "tracer/memory.h"
#include "tracer/pause.h"
#include "tracer/states.h"

/*
 * Records are never unmapped, and are found by their index: a thread may look at one that another
 * has just taken. There are places for as many as Linux has thread IDs.
 */
#define BLOCK  128
#define BLOCKS ((4u << 20) / BLOCK)

static struct trail_own_thread_ *blocks[BLOCKS]; /* atomic; a block is there before its records */
static uint32_t records;                         /* atomic: all, in use or not */

/*
 * The newest free record: changes << 32 | index + 1. The number of changes makes the exchange fail
 * in a thread that was preempted while others took the record and released it again.
 */
static uint64_t newest_free; /* atomic */

static struct trail_own_thread_ *record_at(uint32_t index)
{
    /* Pairs with the exchange in has_block. */
    return &__atomic_load_n(&blocks[index / BLOCK], __ATOMIC_ACQUIRE)[index % BLOCK];
}

/* Whether the block of `index` is there, or could be mapped. */
static bool has_block(uint32_t index)
{
    struct trail_own_thread_ **block = &blocks[index / BLOCK], *none = NULL, *mapped;
    if (__atomic_load_n(block, __ATOMIC_ACQUIRE))
        return true;
    mapped = memory_map(BLOCK * sizeof *mapped);
    if (mapped && !__atomic_compare_exchange_n(block, &none, mapped, false, __ATOMIC_RELEASE,
                                               __ATOMIC_RELAXED))
        memory_unmap(mapped, BLOCK * sizeof *mapped);
    return mapped;
}

static struct trail_own_thread_ *take_new(void)
{
    uint32_t index = __atomic_load_n(&records, __ATOMIC_RELAXED);
    do {
        if (index >= BLOCKS * BLOCK || !has_block(index))
            return NULL;
        /* Released: a thread that finds the index finds its block. */
    } while (!__atomic_compare_exchange_n(&records, &index, index + 1, true, __ATOMIC_RELEASE,
                                          __ATOMIC_RELAXED));
    record_at(index)->index = index;
    return record_at(index);
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
    return own ? own : take_new();
}

void roster_release(struct trail_own_thread_ *own)
{
    uint64_t newest = __atomic_load_n(&newest_free, __ATOMIC_RELAXED);
    do
        __atomic_store_n(&own->next_free, (uint32_t)newest, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&newest_free, &newest, changed(newest, own->index + 1),
                                        true, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

void roster_enter(struct trail_own_thread_ *own)
{
    /* Pairs with the load in roster_next. Like busy_, it is seen by a switch of generations, or the
     * thread sees the new generation. */
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

void roster_visit(void (*visit)(trail_m *m, void *arg), void *arg)
{
    trail_m *m;
    for (uint32_t at = 0; (m = roster_next(&at)) != NULL;) {
        states_lock(m);
        tracer_pause(PAUSE_VISITS);
        /* It may have left before it was locked. */
        if (__atomic_load_n(&m->in_use_, __ATOMIC_RELAXED))
            visit(m, arg);
        states_unlock(m);
    }
}

/* The memory of others is not used again: a thread may have been changing it. */
void roster_after_fork(const trail_m *m)
{
    trail_m *other;
    for (uint32_t at = 0; (other = roster_next(&at)) != NULL;) {
        if (other != m)
            __atomic_store_n(&other->in_use_, false, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&newest_free, 0, __ATOMIC_RELAXED);
}
