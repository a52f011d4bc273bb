/* See samples.h: the kernel's CPU clock of each thread as an event whose samples carry registers and stack. */
#include "collect/samples.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collect/perf_ring.h"

/* The size of all buffers; a sample has some 8 KiB. */
#define ROOM       (4u << 20)
#define STACK_SIZE 8192

/* The kernel's numbers of the registers that a walk needs, in the order of the record. */
#if defined(__x86_64__)
enum { REG_FP = 6, REG_STACK = 7, REG_PC = 8, REG_ABI_64 = PERF_SAMPLE_REGS_ABI_64 };
#elif defined(__aarch64__)
enum { REG_FP = 29, REG_STACK = 31, REG_PC = 32, REG_ABI_64 = PERF_SAMPLE_REGS_ABI_64 };
#else
enum { REG_FP = 0, REG_STACK = 1, REG_PC = 2, REG_ABI_64 = -1 };
#endif

struct samples {
    struct perf_ring_list rings;
    uint64_t lost;
    union {
        struct perf_event_header header;
        uint8_t bytes[PERF_RING_RECORD];
    } record;
};

/* MARK: Opening */

struct samples *samples_open(unsigned rate)
{
    struct perf_event_attr attr = {
        .size = sizeof attr,
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_CPU_CLOCK,
        .sample_type =
            PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
        .sample_period = UINT64_C(1000000000) / (rate ? rate : 1),
        .sample_regs_user =
            UINT64_C(1) << REG_FP | UINT64_C(1) << REG_STACK | UINT64_C(1) << REG_PC,
        .sample_stack_user = STACK_SIZE,
        .disabled = 1,
        .inherit = 1,
        .enable_on_exec = 1,
        .exclude_hv = 1,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
    };
    struct samples *samples = calloc(1, sizeof *samples);
    bool open;
    int reason;
    if (!samples)
        return NULL;
    open = perf_rings_open(&samples->rings, &attr, ROOM, ROOM);
    if (!open && (errno == EACCES || errno == EPERM)) {
        attr.exclude_kernel = 1;
        open = perf_rings_open(&samples->rings, &attr, ROOM, ROOM);
    }
    if (open)
        return samples;
    reason = errno;
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
 *   header | pid, tid | time | abi | fp, sp, pc | size | stack, of that size | how much of it is filled
 *
 * Without registers (abi 0) the size of the stack is 0, too.
 */
static bool understand(const struct samples *s, struct cpu_sample *sample)
{
    const size_t fixed = sizeof s->record.header + 7 * sizeof(uint64_t);
    uint64_t words[7], filled, size;
    uint32_t ids[2];
    if (s->record.header.size < fixed + sizeof(uint64_t))
        return false;
    memcpy(words, s->record.bytes + sizeof s->record.header, sizeof words);
    memcpy(ids, words, sizeof ids);
    size = words[6];
    if (words[2] != (uint64_t)REG_ABI_64)
        return false;
    *sample = (struct cpu_sample){.ns = (int64_t)words[1],
                                  .pid = ids[0],
                                  .tid = ids[1],
                                  .fp = words[3],
                                  .sp = words[4],
                                  .pc = words[5],
                                  .stack = s->record.bytes + fixed};
    if (size == 0 || size > s->record.header.size - fixed - sizeof filled)
        return size == 0;
    memcpy(&filled, s->record.bytes + fixed + size, sizeof filled);
    sample->stack_size = (size_t)(filled < size ? filled : size);
    return true;
}

void samples_read(struct samples *s, void (*take)(void *context, const struct cpu_sample *sample),
                  void *context)
{
    struct cpu_sample sample;
    uint64_t lost[2];
    for (size_t i = 0; i < s->rings.count; i++) {
        while (perf_ring_next(&s->rings.rings[i], &s->record.header)) {
            if (s->record.header.type == PERF_RECORD_SAMPLE && understand(s, &sample)) {
                take(context, &sample);
            } else if (s->record.header.type == PERF_RECORD_LOST &&
                       s->record.header.size >= sizeof s->record.header + sizeof lost) {
                memcpy(lost, s->record.bytes + sizeof s->record.header, sizeof lost);
                s->lost += lost[1];
            }
        }
    }
}

uint64_t samples_lost(const struct samples *samples)
{
    return samples ? samples->lost : 0;
}
