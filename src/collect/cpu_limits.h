/*
 * What keeps a recording's threads from CPUs: their affinity and scheduling class, the quota of
 * their control group, and other programs. All of it is read from outside the program, a few times
 * a second.
 */
#pragma once

#include <sched.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cpu_quota.h"
#include "base/idmap.h"

struct collect;
struct trace;

/* CPU time since boot, and CLOCK_MONOTONIC. */
struct cpu_reading {
    int64_t at_ns, busy_ns, recorded_ns;
};

#define CPU_LIMITS_SETS 8

/* Zero-initialised: empty; cpu_limits_dispose frees the contents. */
struct cpu_limits {
    struct cpu_reading first, last;
    struct cpu_quota quota;
    /* Sets of CPUs that threads may use, and how often a thread with such a set wanted a CPU. */
    struct cpu_set_count {
        cpu_set_t set;
        uint64_t count;
    } sets[CPU_LIMITS_SETS];
    size_t set_count;
    struct cpu_setting *settings; /* each differs from the same thread's previous one */
    size_t count, capacity;
    struct idmap last_of; /* TID to the number of its last setting */
    uint64_t looks;
};

/* The interval between looks. */
#define CPU_LIMITS_NS 100000000

/* Looks at some threads of a process, and for the CPU quota of the first process's control
 * group. */
void cpu_limits_look(struct cpu_limits *limits, pid_t pid, const struct collect *collect);

/* Returns the CPU time of the children that a process has waited for, in ns. */
int64_t cpu_limits_children_ns(pid_t pid);

/* Reads the machine's CPU time, once in a look, which begins at `at_ns`. `recorded_ns`: the CPU
 * time of the recorded processes so far. */
void cpu_limits_machine(struct cpu_limits *limits, int64_t at_ns, int64_t recorded_ns);

/* Writes the rows of a trace (wire/recorded.h). */
void cpu_limits_write(const struct cpu_limits *limits, struct trace *trace);

void cpu_limits_dispose(struct cpu_limits *limits);
