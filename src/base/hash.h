/*
 * Hashes: fast ones that are the same everywhere, for numbers and names in files, which must not
 * change; and keyed ones for tables, whose values cannot be chosen and must not reach an output.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* 2^64 divided by the golden ratio, which spreads runs of numbers best (Knuth, TAOCP 3, 6.4). */
#define HASH_TIMES UINT64_C(0x9e3779b97f4a7c15)

/* Mixes a word into a hash. */
uint64_t hash_mix(uint64_t hash, uint64_t word);

uint64_t hash_bytes(const void *data, size_t size);

/* The same, keyed with two random words of this process. Begin with 0. */
uint64_t hash_keyed_mix(uint64_t hash, uint64_t word);
uint64_t hash_keyed_bytes(uint64_t hash, const void *data, size_t size);

/* Returns a random number, of low quality if the system provides none. */
uint64_t hash_random(void);
