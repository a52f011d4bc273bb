/*
 * Functions that the C library of WebAssembly (wasi-libc) lacks or implements differently from
 * glibc. Included before each source file of that build.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/* The file system is read-only: there are no temporary files. Weak, because later versions of
 * wasi-libc have some of these. */
#define O_TMPFILE 0
__attribute__((weak)) int mkostemp(char *name, int flags);
__attribute__((weak)) mode_t umask(mode_t mask);
__attribute__((weak)) int fchmod(int fd, mode_t mode);

void qsort_r(void *base, size_t count, size_t size,
             int (*compare)(const void *, const void *, void *), void *context);
