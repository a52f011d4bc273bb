/* Opens and reads the rings of perf_ring.h. All numbers that the kernel shares are read once. */
#include "collect/perf_ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/grow.h"

/* MARK: Opening */

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

bool perf_ring_open(struct perf_ring *ring, struct perf_event_attr *attr, pid_t pid, int cpu,
                    size_t size)
{
    *ring = (struct perf_ring){
        .cpu = cpu,
        .fd = (int)syscall(SYS_perf_event_open, attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC)};
    if (ring->fd < 0)
        return false;
    void *page = mmap(NULL, page_size() + size, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
    int reason = errno;
    if (page == MAP_FAILED) {
        close(ring->fd);
        errno = reason;
        return false;
    }
    ring->page = page;
    ring->size = size;
    return true;
}

void perf_ring_close(struct perf_ring *ring)
{
    munmap(ring->page, page_size() + ring->size);
    close(ring->fd);
}

static void close_all(struct perf_ring_list *list)
{
    while (list->count)
        perf_ring_close(&list->rings[--list->count]);
}

void perf_rings_close(struct perf_ring_list *list)
{
    int old_errno = errno;
    for (size_t i = 0; i < list->other_count; i++)
        close(list->others[i]);
    free(list->others);
    list->others = NULL;
    list->other_count = list->other_room = 0;
    close_all(list);
    free(list->rings);
    list->rings = NULL;
    errno = old_errno;
}

/* Returns 0 or an errno; rings that were opened before the error are in the list. */
static int open_all(struct perf_ring_list *list, struct perf_event_attr *attr, pid_t pid, long cpus,
                    size_t size)
{
    list->count = 0;
    for (int cpu = 0; cpu < cpus; cpu++) {
        if (perf_ring_open(&list->rings[list->count], attr, pid, cpu, size))
            list->count++;
        else if (errno != ENODEV) /* the CPU is offline */
            return errno;
    }
    return list->count ? 0 : ENODEV;
}

/* Returns the size of each buffer: a power of two within the limits. */
static size_t share(size_t room, size_t cpu_room, long cpus)
{
    size_t size = page_size();
    while (2 * size * (size_t)cpus <= room && 2 * size <= cpu_room)
        size *= 2;
    return size;
}

bool perf_rings_open(struct perf_ring_list *list, struct perf_event_attr *attr, pid_t pid,
                     size_t room, size_t cpu_room)
{
    long cpus = sysconf(_SC_NPROCESSORS_CONF);
    size_t size = share(room, cpu_room, cpus);
    int reason = ENOMEM;
    *list = (struct perf_ring_list){.rings = calloc((size_t)cpus, sizeof *list->rings)};
    if (!list->rings)
        return false;
    for (; size >= page_size(); size /= 2) {
        reason = open_all(list, attr, pid, cpus, size);
        if (reason == 0)
            return true;
        close_all(list);
        /* Smaller buffers may be allowed; an error that is not about their size ends the loop. */
        if (reason != EPERM && reason != ENOMEM)
            break;
    }
    errno = reason;
    perf_rings_close(list);
    return false;
}

bool perf_rings_add(struct perf_ring_list *list, struct perf_event_attr *attr, pid_t tid)
{
    for (size_t i = 0; i < list->count; i++) {
        if (!GROW(list->others, list->other_room, list->other_count + 1)) {
            errno = ENOMEM;
            return false;
        }
        int fd = (int)syscall(SYS_perf_event_open, attr, tid, list->rings[i].cpu, -1,
                              PERF_FLAG_FD_CLOEXEC);
        if (fd < 0)
            return false;
        list->others[list->other_count++] = fd;
        if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, list->rings[i].fd) != 0 ||
            ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) != 0)
            return false;
    }
    return true;
}

/* MARK: Reading */

static void copy(const struct perf_ring *ring, uint64_t at, void *to, size_t size)
{
    const char *data = (const char *)ring->page + page_size();
    size_t offset = at % ring->size;
    size_t first = size < ring->size - offset ? size : ring->size - offset;
    memcpy(to, data + offset, first);
    memcpy((char *)to + first, data, size - first);
}

/* Room for one record of a switch and one of a loss. */
#define LEAST_ROOM 128

bool perf_ring_is_full(const struct perf_ring *ring)
{
    uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
    return head - ring->page->data_tail + LEAST_ROOM > ring->size;
}

bool perf_ring_peek(struct perf_ring *ring, union perf_record *record)
{
    /* Pairs with the kernel's store after the record. */
    uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
    uint64_t tail = ring->page->data_tail;
    struct perf_event_header *header = &record->header;
    if (head - tail < sizeof *header)
        return false;
    copy(ring, tail, header, sizeof *header);
    if (header->size < sizeof *header || header->size > head - tail) {
        /* An impossible size: the rest is skipped. */
        __atomic_store_n(&ring->page->data_tail, head, __ATOMIC_RELEASE);
        return false;
    }
    copy(ring, tail, record->bytes, header->size);
    return true;
}

void perf_ring_skip(struct perf_ring *ring, const union perf_record *record)
{
    /* Pairs with the kernel's load before it writes there. */
    __atomic_store_n(&ring->page->data_tail, ring->page->data_tail + record->header.size,
                     __ATOMIC_RELEASE);
}

bool perf_ring_next(struct perf_ring *ring, union perf_record *record)
{
    if (!perf_ring_peek(ring, record))
        return false;
    perf_ring_skip(ring, record);
    return true;
}

uint64_t perf_record_lost(const union perf_record *record)
{
    struct {
        struct perf_event_header header;
        uint64_t id, lost;
    } loss;
    if (record->header.type != PERF_RECORD_LOST || record->header.size < sizeof loss)
        return 0;
    memcpy(&loss, record, sizeof loss);
    return loss.lost;
}
