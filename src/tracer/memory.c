/* Memory from the system: see memory.h. */
#include "tracer/memory.h"

#include <stdbool.h>
#include <sys/mman.h>

static long allowed_calls = -1; /* atomic */
static size_t mapped;           /* atomic */

void memory_fail_after(long allowed)
{
    __atomic_store_n(&allowed_calls, allowed, __ATOMIC_RELAXED);
}

static bool injected_failure(void)
{
    long left = __atomic_load_n(&allowed_calls, __ATOMIC_RELAXED);
    if (__builtin_expect(left < 0, 1))
        return false;
    while (left > 0) {
        if (__atomic_compare_exchange_n(&allowed_calls, &left, left - 1, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
            return false;
    }
    return true;
}

size_t memory_mapped(void)
{
    return __atomic_load_n(&mapped, __ATOMIC_RELAXED);
}

static void *map(size_t size, int flags)
{
    void *at;
    if (injected_failure())
        return NULL;
    at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

void *memory_map(size_t size)
{
    void *at = map(size, 0);
    if (at)
        memory_use(size);
    return at;
}

void memory_use(size_t size)
{
    __atomic_fetch_add(&mapped, size, __ATOMIC_RELAXED);
}

void *memory_reserve(size_t size)
{
    void *at = map(size, MAP_NORESERVE);
    if (!at)
        return NULL;
    /* Few of its pages are used at first. */
    (void)madvise(at, size, MADV_NOHUGEPAGE);
    /* The first fault in a mapping waits for all threads that map memory; later ones do not. */
    *(volatile char *)at = 0;
    return at;
}

void memory_unreserve(void *at, size_t size)
{
    munmap(at, size);
}

void memory_unmap(void *at, size_t size)
{
    munmap(at, size);
    __atomic_fetch_sub(&mapped, size, __ATOMIC_RELAXED);
}
