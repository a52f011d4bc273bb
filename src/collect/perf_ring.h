/*
 * A perf event on one CPU with its ring buffer: a page with the positions of the kernel and of the
 * reader, followed by a power of two of data pages (perf_event_open(2)).
 */
#pragma once

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A record of any kind. The kernel's largest is 64 KiB. */
union perf_record {
    uint64_t aligned; /* records consist of words of 8 bytes */
    struct perf_event_header header;
    uint8_t bytes[65536];
};

struct perf_ring {
    int fd, cpu;
    struct perf_event_mmap_page *page;
    size_t size; /* of the data */
    int64_t last_ns;
    /* For switches.c: the thread and kind of the last record, whether there may have been no room
     * for what follows those in the buffer, and whether what follows the last one is lost. */
    uint32_t last_tid;
    int last_kind;
    bool was_full, in_gap;
};

/*
 * Opens the event on one CPU: for this process and those that it starts (`pid` 0), or for all
 * processes (-1). The buffer has `size` bytes, a power of two. False with errno.
 */
bool perf_ring_open(struct perf_ring *ring, struct perf_event_attr *attr, pid_t pid, int cpu,
                    size_t size);
void perf_ring_close(struct perf_ring *ring);

/*
 * Whether the kernel may have had no room for a further record. It reports a loss with the first
 * record that has room again, which may be long after the others were read.
 */
bool perf_ring_is_full(const struct perf_ring *ring);

/* Copies the next record and leaves it in the buffer; false: none. */
bool perf_ring_peek(struct perf_ring *ring, union perf_record *record);
/* Removes the record that was copied. */
void perf_ring_skip(struct perf_ring *ring, const union perf_record *record);
/* Copies the next record and removes it. */
bool perf_ring_next(struct perf_ring *ring, union perf_record *record);

/* Returns how many records this one reports as lost; 0: it reports something else. */
uint64_t perf_record_lost(const union perf_record *record);

/* One ring per online CPU. */
struct perf_ring_list {
    struct perf_ring *rings;
    size_t count;
    int *others; /* descriptors of other threads' events, which write into the same rings */
    size_t other_count, other_room;
};

/*
 * Opens the rings. `room` is the size of all buffers together, `cpu_room` the limit for one; they
 * are smaller if the user may not lock that much memory. False with errno.
 */
bool perf_rings_open(struct perf_ring_list *list, struct perf_event_attr *attr, pid_t pid,
                     size_t room, size_t cpu_room);
/* Keeps errno. */
void perf_rings_close(struct perf_ring_list *list);

/* Opens the event for a thread of another process, and the threads that it creates, into the same
 * rings. False with errno. */
bool perf_rings_add(struct perf_ring_list *list, struct perf_event_attr *attr, pid_t tid);
