/* The hashes of tables and of names of files. */
#include "base/hash.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct key {
    uint64_t flip, times;
};

static const struct key plain = {0, HASH_TIMES};

static uint64_t mix(const struct key *key, uint64_t hash, uint64_t word)
{
    unsigned __int128 product = (unsigned __int128)(hash ^ word ^ key->flip) * key->times;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t bytes(const struct key *key, uint64_t hash, const void *data, size_t size)
{
    const unsigned char *at = data;
    uint64_t word;
    size_t left = size;
    for (; left >= sizeof word; at += sizeof word, left -= sizeof word) {
        memcpy(&word, at, sizeof word);
        hash = mix(key, hash, word);
    }
    word = 0;
    if (left > 0)
        memcpy(&word, at, left);
    return mix(key, hash, word);
}

uint64_t hash_mix(uint64_t hash, uint64_t word)
{
    return mix(&plain, hash, word);
}

uint64_t hash_bytes(const void *data, size_t size)
{
    return bytes(&plain, size, data, size);
}

uint64_t hash_random(void)
{
    static atomic_uint_fast64_t calls;
    uint64_t number;
    if (getentropy(&number, sizeof number) == 0)
        return number;
    /* Mixes where the program was loaded, the time, and the number of calls. */
    return hash_mix(hash_mix((uint64_t)(uintptr_t)&calls, (uint64_t)time(NULL)), ++calls);
}

/* Drawn once; the same in all threads. */
static struct key secret(void)
{
    static atomic_uint_fast64_t drawn;
    uint_fast64_t number = atomic_load_explicit(&drawn, memory_order_relaxed), none = 0;
    if (number == 0) {
        number = hash_random() | 1;
        if (!atomic_compare_exchange_strong(&drawn, &none, number))
            number = none;
    }
    return (struct key){.flip = number << 32 | number >> 32, .times = number};
}

uint64_t hash_keyed_mix(uint64_t hash, uint64_t word)
{
    struct key key = secret();
    return mix(&key, hash, word);
}

uint64_t hash_keyed_bytes(uint64_t hash, const void *data, size_t size)
{
    struct key key = secret();
    return bytes(&key, hash ^ size, data, size);
}
