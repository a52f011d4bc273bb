/*
 * A fast hash of bytes, for tables and names; not safe against deliberate collisions. It must not
 * change: names of files contain its values.
 */
#ifndef TRAIL_BASE_HASH_H
#define TRAIL_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Mixes a word into a hash. */
uint64_t hash_mix(uint64_t hash, uint64_t word);

uint64_t hash_bytes(const void *data, size_t size);

#endif
