/* See samples.h: the kernel's CPU clock of each thread, as an event whose samples have registers
 * and stack. */
#include "collect/samples.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collect/perf_ring.h"
#include "collect/perf_stack.h"

/* The total size of the buffers; a sample takes some 8 KiB. */
#define ROOM       (4u << 20)
#define STACK_SIZE 8192

struct samples {
    struct perf_ring_list rings;
    uint64_t lost;
    union perf_record record;
};

/* MARK: Opening */

struct samples *samples_open(unsigned rate)
{
    struct perf_event_attr attr = {
        .size = sizeof attr,
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_CPU_CLOCK,
        .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
        .sample_period = UINT64_C(1000000000) / (rate ? rate : 1),
        .disabled = 1,
        .inherit = 1,
        .enable_on_exec = 1,
        .exclude_hv = 1,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
    };
    struct samples *samples = calloc(1, sizeof *samples);
    if (!samples)
        return NULL;
    perf_stack_want(&attr, STACK_SIZE);
    bool open = perf_rings_open(&samples->rings, &attr, 0, ROOM, ROOM);
    if (!open && (errno == EACCES || errno == EPERM)) {
        attr.exclude_kernel = 1;
        open = perf_rings_open(&samples->rings, &attr, 0, ROOM, ROOM);
    }
    if (open)
        return samples;
    int reason = errno;
    free(samples);
    errno = reason;
    return NULL;
}

void samples_close(struct samples *samples)
{
    if (!samples)
        return;
    perf_rings_close(&samples->rings);
    free(samples);
}

/* MARK: Reading */

/*
 *   header | pid, tid | time | registers and stack (perf_stack.h)
 */
static bool understand(const struct samples *s, struct cpu_sample *sample)
{
    const size_t fixed = sizeof s->record.header + 2 * sizeof(uint64_t);
    uint64_t words[2];
    uint32_t ids[2];
    if (s->record.header.size < fixed)
        return false;
    memcpy(words, s->record.bytes + sizeof s->record.header, sizeof words);
    memcpy(ids, words, sizeof ids);
    *sample = (struct cpu_sample){.ns = (int64_t)words[1], .pid = ids[0], .tid = ids[1]};
    return perf_stack_read(s->record.bytes + fixed, s->record.header.size - fixed, sample);
}

void samples_read(struct samples *s, void (*take)(void *context, const struct cpu_sample *sample),
                  void *context)
{
    struct cpu_sample sample;
    for (size_t i = 0; i < s->rings.count; i++) {
        while (perf_ring_next(&s->rings.rings[i], &s->record)) {
            if (s->record.header.type == PERF_RECORD_SAMPLE && understand(s, &sample))
                take(context, &sample);
            s->lost += perf_record_lost(&s->record);
        }
    }
}

uint64_t samples_lost(const struct samples *samples)
{
    return samples ? samples->lost : 0;
}
