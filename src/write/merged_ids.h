/*
 * Numbers in a merged trace: each source has blocks of its own, of goroutines and threads by 10^9.
 * The first source's are 0 to 999,999,999, the second's begin with 1,000,000,000.
 */
#ifndef TRAIL_WRITE_MERGED_IDS_H
#define TRAIL_WRITE_MERGED_IDS_H

#include <stdint.h>

#define ID_BLOCK UINT64_C(1000000000)

/* Returns the block of a goroutine or thread. */
static inline uint64_t id_block(int64_t id)
{
    return (uint64_t)id / ID_BLOCK;
}

#endif
