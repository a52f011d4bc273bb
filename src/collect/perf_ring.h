/*
 * One event of the kernel's on one CPU with its buffer: a page that tells where it is written and read, and a
 * power of two of pages that records go round in (perf_event_open(2)).
 */
#ifndef TRAIL_COLLECT_PERF_RING_H
#define TRAIL_COLLECT_PERF_RING_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The largest record that is taken; others are left out. */
#define PERF_RING_RECORD 65536

struct perf_ring {
    int fd;
    struct perf_event_mmap_page *page;
    size_t size; /* of the data */
    int64_t last_ns;
};

/*
 * For this process and what it starts, on one CPU. The buffer has `size` bytes, a power of two. False with
 * errno.
 */
bool perf_ring_open(struct perf_ring *ring, struct perf_event_attr *attr, int cpu, size_t size);
void perf_ring_close(struct perf_ring *ring);

/* Copies the next record to `record`, of PERF_RING_RECORD bytes; false: there is none now. It stays the next one. */
bool perf_ring_peek(struct perf_ring *ring, struct perf_event_header *record);
/* Done with what was copied. */
void perf_ring_skip(struct perf_ring *ring, const struct perf_event_header *record);
/* Both. */
bool perf_ring_next(struct perf_ring *ring, struct perf_event_header *record);

/* Of all CPUs that are on. */
struct perf_ring_list {
    struct perf_ring *rings;
    size_t count;
};

/*
 * `room` is that of all buffers together, `cpu_room` the most of one; less where the user may not lock so much. False
 * with errno.
 */
bool perf_rings_open(struct perf_ring_list *list, struct perf_event_attr *attr, size_t room,
                     size_t cpu_room);
void perf_rings_close(struct perf_ring_list *list);

#endif
