/*
 * Numbers in a merged trace: each source has its own blocks of 10^9 goroutine and thread IDs. The
 * first source's block is 0 to 999,999,999, the second's begins with 1,000,000,000.
 */
#pragma once

#include <stdint.h>

#define ID_BLOCK UINT64_C(1000000000)

/* Returns the block of a goroutine or thread. */
static inline uint64_t id_block(int64_t id)
{
    return (uint64_t)id / ID_BLOCK;
}

/* Returns the ID in the block of another one that ends with these digits. */
static inline int64_t id_beside(int64_t other, uint64_t digits)
{
    return (int64_t)(id_block(other) * ID_BLOCK + digits % ID_BLOCK);
}
