/*
 * The recorder as the sum of its parts, which all change `struct recorder`:
 *
 *     recorder.c            when what is done: steps, pauses, the end
 *     recorder_claims.c     the spare area, and the process that claims it
 *     recorder_traces.c     the traces, their files, and what fails of them
 *     recorder_kernel.c     context switches and samples of all processes
 */
#ifndef TRAIL_COLLECT_RECORDER_PARTS_H
#define TRAIL_COLLECT_RECORDER_PARTS_H

#include <time.h>

#include "collect/recorder.h"

static inline int64_t recorder_now_ns(void)
{
    return (int64_t)clock_ns(CLOCK_MONOTONIC);
}

static inline bool recorder_is_on(const struct recorder *r)
{
    return r->begun && !r->stopped;
}

/* MARK: Claims */

/* Makes another spare, under the same descriptor. */
bool recorder_make_spare(struct recorder *r, trail_error *err);
/* Gives the spare to the process that has claimed it, and makes another. */
void recorder_hand_out(struct recorder *r);
/* The same without another: the recording ends. */
void recorder_look_at_spare(struct recorder *r);

bool recorder_process_has_ended(const struct recorder *r, const struct recorded *process);
/* Reads what a process is called, and its CPU time. */
void recorder_process_look_at(const struct recorder *r, struct recorded *process);
/* A process that ended before its title could be read is called by its program's file, which the area has. */
void recorder_process_title_by_program(const struct recorder *r, struct recorded *process,
                                       const struct area *area);
/* Takes note of the programs that the process has executed in others. */
void recorder_process_take_executed(struct recorder *r, struct recorded *process);
void recorder_process_close_pidfd(struct recorded *process);
void recorder_process_free(const struct recorder *r, struct recorded *process);

/* MARK: Traces */

/* Reports a failure of one trace. `path` NULL: the message names the file. */
void recorder_fail(struct recorder *r, const char *path, const trail_error *err);
/* Reports a failure in the change from one file of a trace to the next. */
void recorder_trace_look_for_loss(const struct recorder *r, struct recorded_trace *to);

/* Whether all processes have one trace. */
bool recorder_is_shared(const struct recorder *r);
/* Returns the trace of a process, which is opened if it is the first of that trace. NULL: the failure was reported. */
struct recorded_trace *recorder_trace_for(struct recorder *r, pid_t pid);
void recorder_trace_finish(struct recorder *r, struct recorded_trace *to);
void recorder_trace_snapshot(struct recorder *r, struct recorded_trace *to);
void recorder_trace_free(struct recorded_trace *to);

/* MARK: What the kernel reports */

/* False with *err: what was asked for cannot be recorded. */
bool recorder_open_switches(struct recorder *r, trail_error *err);
bool recorder_open_samples(struct recorder *r, trail_error *err);
/* Records are dropped while recording is off, and those of processes that are not known. */
void recorder_read_kernel(struct recorder *r, int64_t before_ns);
/*
 * Closes the kernel's events while they cost too much: see switch_pause.h. All records of before `read_ns` were read, and
 * of those behind it the ends of spans whose records were lost.
 */
void recorder_limit_switches(struct recorder *r, int64_t read_ns);

#endif
