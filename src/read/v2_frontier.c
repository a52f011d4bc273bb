/*
 * The parts of the merge that need no speed: the heap's other operations, and the choice of a
 * merge.
 */
#include "read/v2_merge.h"

#include "read/v2_sift.h"

void v2_frontier_push(struct v2_frontier *frontier, struct v2_cursor *cursor)
{
    frontier->heads[frontier->count] =
        (struct v2_head){.time_ns = cursor->last_ns, .cursor = cursor};
    v2_sift_up(frontier->heads, frontier->count++);
}

void v2_frontier_update(struct v2_frontier *frontier, size_t i)
{
    frontier->heads[i].time_ns = frontier->heads[i].cursor->last_ns;
    if (v2_sift_up(frontier->heads, i) == i)
        v2_sift_down(frontier->heads, frontier->count, i);
}

/* The entry goes to the root as if it were the smallest, and from there out. */
void v2_frontier_remove(struct v2_frontier *frontier, size_t i)
{
    struct v2_head *heads = frontier->heads;
    for (; i > 0; i = (i - 1) / 2)
        heads[i] = heads[(i - 1) / 2];
    heads[0] = heads[--frontier->count];
    if (frontier->count > 0)
        v2_sift_down(heads, frontier->count, 0);
}

v2_merge_fn *v2_merge_best(void)
{
#ifdef TRAIL_HAVE_BMI2
    if (__builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2"))
        return v2_merge_bmi2;
#endif
    return v2_merge_any;
}
