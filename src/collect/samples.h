/*
 * CPU samples from the kernel: where a thread was on its CPU, a number of times in each second of
 * its CPU time. No signal is sent to the program, and no code runs in it: the kernel copies the
 * registers and the top of the stack, and the stack is walked here.
 *
 * Opened and read in the same way as switches (switches.h).
 */
#pragma once

#include <stdint.h>

#include "collect/perf_stack.h"

struct samples;

/*
 * Opens samples, `rate` per second. NULL with errno. If the kernel does not allow sampling of its
 * own code, as for most users, the samples cover only the program's code.
 */
struct samples *samples_open(unsigned rate);
void samples_close(struct samples *samples);
void samples_read(struct samples *samples,
                  void (*take)(void *context, const struct cpu_sample *sample), void *context);
uint64_t samples_lost(const struct samples *samples);
