/*
 * CPU samples from the kernel: where a thread was on its CPU, so many times in a second of its CPU time. No signal
 * is sent to the program, and nothing runs in it: the kernel copies the registers and the top of the stack, and
 * the stack is walked here.
 *
 * Opened and read as switches are (switches.h).
 */
#ifndef TRAIL_COLLECT_SAMPLES_H
#define TRAIL_COLLECT_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Time is CLOCK_MONOTONIC's. The stack is good during the call. */
struct cpu_sample {
    int64_t ns;
    uint32_t pid, tid;
    uint64_t pc, sp, fp;
    const uint8_t *stack; /* from sp on */
    size_t stack_size;
};

struct samples;

/*
 * `rate` a second. NULL with errno. Where the kernel does not let us see the time that threads spend in it, as is so
 * for most users, those are of the program's own code only.
 */
struct samples *samples_open(unsigned rate);
void samples_close(struct samples *samples);
void samples_read(struct samples *samples,
                  void (*take)(void *context, const struct cpu_sample *sample), void *context);
uint64_t samples_lost(const struct samples *samples);

#endif
