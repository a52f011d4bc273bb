/* What was recorded and missed: its summaries, and the rows at the end of its trace
 * (wire/recorded.h). */
#pragma once

#include "collect/recorder_state.h"

/* Adds the summary of one program. */
void account_add(struct collect_summary *summary, struct collect *collect);

/* The summary of a recorded process, with the fields that the recorder sets. */
void account_summarize(const struct recorder *r, const struct recorded *process,
                       struct collect_summary *summary);

/*
 * Whether a single-threaded process hardly ran and spent most of its time waiting for others: for a
 * child, for a signal, as timeout(1) does for SIGCHLD, or in a single long poll, as bwrap(1) does.
 */
bool account_only_waits(const struct collect_summary *summary);

/*
 * The summary of the trace that all processes share. If the program only waits, the times and
 * places of it, and of the processes below it that only wait, are left out; returns the number of
 * such processes.
 */
size_t account_summarize_all(const struct recorder *r, struct collect_summary *summary);

/* The CPU time of a process in the recording: exact if all of the kernel's context switches are
 * known, else by the last reading of its clock. */
int64_t account_cpu_ns(const struct recorded *process, const struct collect_summary *summary);

/* Writes the closing rows of a trace whose events have all been written. */
void account_write(const struct recorder *r, const struct recorded_trace *to);
