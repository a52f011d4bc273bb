/* How many CPUs a process may use: its control group's limit (cgroups(7)) and its affinity. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A control group's limit (cpu.max of cgroup v2, cpu.cfs_quota_us of v1) and throttled time. */
struct cpu_quota {
    char folder[256]; /* "": no limit */
    bool is_v1;
    uint64_t thousandths; /* of a CPU */
    int64_t first_ns, last_ns;
};

/* Finds the limit of a process, if it has one; *quota is zero before. */
void cpu_quota_find(struct cpu_quota *quota, pid_t pid);

/* Returns the throttled time so far; the last known value if the group is gone. */
int64_t cpu_quota_throttled_ns(const struct cpu_quota *quota);

/* Returns how many CPUs this thread may use at once, rounded up: at least 1. */
unsigned cpu_quota_usable(void);
