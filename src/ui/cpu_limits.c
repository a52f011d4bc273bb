/* Prints what kept threads from CPUs: see cpu_limits.h. */
#include "ui/cpu_limits.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/share.h"
#include "ui/recorded.h"
#include "ui/show.h"

enum { MOST_THREADS = 20 };

/* Returns the first row of that kind with a count; a row of zeros if there is none. */
static trail_recorded first_of(const trail_reader *reader, trail_recorded_what what)
{
    RECORDED_EACH(row, reader, what)
        if (row->count > 0)
            return *row;
    return (trail_recorded){0};
}

void cpu_limits_find(const trail_reader *reader, struct cpu_limits *limits)
{
    *limits = (struct cpu_limits){
        .machine = first_of(reader, TRAIL_RECORDED_MACHINE),
        .cpus = first_of(reader, TRAIL_RECORDED_CPUS),
        .quota = first_of(reader, TRAIL_RECORDED_QUOTA),
    };
    if (limits->cpus.name.size > sizeof limits->list)
        limits->cpus.name.size = sizeof limits->list;
    if (limits->cpus.name.size > 0)
        memcpy(limits->list, limits->cpus.name.data, limits->cpus.name.size);
    limits->cpus.name.data = NULL; /* the reader's */
}

static trail_string list_of(const struct cpu_limits *limits)
{
    return (trail_string){limits->list, limits->cpus.name.size};
}

void cpu_limits_show(const struct cpu_limits *limits, const char *before)
{
    const trail_recorded *machine = &limits->machine, *cpus = &limits->cpus;
    const trail_recorded *quota = &limits->quota;
    char text[SHOW_SIZE];
    if (machine->count)
        printf("%sCPUs: %" PRIu64 ", other programs used up to %.2f on average\n", before,
               machine->count, share_of(machine->cpu_ns, machine->recorder_ns));
    if (cpus->count < machine->count && cpus->count) {
        printf("%saffinity: threads that wanted a CPU may use only CPU%s ", before,
               cpus->count == 1 ? "" : "s");
        show_plain(list_of(limits));
        putchar('\n');
    }
    if (quota->count)
        printf("%squota of the control group: %.2f CPUs, throttled for %s, summed over CPUs\n",
               before, (double)quota->count / 1000, show_duration(text, quota->cpu_ns));
}

void cpu_limits_show_threads(const trail_reader *reader)
{
    size_t found = 0;
    RECORDED_EACH(row, reader, TRAIL_RECORDED_THREAD) {
        if (++found > MOST_THREADS)
            continue;
        if (found == 1)
            printf("\nscheduling, where it is not the default:\n");
        printf("TID %6" PRIu64 "  ", row->pid);
        show_plain(row->name);
        putchar('\n');
    }
    if (found > MOST_THREADS)
        printf("... and %zu more: --json\n", found - MOST_THREADS);
}

void cpu_limits_json(const struct cpu_limits *limits, struct json *json)
{
    if (!limits->machine.count && !limits->cpus.count && !limits->quota.count)
        return;
    json_open(json, "cpus", '{');
    if (limits->machine.count) {
        json_number(json, "count", limits->machine.count);
        json_signed(json, "others_ns", limits->machine.cpu_ns);
        json_signed(json, "others_in_ns", limits->machine.recorder_ns);
    }
    if (limits->cpus.count) {
        json_number(json, "allowed", limits->cpus.count);
        json_text(json, "allowed_list", list_of(limits));
    }
    if (limits->quota.count) {
        json_number(json, "quota_thousandths", limits->quota.count);
        json_signed(json, "throttled_ns", limits->quota.cpu_ns);
    }
    json_close(json, '}');
}

void cpu_limits_json_thread(const trail_reader *reader, struct json *json, int64_t tid)
{
    size_t found = 0;
    RECORDED_EACH(row, reader, TRAIL_RECORDED_THREAD) {
        if (row->pid != (uint64_t)tid)
            continue;
        if (found++ == 0)
            json_open(json, "scheduling", '[');
        json_text(json, NULL, row->name);
    }
    if (found > 0)
        json_close(json, ']');
}
