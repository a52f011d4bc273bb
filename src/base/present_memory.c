/* Reads the kernel's list of pages (proc_pid_pagemap(5)): see present_memory.h. */
#include "base/present_memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* Of a page's 64 bits: it is in memory, it is in swap. */
#define PRESENT (UINT64_C(3) << 62)

/* Returns how many of the pages from one on are there, up to the first that is not. */
static size_t count_present(int fd, uint64_t page, size_t most)
{
    uint64_t entries[64];
    size_t count = 0;
    while (count < most) {
        size_t wanted = most - count < 64 ? most - count : 64;
        ssize_t got =
            pread(fd, entries, wanted * sizeof *entries, (off_t)((page + count) * sizeof *entries));
        size_t listed = got > 0 ? (size_t)got / sizeof *entries : 0, i = 0;
        while (i < listed && (entries[i] & PRESENT) != 0)
            i++;
        count += i;
        if (i < wanted)
            break;
    }
    return count;
}

size_t present_memory(pid_t pid, uint64_t at, size_t size)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), first = at / page;
    char path[sizeof "/proc//pagemap" + 10];
    if (size == 0 || at > UINT64_MAX - size)
        return 0;
    (void)snprintf(path, sizeof path, "/proc/%d/pagemap", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return size;
    size_t count = count_present(fd, first, (size_t)((at + size - 1) / page - first + 1));
    (void)close(fd);
    uint64_t end = (first + count) * page;
    if (count == 0)
        return 0;
    return end - at < size ? (size_t)(end - at) : size;
}
