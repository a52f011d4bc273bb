/* The kernel's context switches and CPU samples of all processes. */
#pragma once

#include "collect/recorder_state.h"

/* False with *err: the requested events cannot be recorded. */
bool recorder_open_switches(struct recorder *r, trail_error *err);
bool recorder_open_samples(struct recorder *r, trail_error *err);
/* Drops records while recording is off, and records of unknown processes. */
void recorder_read_kernel(struct recorder *r, int64_t before_ns);
/*
 * Closes the kernel's events while they cost too much: see switch_pause.h. All records up to
 * `read_ns` must have been read; of later ones, only the ends of spans of lost records have.
 */
void recorder_limit_switches(struct recorder *r, int64_t read_ns);
