/*
 * The end of a perf sample: the registers and the top of the stack that a walk needs
 * (perf_event_open(2)).
 *
 *   abi | fp, sp, pc | size | stack, of that size | how much of it is filled
 *
 * Without registers (abi 0) the size of the stack is 0, too.
 */
#pragma once

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Times are CLOCK_MONOTONIC. The stack is valid during the call. */
struct cpu_sample {
    int64_t ns;
    uint32_t pid, tid;
    uint64_t pc, sp, fp;
    const uint8_t *stack; /* from sp on */
    size_t stack_size;
};

/* Makes the event's samples end this way, with `size` bytes of the stack. */
void perf_stack_want(struct perf_event_attr *attr, uint32_t size);

/* Reads `size` bytes at `at` as the sample's registers and stack, which is not copied. False: the
 * sample has none. */
bool perf_stack_read(const uint8_t *at, size_t size, struct cpu_sample *sample);
