/* Reads the area that a recorder and a recorded process share: see recorded.h. */
#include "stuck/recorded.h"

#include <stdlib.h>
#include <string.h>

#include "base/present_memory.h"
#include "shm/shm.h"

/* The number of slots read at a time. */
enum { SLOTS = 64 };

static const char area_path[] = "/memfd:trail (deleted)";

/* Returns the address of the area and the number of used slots; 0: the process has none. */
static uint64_t find_area(const struct held *held, uint32_t *slots)
{
    struct shm_header header;
    for (size_t i = 0; i < held->mapping_count; i++) {
        const struct mapping *m = &held->mappings[i];
        if (!m->is_shared || strcmp(m->path, area_path) != 0 ||
            m->end - m->start < sizeof(struct shm_area) ||
            memory_of_other(held->pid, m->start, &header, sizeof header) != sizeof header ||
            header.magic != SHM_MAGIC || header.version != SHM_VERSION ||
            header.size_check != sizeof(struct shm_area) / 4096 || header.mapped_at != m->start)
            continue;
        *slots = header.threads_used < SHM_THREADS ? header.threads_used : SHM_THREADS;
        return m->start;
    }
    return 0;
}

static bool reads(const struct shm_thread *thread, uint64_t lock)
{
    for (size_t i = 0; i < SHM_READINGS; i++) {
        if (thread->reading[i].object == lock)
            return thread->state == SHM_LIVE && thread->tid != 0;
    }
    return false;
}

size_t recorded_readers(const struct held *held, uint64_t lock, uint32_t *tids, size_t max)
{
    uint32_t slots = 0;
    uint64_t area = find_area(held, &slots);
    struct shm_thread *threads = area ? malloc(SLOTS * sizeof *threads) : NULL;
    size_t count = 0;
    for (uint32_t first = 1; threads && first < slots && count < max; first += SLOTS) {
        uint32_t n = slots - first < SLOTS ? slots - first : SLOTS;
        uint64_t at = area + offsetof(struct shm_area, threads) + first * sizeof *threads;
        size_t size = n * sizeof *threads;
        if (memory_of_other(held->pid, at, threads, size) != (ssize_t)size)
            break;
        for (uint32_t i = 0; i < n && count < max; i++) {
            if (reads(&threads[i], lock))
                tids[count++] = threads[i].tid;
        }
    }
    free(threads);
    return count;
}
