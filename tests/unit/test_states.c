/* The time that a thread spends on a CPU within a wait (collect/states.h). */
#include <stdint.h>

#include "../lib/unit.h"
#include "collect/states.h"

TEST(moments_on_a_cpu_add_up)
{
    struct oncpu oncpu = {.on_since = 300, .on_ns = 20};
    state_end_moment(&oncpu, 350);
    assert_int_equal(oncpu.on_ns, 20 + 50);
    assert_int_equal(oncpu.on_since, -1);
    /* None is under way. */
    state_end_moment(&oncpu, 400);
    assert_int_equal(oncpu.on_ns, 20 + 50);
}
