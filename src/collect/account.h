/* What the recording took and missed, as rows at the end of its trace (wire/recorded.h). */
#ifndef TRAIL_COLLECT_ACCOUNT_H
#define TRAIL_COLLECT_ACCOUNT_H

#include <stdint.h>

struct collect_summary;
struct recorded;
struct recorded_trace;
struct recorder;

/* Of a process, in ns: exact if the kernel's context switches are known, else what the kernel had when it was asked last. */
int64_t account_cpu_ns(const struct recorded *process, const struct collect_summary *summary);

/* Writes the rows of a trace whose events are all written. */
void account_write(const struct recorder *r, const struct recorded_trace *to);

#endif
