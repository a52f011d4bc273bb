/*
 * Shared by the fuzz targets. Each target checks one property, in a function that libFuzzer calls with
 * an input; if the property does not hold, the process aborts.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <trail/export.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_HOLDS(condition)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            (void)fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);   \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* A text or trace that a target builds from its input. */
struct fuzz_bytes {
    uint8_t *data;
    size_t size, capacity;
};

static inline bool fuzz_keep(void *context, const void *data, size_t size)
{
    struct fuzz_bytes *bytes = context;
    if (bytes->capacity - bytes->size < size) {
        bytes->capacity = 2 * (bytes->size + size);
        bytes->data = realloc(bytes->data, bytes->capacity);
        if (!bytes->data)
            abort();
    }
    memcpy(bytes->data + bytes->size, data, size);
    bytes->size += size;
    return true;
}

/* A source that returns its bytes in pieces of varying size, so that read windows end anywhere. */
struct fuzz_trickle {
    const uint8_t *data;
    size_t size, given;
};

static inline ssize_t fuzz_trickle(void *context, void *buf, size_t size)
{
    struct fuzz_trickle *trickle = context;
    size_t n = 1 + trickle->given * 7 % 61, left = trickle->size - trickle->given;
    n = n < left ? n : left;
    n = n < size ? n : size;
    if (n > 0)
        memcpy(buf, trickle->data + trickle->given, n);
    trickle->given += n;
    return (ssize_t)n;
}
