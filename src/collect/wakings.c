/* Opens the event of wake-ups on all CPUs, and reads its samples: see wakings.h. */
#include "collect/wakings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/small_file.h"
#include "collect/perf_ring.h"

/* The size of all buffers, and of each; a sample has 64 bytes. */
#define ROOM     (8u << 20)
#define CPU_ROOM (1u << 20)

/* The inode of the initial PID namespace, PROC_PID_INIT_INO. */
#define FIRST_PID_NAMESPACE 0xEFFFFFFCu

struct wakings {
    struct perf_ring_list rings;
    size_t tid_offset; /* of the woken thread's ID in a sample's data */
    uint64_t lost;
    union perf_record record;
};

/* header | time | size of the data | data */
struct waking_sample {
    struct perf_event_header header;
    uint64_t time;
    uint32_t size;
    uint8_t data[];
};

/* MARK: Opening */

/* Returns the number after a word in a tracepoint's description; 0: none. */
static unsigned long number_after(const char *text, const char *word)
{
    const char *at = strstr(text, word);
    return at ? strtoul(at + strlen(word), NULL, 10) : 0;
}

/* The tracepoint has the thread's ID in the initial namespace; everything else is in ours. */
static bool is_in_first_namespace(void)
{
    struct stat found;
    return stat("/proc/self/ns/pid", &found) == 0 && found.st_ino == FIRST_PID_NAMESPACE;
}

/* Returns the tracepoint's number, and where its samples have the TID; 0: it cannot be read. */
static uint64_t find_tracepoint(size_t *tid_offset)
{
    static const char *const paths[] = {
        "/sys/kernel/tracing/events/sched/sched_waking/format",
        "/sys/kernel/debug/tracing/events/sched/sched_waking/format",
    };
    char text[4096];
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        if (!small_file_text(text, sizeof text, "%s", paths[i]))
            continue;
        *tid_offset = number_after(text, "pid_t pid;\toffset:");
        return *tid_offset ? number_after(text, "ID: ") : 0;
    }
    return 0;
}

struct wakings *wakings_open(int32_t clock)
{
    struct perf_event_attr attr = {
        .size = sizeof attr,
        .type = PERF_TYPE_TRACEPOINT,
        .sample_period = 1,
        .sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_RAW,
        .use_clockid = 1,
        .clockid = clock,
    };
    struct wakings *wakings = calloc(1, sizeof *wakings);
    if (!wakings)
        return NULL;
    attr.config = is_in_first_namespace() ? find_tracepoint(&wakings->tid_offset) : 0;
    if (attr.config && perf_rings_open(&wakings->rings, &attr, -1, ROOM, CPU_ROOM))
        return wakings;
    free(wakings);
    return NULL;
}

void wakings_close(struct wakings *wakings)
{
    if (!wakings)
        return;
    perf_rings_close(&wakings->rings);
    free(wakings);
}

/* MARK: Reading */

/* Reads a record; false: not a sample. */
static bool understand(const struct wakings *w, int64_t *ns, uint32_t *tid)
{
    const struct waking_sample *sample = (const void *)w->record.bytes;
    size_t fixed = offsetof(struct waking_sample, data);
    if (sample->header.type != PERF_RECORD_SAMPLE || sample->header.size < fixed ||
        sample->size > sample->header.size - fixed || w->tid_offset + sizeof *tid > sample->size)
        return false;
    *ns = (int64_t)sample->time;
    memcpy(tid, sample->data + w->tid_offset, sizeof *tid);
    return true;
}

/* Reads one CPU's records. A loss lasts from the preceding record to the next one. */
static void read_ring(struct wakings *w, struct perf_ring *ring, int64_t before_ns,
                      wakings_take_fn *take, void *context)
{
    bool losing = false, full = perf_ring_is_full(ring), found;
    int64_t ns;
    uint32_t tid;
    while ((found = perf_ring_peek(ring, &w->record))) {
        bool understood = understand(w, &ns, &tid);
        uint64_t lost = perf_record_lost(&w->record);
        if (understood && !losing && ns >= before_ns)
            break;
        perf_ring_skip(ring, &w->record);
        w->lost += lost;
        if (lost && !losing)
            take(context, ring->last_ns, 0, WAKINGS_LOST);
        losing |= lost != 0;
        if (!understood)
            continue;
        if (losing)
            take(context, ns, 0, WAKINGS_FOUND);
        losing = false;
        take(context, ns, tid, WAKING);
        ring->last_ns = ns;
    }
    if (full && !found && !losing) {
        take(context, ring->last_ns, 0, WAKINGS_LOST);
        losing = true;
    }
    if (losing)
        take(context, before_ns, 0, WAKINGS_FOUND);
}

void wakings_read(struct wakings *w, int64_t before_ns, wakings_take_fn *take, void *context)
{
    for (size_t i = 0; w && i < w->rings.count; i++)
        read_ring(w, &w->rings.rings[i], before_ns, take, context);
}

uint64_t wakings_lost(const struct wakings *wakings)
{
    return wakings ? wakings->lost : 0;
}
