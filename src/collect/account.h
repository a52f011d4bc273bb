/* What the recording took and missed: its summaries, and the rows at the end of its trace
 * (wire/recorded.h). */
#ifndef TRAIL_COLLECT_ACCOUNT_H
#define TRAIL_COLLECT_ACCOUNT_H

#include "collect/recorder_state.h"

/* Adds the summary of a program. */
void account_add(struct collect_summary *summary, struct collect *collect);

/* The summary of a recorded process, with the fields that the recorder sets. */
void account_summarize(const struct recorder *r, const struct recorded *process,
                       struct collect_summary *summary);

/*
 * Whether a process of one thread hardly ran, and mostly waited for others: for a child, for a
 * signal, as timeout(1) does for SIGCHLD, or in a single long poll, as bwrap(1) does.
 */
bool account_only_waits(const struct collect_summary *summary);

/*
 * The summary of the trace that all processes share. If the program only waits, it and the processes
 * below it that only wait are left out of the times and places; returns how many are.
 */
size_t account_summarize_all(const struct recorder *r, struct collect_summary *summary);

/* The CPU time of a process: exact if the kernel's context switches are known, else the kernel's
 * last reading. */
int64_t account_cpu_ns(const struct recorded *process, const struct collect_summary *summary);

/* Writes the rows of a trace whose events are all written. */
void account_write(const struct recorder *r, const struct recorded_trace *to);

#endif
