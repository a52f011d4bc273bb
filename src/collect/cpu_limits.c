/* What keeps threads from CPUs, read from outside: see cpu_limits.h. */
#include "collect/cpu_limits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/small_file.h"
#include "collect/parts.h"

/* Threads examined per look; settings kept; and how often to look for a quota, since the program
 * may be moved to another control group. */
enum { MOST_LOOKS = 16, MOST_SETTINGS = 4096, QUOTA_LOOKS = 8 };

struct cpu_setting {
    uint32_t tid, cpus;
    char text[96]; /* "": the default */
};

/* MARK: Threads */

/* Writes a CPU set as "0-2,4". */
static void put_cpus(const cpu_set_t *set, char *text, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < CPU_SETSIZE && used + 16 < size; i++) {
        size_t last = i;
        if (!CPU_ISSET(i, set))
            continue;
        while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, set))
            last++;
        used += (size_t)snprintf(text + used, size - used, "%s%zu", used ? "," : "", i);
        if (last > i)
            used += (size_t)snprintf(text + used, size - used, "-%zu", last);
        i = last;
    }
}

static bool has_all(const cpu_set_t *set)
{
    return CPU_COUNT(set) >= sysconf(_SC_NPROCESSORS_ONLN);
}

static const char *class_name(int class)
{
    switch (class) {
    case SCHED_FIFO:
        return "SCHED_FIFO";
    case SCHED_RR:
        return "SCHED_RR";
    case SCHED_BATCH:
        return "SCHED_BATCH";
    case SCHED_IDLE:
        return "SCHED_IDLE";
    case 6:
        return "SCHED_DEADLINE";
    default:
        return "";
    }
}

/* Describes settings that are not the default: "CPU 0; nice 5; SCHED_FIFO 10". False: no such
 * thread. */
static bool describe(pid_t tid, cpu_set_t *set, char *text, size_t size)
{
    char cpus[64] = "", nice_text[16] = "", class_text[32] = "";
    struct sched_param parameters = {0};
    int class = sched_getscheduler(tid), nice_value;
    if (class < 0 || sched_getaffinity(tid, sizeof *set, set) != 0)
        return false;
    class &= ~SCHED_RESET_ON_FORK;
    errno = 0;
    nice_value = getpriority(PRIO_PROCESS, (id_t)tid);
    if (errno == 0 && nice_value != 0)
        (void)snprintf(nice_text, sizeof nice_text, "; nice %d", nice_value);
    (void)sched_getparam(tid, &parameters);
    if (*class_name(class))
        (void)snprintf(class_text, sizeof class_text, "; %s", class_name(class));
    if (parameters.sched_priority > 0)
        (void)snprintf(class_text + strlen(class_text), sizeof class_text - strlen(class_text),
                       " %d", parameters.sched_priority);
    put_cpus(set, cpus, sizeof cpus);
    (void)snprintf(text, size, "%s%s%s%s", CPU_COUNT(set) == 1 ? "CPU " : "CPUs ", cpus, nice_text,
                   class_text);
    if (has_all(set) && !*nice_text && !*class_text)
        *text = '\0';
    return true;
}

/* Keeps a setting unless it is the thread's last one, or the default. */
static void keep_setting(struct cpu_limits *limits, uint32_t tid, const cpu_set_t *set,
                         const char *text)
{
    size_t last = (size_t)(uintptr_t)idmap_find(&limits->last_of, tid);
    if (strcmp(last ? limits->settings[last - 1].text : "", text) == 0 ||
        limits->count == MOST_SETTINGS ||
        !GROW(limits->settings, limits->capacity, limits->count + 1) ||
        !idmap_put(&limits->last_of, tid, (void *)(uintptr_t)(limits->count + 1)))
        return;
    struct cpu_setting *setting = &limits->settings[limits->count++];
    *setting = (struct cpu_setting){.tid = tid, .cpus = (uint32_t)CPU_COUNT(set)};
    (void)snprintf(setting->text, sizeof setting->text, "%s", text);
}

/* Whether a thread runs or is ready: it wants a CPU. */
static bool wants_cpu(pid_t pid, uint32_t tid)
{
    char text[512];
    const char *end;
    return small_file_text(text, sizeof text, "/proc/%d/task/%u/stat", pid, tid) &&
           (end = strrchr(text, ')')) && strncmp(end, ") R", 3) == 0;
}

static void count_set(struct cpu_limits *limits, const cpu_set_t *set)
{
    size_t i = 0;
    while (i < limits->set_count && !CPU_EQUAL(&limits->sets[i].set, set))
        i++;
    if (i == CPU_LIMITS_SETS)
        i--;
    if (i == limits->set_count)
        limits->sets[limits->set_count++].set = *set;
    CPU_OR(&limits->sets[i].set, &limits->sets[i].set, set);
    limits->sets[i].count++;
}

static void look_at_thread(struct cpu_limits *limits, pid_t pid, uint32_t tid)
{
    cpu_set_t set;
    char text[96];
    const struct process process = {.pid = pid};
    if (!process_has_thread(&process, tid) || !describe((pid_t)tid, &set, text, sizeof text))
        return;
    keep_setting(limits, tid, &set, text);
    if (wants_cpu(pid, tid))
        count_set(limits, &set);
}

void cpu_limits_look(struct cpu_limits *limits, pid_t pid, const struct collect *collect)
{
    size_t at = 0, live = 0, skip, number = 0;
    const struct thread *thread;
    if (limits->quota.thousandths > 0)
        limits->quota.last_ns = cpu_quota_throttled_ns(&limits->quota);
    else if (limits->looks % QUOTA_LOOKS == 0)
        cpu_quota_find(&limits->quota, pid);
    while ((thread = threads_next(collect, &at)))
        live += thread->slot && thread->tid;
    skip = live > MOST_LOOKS ? (size_t)limits->looks * MOST_LOOKS % live : 0;
    at = 0;
    while ((thread = threads_next(collect, &at))) {
        if (!thread->slot || !thread->tid || live == 0)
            continue;
        if ((number++ + live - skip) % live < MOST_LOOKS)
            look_at_thread(limits, pid, (uint32_t)thread->tid);
    }
    limits->looks++;
}

/* MARK: The machine */

static int64_t jiffies_to_ns(uint64_t jiffies)
{
    long rate = sysconf(_SC_CLK_TCK);
    return rate > 0 ? (int64_t)((double)jiffies * 1e9 / (double)rate) : 0;
}

int64_t cpu_limits_children_ns(pid_t pid)
{
    char text[512];
    const char *end;
    unsigned long long user = 0, system = 0;
    /* cutime and cstime are fields 16 and 17 in proc(5); ") S" ends with the third. */
    if (!small_file_text(text, sizeof text, "/proc/%d/stat", pid) || !(end = strrchr(text, ')')) ||
        sscanf(end + 3, "%*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu %llu", &user,
               &system) != 2)
        return 0;
    return jiffies_to_ns(user + system);
}

/* Adds up the non-idle times in the first line of /proc/stat: user, nice, system, irq, softirq,
 * steal. */
static int64_t busy_ns(void)
{
    char text[512];
    unsigned long long t[8];
    if (!small_file_text(text, sizeof text, "/proc/stat") ||
        sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &t[0], &t[1], &t[2], &t[3],
               &t[4], &t[5], &t[6], &t[7]) != 8)
        return 0;
    return jiffies_to_ns(t[0] + t[1] + t[2] + t[5] + t[6] + t[7]);
}

void cpu_limits_machine(struct cpu_limits *limits, int64_t at_ns, int64_t recorded_ns)
{
    int64_t own = (int64_t)clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    if (limits->last.at_ns == at_ns)
        return;
    limits->last = (struct cpu_reading){at_ns, busy_ns(), recorded_ns + own};
    if (!limits->first.at_ns)
        limits->first = limits->last;
}

/* MARK: Rows */

/* Writes the CPUs of the threads that wanted one in at least nine of ten looks. */
static void write_cpus(const struct cpu_limits *limits, struct trace *trace)
{
    char text[128] = "";
    uint64_t sum = 0, left;
    cpu_set_t all;
    CPU_ZERO(&all);
    for (size_t i = 0; i < limits->set_count; i++)
        sum += limits->sets[i].count;
    left = sum / 10;
    for (size_t i = 0; i < limits->set_count; i++) {
        if (limits->sets[i].count <= left)
            left -= limits->sets[i].count;
        else
            CPU_OR(&all, &all, &limits->sets[i].set);
    }
    if (sum == 0)
        return;
    put_cpus(&all, text, sizeof text);
    trace_recorded(trace, &(trail_recorded){.what = TRAIL_RECORDED_CPUS,
                                            .count = (uint64_t)CPU_COUNT(&all),
                                            .name = {text, strlen(text)}});
}

static void write_machine(const struct cpu_limits *limits, struct trace *trace)
{
    int64_t others = limits->last.busy_ns - limits->first.busy_ns -
                     (limits->last.recorded_ns - limits->first.recorded_ns);
    int64_t length = limits->last.at_ns - limits->first.at_ns;
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    if (cpus > 0 && length > 0 && limits->first.busy_ns > 0)
        trace_recorded(trace, &(trail_recorded){.what = TRAIL_RECORDED_MACHINE,
                                                .count = (uint64_t)cpus,
                                                .cpu_ns = others > 0 ? others : 0,
                                                .recorder_ns = length});
}

void cpu_limits_write(const struct cpu_limits *limits, struct trace *trace)
{
    write_machine(limits, trace);
    write_cpus(limits, trace);
    if (limits->quota.thousandths > 0)
        trace_recorded(trace,
                       &(trail_recorded){.what = TRAIL_RECORDED_QUOTA,
                                         .count = limits->quota.thousandths,
                                         .cpu_ns = limits->quota.last_ns - limits->quota.first_ns});
    for (size_t i = 0; i < limits->count; i++) {
        const struct cpu_setting *setting = &limits->settings[i];
        const char *text = *setting->text ? setting->text : "all CPUs";
        trace_recorded(trace, &(trail_recorded){.what = TRAIL_RECORDED_THREAD,
                                                .pid = setting->tid,
                                                .count = setting->cpus,
                                                .name = {text, strlen(text)}});
    }
}

void cpu_limits_dispose(struct cpu_limits *limits)
{
    free(limits->settings);
    idmap_free(&limits->last_of);
    *limits = (struct cpu_limits){0};
}
