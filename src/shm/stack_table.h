/*
 * Call stacks, each kept once in the area: a hash table of numbers to which the program only adds
 * stacks, and so does the collector for stacks that it reads from outside. A stack's words are
 * complete before its number is stored in the index: a thread that finds the number may read them.
 */
#pragma once

#include "shm/shm.h"

#define STACK_TABLE_PROBES 64
#define STACK_TABLE_LAST   (SHM_STACK_WORDS - 2 * SHM_STACK_FRAMES)

static inline uint64_t stack_table_hash(const uint64_t *pcs, size_t count)
{
    uint64_t hash = count;
    for (size_t i = 0; i < count; i++) {
        hash = (hash ^ pcs[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return hash;
}

/* Whether the stack with a number is this one. Checks the number: the collector does not trust the
 * index. */
static inline bool stack_table_has(const struct shm_area *area, uint32_t number, uint64_t head,
                                   const uint64_t *pcs, size_t count)
{
    const uint64_t *words = &area->stack_words[number];
    if (number > STACK_TABLE_LAST || words[0] != head)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (words[1 + i] != pcs[i])
            return false;
    }
    return true;
}

/* Writes a stack and returns its number; 0: there is no room. */
static inline uint32_t stack_table_store(struct shm_area *area, uint64_t head, const uint64_t *pcs,
                                         size_t count)
{
    struct shm_header *header = &area->header;
    uint32_t number;
    if (__atomic_load_n(&header->stack_words_used, __ATOMIC_RELAXED) > STACK_TABLE_LAST)
        return 0;
    number = __atomic_fetch_add(&header->stack_words_used, (uint32_t)count + 1, __ATOMIC_RELAXED);
    if (number > STACK_TABLE_LAST)
        return 0;
    area->stack_words[number] = head;
    for (size_t i = 0; i < count; i++)
        area->stack_words[number + 1 + i] = pcs[i];
    return number;
}

/*
 * Returns the number of a stack or text, adding it if it is not there; 0: there is no room. `head`
 * is the word before the others.
 */
static inline uint32_t stack_table_number(struct shm_area *area, uint64_t head, const uint64_t *pcs,
                                          size_t count)
{
    uint64_t hash = stack_table_hash(pcs, count);
    uint32_t mine = 0;
    for (unsigned probe = 0; probe < STACK_TABLE_PROBES; probe++) {
        uint32_t *at = &area->stack_index[(hash + probe) % SHM_STACK_INDEX];
        /* Pairs with the exchange below. */
        uint32_t number = __atomic_load_n(at, __ATOMIC_ACQUIRE);
        if (!number) {
            if (!mine && !(mine = stack_table_store(area, head, pcs, count)))
                break;
            if (__atomic_compare_exchange_n(at, &number, mine, false, __ATOMIC_ACQ_REL,
                                            __ATOMIC_ACQUIRE))
                return mine;
        }
        if (stack_table_has(area, number, head, pcs, count))
            return number;
    }
    __atomic_fetch_add(&area->header.lost_stacks, 1, __ATOMIC_RELAXED);
    return 0;
}
