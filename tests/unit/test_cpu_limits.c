/* What other programs take of the machine, from the first look at it to the last
 * (collect/cpu_limits.h). */
#include <stdint.h>

#include "../lib/unit.h"
#include "collect/cpu_limits.h"

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
