/* For LD_PRELOAD: allocation number FAIL_AT fails; with FAIL_ALL, so do all later ones. FAIL_COUNT
 * names a file that receives the number of allocations. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);

static long at, count;

static int fails(void)
{
    if (at == 0)
        at = getenv("FAIL_AT") ? atol(getenv("FAIL_AT")) : -1;
    long now = __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
    if (at < 0 || (getenv("FAIL_ALL") ? now < at : now != at))
        return 0;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t number, size_t size)
{
    return fails() ? NULL : __libc_calloc(number, size);
}

void *realloc(void *old, size_t size)
{
    return fails() ? NULL : __libc_realloc(old, size);
}

void *reallocarray(void *old, size_t number, size_t size)
{
    size_t all;
    if (__builtin_mul_overflow(number, size, &all)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(old, all);
}

__attribute__((destructor)) static void finish(void)
{
    const char *path = getenv("FAIL_COUNT");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file)
        return;
    fprintf(file, "%ld\n", count);
    fclose(file);
}
