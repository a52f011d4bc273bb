/*
 * Which memory of another process can be read without waiting. The kernel lets a reader wait, only
 * a SIGKILL ends this, for pages that are not there: their process may provide them itself
 * (userfaultfd(2)), or a file system of a user does (fuse(4)).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/*
 * Returns how many bytes, of `size` from an address on, are in memory or in swap; `size` if the
 * kernel does not say. `pid` may be a TID.
 */
size_t present_memory(pid_t pid, uint64_t at, size_t size);

/* Copies another process's memory, also what is not present. Returns the number of bytes, which may
 * be less than `size`; -1 with errno set. */
static inline ssize_t memory_of_other(pid_t pid, uint64_t at, void *to, size_t size)
{
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): the other process's. */
    struct iovec here = {to, size}, there = {(void *)(uintptr_t)at, size};
    return process_vm_readv(pid, &here, 1, &there, 1, 0);
}
