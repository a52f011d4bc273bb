/* The hash of tables and of names of files. */
#include "base/hash.h"

#include <string.h>

uint64_t hash_mix(uint64_t hash, uint64_t word)
{
    unsigned __int128 product = (unsigned __int128)(hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t hash_bytes(const void *data, size_t size)
{
    const unsigned char *at = data;
    uint64_t hash = size, word;
    size_t left = size;
    for (; left >= sizeof word; at += sizeof word, left -= sizeof word) {
        memcpy(&word, at, sizeof word);
        hash = hash_mix(hash, word);
    }
    word = 0;
    if (left > 0)
        memcpy(&word, at, left);
    return hash_mix(hash, word);
}
