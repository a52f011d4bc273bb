/* The parts of the merge that are not hot: the other heap operations, and the selection of a
 * merge. */
#include "read/v2/merge.h"

/* Events too late to be sound come first, to be dropped. */
static int64_t time_of(const struct v2_cursor *c)
{
    return c->last_ns <= c->bound_ns ? c->last_ns : INT64_MIN;
}

void v2_frontier_push(struct v2_frontier *frontier, struct v2_cursor *cursor)
{
    struct v2_head head = {.time_ns = time_of(cursor), .cursor = cursor};
    v2_heads_up(frontier->heads, frontier->count++, head);
}

void v2_frontier_update(struct v2_frontier *frontier, size_t i)
{
    struct v2_head head = frontier->heads[i];
    head.time_ns = time_of(head.cursor);
    if (v2_heads_up(frontier->heads, i, head) == i)
        v2_heads_down(frontier->heads, frontier->count, i, head);
}

/* Moves the entry to the root as if it were the smallest, and removes it there. */
void v2_frontier_remove(struct v2_frontier *frontier, size_t i)
{
    struct v2_head *heads = frontier->heads;
    for (; i > 0; i = (i - 1) / 2)
        heads[i] = heads[(i - 1) / 2];
    struct v2_head last = heads[--frontier->count];
    if (frontier->count > 0)
        v2_heads_down(heads, frontier->count, 0, last);
}

v2_merge_fn *v2_merge_best(void)
{
#ifdef TRAIL_HAVE_BMI2
    if (__builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2"))
        return v2_merge_bmi2;
#endif
    return v2_merge_any;
}
