/* The kernel's context switches and CPU samples of all processes. */
#ifndef TRAIL_COLLECT_RECORDER_KERNEL_H
#define TRAIL_COLLECT_RECORDER_KERNEL_H

#include "collect/recorder_state.h"

/* False with *err: what was asked for cannot be recorded. */
bool recorder_open_switches(struct recorder *r, trail_error *err);
bool recorder_open_samples(struct recorder *r, trail_error *err);
/* Records are dropped while recording is off, and those of processes that are not known. */
void recorder_read_kernel(struct recorder *r, int64_t before_ns);
/*
 * Closes the kernel's events while they cost too much: see switch_pause.h. All records of before
 * `read_ns` were read, and of those behind it the ends of spans whose records were lost.
 */
void recorder_limit_switches(struct recorder *r, int64_t read_ns);

#endif
