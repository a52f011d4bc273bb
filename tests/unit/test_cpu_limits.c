/* What other programs take of the machine, and the CPUs that the threads may use
 * (collect/cpu_limits.h). */
#include <stdint.h>
#include <stdio.h>

#include "../lib/unit.h"
#include "collect/collect.h"
#include "collect/cpu_limits.h"

/* MARK: The machine */

/* Each process of a trace is looked at: between two of them the kernel's clock may not tick. */
TEST(a_look_at_several_processes_is_one_look)
{
    struct cpu_limits limits = {0};
    cpu_limits_machine(&limits, 1000, 10);
    cpu_limits_machine(&limits, 1000, 10);
    assert_int_equal(limits.last.at_ns, limits.first.at_ns);
    assert_int_equal(limits.last.recorded_ns, limits.first.recorded_ns);
    cpu_limits_machine(&limits, 2000, 30);
    assert_int_equal(limits.first.at_ns, 1000);
    assert_int_equal(limits.last.at_ns, 2000);
    cpu_limits_dispose(&limits);
}

/* MARK: CPUs */

static char cpus[32]; /* the number and the list of the row that was written */

void __wrap_trace_recorded(struct trace *trace, const trail_recorded *row);
void __wrap_trace_recorded(struct trace *trace, const trail_recorded *row)
{
    (void)trace;
    assert_int_equal(row->what, TRAIL_RECORDED_CPUS);
    (void)snprintf(cpus, sizeof cpus, "%d: %.*s", (int)row->count, (int)row->name.size,
                   row->name.data);
}

/* Returns the CPUs of threads of which each may use one, by how often each wanted it. */
static const char *cpus_of(const uint64_t *counts, size_t count)
{
    struct cpu_limits limits = {.set_count = count};
    for (size_t i = 0; i < count; i++) {
        CPU_SET(i, &limits.sets[i].set);
        limits.sets[i].count = counts[i];
    }
    *cpus = '\0';
    cpu_limits_write(&limits, NULL);
    return cpus;
}

/* Those of rare threads count only beyond a tenth of all. */
TEST(cpus_are_those_of_nine_in_ten_looks)
{
    assert_string_equal(cpus_of((uint64_t[]){5, 5}, 2), "2: 0-1");
    assert_string_equal(cpus_of((uint64_t[]){18, 2}, 2), "1: 0");
    assert_string_equal(cpus_of((uint64_t[]){17, 3}, 2), "2: 0-1");
    assert_string_equal(cpus_of((uint64_t[]){1, 18, 1}, 3), "1: 1");
    assert_string_equal(cpus_of((uint64_t[]){2, 17, 1}, 3), "2: 1-2");
    assert_string_equal(cpus_of((uint64_t[]){0, 0}, 2), "");
}
