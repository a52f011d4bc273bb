/*
 * Finds the mapping of an address in the kernel's list, once per mapping; a later mapping at the
 * same address goes unnoticed. Called only for objects declared as shared between processes, when a
 * thread waits or may wait for them.
 */
#include "preload/memory.h"

#include <string.h>

#include "preload/call.h"
#include "shm/mapping.h"

#define MAPPINGS 64

/* Entries below `known` never change. */
static struct mapping mappings[MAPPINGS];
static uint32_t known;
static uint32_t adding; /* 1: a thread is */

static const struct mapping *find(uintptr_t address)
{
    uint32_t count = __atomic_load_n(&known, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count; i++) {
        if (mapping_has(&mappings[i], address))
            return &mappings[i];
    }
    return NULL;
}

/* Reads the list in pieces. Lines longer than that have long paths, which are not needed: *found
 * has none. */
static bool search(int fd, uintptr_t address, struct mapping *found)
{
    struct mapping mapping;
    char text[2048 + 1];
    size_t size = 0;
    ssize_t got;
    while ((got = REAL(read)(fd, text + size, sizeof text - 1 - size)) > 0) {
        char *line = text, *end;
        size += (size_t)got;
        text[size] = '\0';
        while ((end = strchr(line, '\n')) != NULL) {
            *end = '\0';
            if (mapping_read(line, &mapping) && mapping_has(&mapping, address)) {
                *found = mapping;
                found->path = NULL;
                return true;
            }
            line = end + 1;
        }
        size = (size_t)(text + size - line);
        if (size == sizeof text - 1)
            size = 0;
        memmove(text, line, size);
    }
    return false;
}

/* Keeps a mapping, unless another thread is just keeping one. */
static void keep(const struct mapping *found, uintptr_t address)
{
    if (__atomic_exchange_n(&adding, 1, __ATOMIC_ACQUIRE))
        return;
    if (known < MAPPINGS && !find(address)) {
        mappings[known] = *found;
        __atomic_store_n(&known, known + 1, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&adding, 0, __ATOMIC_RELEASE);
}

/*
 * Looks an address up in the kernel's list. Threads that do so at the same time each read it: they
 * must find the same identity.
 */
static bool look_up(uintptr_t address, struct mapping *found)
{
    int old_errno = errno;
    if (__atomic_load_n(&known, __ATOMIC_ACQUIRE) == MAPPINGS || is_confined())
        return false;
    int fd = REAL(open)("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    bool is_there = fd >= 0 && search(fd, address, found);
    if (fd >= 0)
        (void)REAL(close)(fd);
    if (is_there)
        keep(found, address);
    errno = old_errno;
    return is_there;
}

uint64_t memory_object(const volatile void *address)
{
    uintptr_t at = (uintptr_t)address;
    struct mapping found;
    const struct mapping *mapping = find(at);
    if (!mapping && look_up(at, &found))
        mapping = &found;
    return mapping && mapping->is_shared && mapping->inode ? mapping_object(mapping, at) : 0;
}
