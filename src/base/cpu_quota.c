/* How many CPUs a process may use: see cpu_quota.h. */
#include "base/cpu_quota.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/small_file.h"

/* Reads "KEY NUMBER" from a file in the folder; -1: not found. */
static int64_t number_of_key(const char *folder, const char *file, const char *key)
{
    char text[1024];
    const char *at;
    if (!small_file_text(text, sizeof text, "%s/%s", folder, file) || !(at = strstr(text, key)))
        return -1;
    return strtoll(at + strlen(key), NULL, 10);
}

int64_t cpu_quota_throttled_ns(const struct cpu_quota *quota)
{
    int64_t value = number_of_key(quota->folder, "cpu.stat",
                                  quota->is_v1 ? "throttled_time " : "throttled_usec ");
    return value < 0 ? quota->last_ns : quota->is_v1 ? value : value * 1000;
}

/* Returns a folder's own limit in thousandths of a CPU; 0: it has none. */
static uint64_t limit_of(const char *folder, bool is_v1)
{
    char text[64], *end;
    long long quota, period;
    if (is_v1) {
        quota = number_of_key(folder, "cpu.cfs_quota_us", "");
        period = number_of_key(folder, "cpu.cfs_period_us", "");
    } else {
        if (!small_file_text(text, sizeof text, "%s/cpu.max", folder) || *text == 'm')
            return 0;
        quota = strtoll(text, &end, 10);
        period = strtoll(end, NULL, 10);
    }
    return quota > 0 && period > 0 ? (uint64_t)(quota * 1000 / period) : 0;
}

/* Whether a list of controllers, "cpu,cpuacct:", has `cpu`. */
static bool has_cpu(const char *list)
{
    size_t length = strcspn(list, ":");
    for (const char *at = list; at < list + length; at += strcspn(at, ",:") + 1) {
        if (strncmp(at, "cpu", 3) == 0 && (at[3] == ',' || at[3] == ':'))
            return true;
    }
    return false;
}

/* Takes the smallest limit of a control group and its ancestors. */
static void take_limits(struct cpu_quota *quota, const char *base, const char *group, bool is_v1)
{
    char folder[sizeof quota->folder];
    size_t least = strlen(base);
    int n = snprintf(folder, sizeof folder, "%s%s", base, strcmp(group, "/") == 0 ? "" : group);
    while (n > 0 && (size_t)n < sizeof folder && strlen(folder) >= least) {
        uint64_t limit = limit_of(folder, is_v1);
        char *slash = strrchr(folder, '/');
        if (limit > 0 && (quota->thousandths == 0 || limit < quota->thousandths)) {
            quota->thousandths = limit;
            quota->is_v1 = is_v1;
            memcpy(quota->folder, folder, sizeof folder);
        }
        *slash = '\0';
    }
}

/* See cgroups(7): "0::/a/b" of version 2, "4:cpu,cpuacct:/a/b" of version 1. */
void cpu_quota_find(struct cpu_quota *quota, pid_t pid)
{
    char text[4096], *save, *at;
    if (!small_file_text(text, sizeof text, "/proc/%d/cgroup", pid))
        return;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *list = strchr(line, ':');
        if (!list || !(at = strchr(list + 1, ':')))
            continue;
        if (list + 1 == at)
            take_limits(quota, "/sys/fs/cgroup", at + 1, false);
        else if (has_cpu(list + 1))
            take_limits(quota, "/sys/fs/cgroup/cpu", at + 1, true);
    }
    if (quota->thousandths > 0)
        quota->first_ns = quota->last_ns = cpu_quota_throttled_ns(quota);
}

unsigned cpu_quota_usable(void)
{
    cpu_set_t set;
    struct cpu_quota quota = {0};
    uint64_t cpus = 1;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        cpus = (uint64_t)CPU_COUNT(&set);
    if (cpus > 1)
        cpu_quota_find(&quota, getpid());
    uint64_t allowed = (quota.thousandths + 999) / 1000;
    return (unsigned)(quota.thousandths > 0 && allowed < cpus ? allowed : cpus);
}
