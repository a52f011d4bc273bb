/* Why threads had no CPU: see why_ready.h. */
#include "diagnose/why_ready.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "base/share.h"

/* Programs that use less of a CPU, and a quota that takes less of the time, explain nothing. */
#define OTHERS_LEAST   0.1
#define THROTTLE_LEAST 0.05
/* Without other programs, this part of what was ready would have run. */
#define OTHERS_MOST 0.5

/* NULL: the trace does not have it. */
struct limits {
    const trail_recorded *machine, *cpus, *quota;
    uint64_t pinned; /* threads that may use only some of the CPUs */
};

/* A trace merged from several recordings has several of each. */
static struct limits limits_of(const trail_reader *reader)
{
    const trail_recorded *rows;
    size_t count = trail_reader_recorded(reader, &rows), machines = 0;
    struct limits limits = {0};
    for (size_t i = 0; i < count; i++) {
        if (rows[i].what == TRAIL_RECORDED_CPUS)
            limits.cpus = &rows[i];
        else if (rows[i].what == TRAIL_RECORDED_QUOTA)
            limits.quota = &rows[i];
        else if (rows[i].what == TRAIL_RECORDED_MACHINE) {
            limits.machine = &rows[i];
            machines++;
        }
    }
    for (size_t i = 0; i < count && machines == 1; i++)
        limits.pinned += rows[i].what == TRAIL_RECORDED_THREAD && rows[i].count > 0 &&
                         rows[i].count < limits.machine->count;
    return machines == 1 ? limits : (struct limits){0};
}

static const char *by_figures(double wanted, double ran, uint64_t slots)
{
    if (slots > 1 && ran < 1.1)
        return "hardly more than one ran at a time: they are bound to one CPU (affinity, CPU "
               "quota), or other programs had the others";
    if (wanted <= (double)slots)
        return "other programs had the CPUs";
    if (ran < 0.8 * (double)slots)
        return "more of them were ready than there are CPUs, and other programs had some of the "
               "CPUs";
    return "more of them want to run than there are CPUs for the program";
}

__attribute__((format(printf, 2, 3))) static void add(char *text, const char *format, ...)
{
    size_t used = strlen(text);
    va_list arguments;
    if (used > 0 && used < WHY_READY_SIZE)
        used += (size_t)snprintf(text + used, WHY_READY_SIZE - used, ", and ");
    if (used >= WHY_READY_SIZE)
        return;
    va_start(arguments, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start is right above. */
    (void)vsnprintf(text + used, WHY_READY_SIZE - used, format, arguments);
    va_end(arguments);
}

static void add_affinity(const struct limits *limits, double wanted, char *text)
{
    const trail_recorded *cpus = limits->cpus;
    if (!cpus || cpus->count >= limits->machine->count || wanted <= (double)cpus->count) {
        if (limits->pinned > 0)
            add(text, "%" PRIu64 " thread%s may use only some of the CPUs (affinity)",
                limits->pinned, limits->pinned == 1 ? "" : "s");
        return;
    }
    add(text, "those that wanted a CPU may use CPU%s %.*s only, of %" PRIu64 " (affinity)",
        cpus->count == 1 ? "" : "s", (int)(cpus->name.size < 64 ? cpus->name.size : 64),
        cpus->name.size ? cpus->name.data : "", limits->machine->count);
}

static void add_quota(const struct limits *limits, int64_t length_ns, char *text)
{
    char duration[DURATION_SIZE];
    if (!limits->quota || (double)limits->quota->cpu_ns < THROTTLE_LEAST * (double)length_ns)
        return;
    (void)duration_text(duration, limits->quota->cpu_ns, DURATION_WORDS);
    add(text, "the quota of their control group, %.2f CPUs, stopped them for %s, summed over CPUs",
        (double)limits->quota->count / 1000, duration);
}

/* What others used is given to those that were ready, up to the machine's CPUs. */
static bool is_of_others(const trail_recorded *machine, double wanted, double ran, double used)
{
    double could = wanted < (double)machine->count ? wanted : (double)machine->count;
    if (could > ran + used)
        could = ran + used;
    return could - ran >= OTHERS_MOST * (wanted - ran);
}

static bool add_others(const struct limits *limits, double wanted, double ran, char *text)
{
    const trail_recorded *machine = limits->machine;
    bool only = *text == '\0';
    double used = share_of(machine->cpu_ns, machine->recorder_ns);
    if (used < OTHERS_LEAST || wanted + used <= (double)machine->count)
        return false;
    add(text, "other programs used up to %.1f of the machine's %" PRIu64 " CPUs", used,
        machine->count);
    return only && is_of_others(machine, wanted, ran, used);
}

enum why_ready why_ready(const trail_reader *reader, double wanted, double ran, uint64_t slots,
                         int64_t length_ns, char *text)
{
    struct limits limits = limits_of(reader);
    bool others = false;
    *text = '\0';
    if (limits.machine) {
        add_affinity(&limits, wanted, text);
        add_quota(&limits, length_ns, text);
        others = add_others(&limits, wanted, ran, text);
    }
    if (*text)
        return others ? WHY_READY_OTHERS : WHY_READY_OWN;
    if (limits.machine && wanted <= (double)limits.machine->count) {
        add(text, "neither their affinity, nor a quota, nor what other programs used on average "
                  "explains it");
        return WHY_READY_UNKNOWN;
    }
    add(text, "%s",
        limits.machine ? "more of them want to run than the machine has CPUs"
                       : by_figures(wanted, ran, slots));
    return WHY_READY_OWN;
}

bool why_ready_has_limits(const trail_reader *reader)
{
    return limits_of(reader).machine != NULL;
}

double why_ready_used_by_others(const trail_reader *reader)
{
    const trail_recorded *machine = limits_of(reader).machine;
    double used = machine ? share_of(machine->cpu_ns, machine->recorder_ns) : 0;
    return used >= OTHERS_LEAST ? used : 0;
}

bool why_ready_not_by_others(const trail_reader *reader)
{
    const trail_recorded *machine = limits_of(reader).machine;
    return machine && why_ready_used_by_others(reader) == 0;
}
