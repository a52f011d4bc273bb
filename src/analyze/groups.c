#include "analyze/groups.h"

#include <stdlib.h>

#include "analyze/goroutines.h"
#include "base/grow.h"
#include "base/order.h"

/* Times by name: a few, in order of first appearance. */
struct named_times {
    trail_named_time *items;
    size_t count, capacity;
};

struct group {
    trail_name name;
    uint64_t count, alive;
    trail_times sums; /* without its lists */
    struct named_times block, range;
    trail_histogram columns[TRAIL_COLUMNS];
};

const char *trail_column_name(trail_column column)
{
    static const char *const names[TRAIL_COLUMNS] = {
        [TRAIL_COLUMN_TOTAL] = "total",           [TRAIL_COLUMN_EXEC] = "exec",
        [TRAIL_COLUMN_SCHED_WAIT] = "sched-wait", [TRAIL_COLUMN_BLOCK] = "block",
        [TRAIL_COLUMN_SYSCALL] = "syscall",       [TRAIL_COLUMN_SYSCALL_BLOCK] = "syscall-block",
    };
    return (unsigned)column < TRAIL_COLUMNS ? names[column] : "?";
}

int64_t trail_times_column(const trail_times *times, trail_column column)
{
    int64_t sum = 0;
    switch (column) {
    case TRAIL_COLUMN_TOTAL:
        return times->total_ns;
    case TRAIL_COLUMN_EXEC:
        return times->exec_ns;
    case TRAIL_COLUMN_SCHED_WAIT:
        return times->sched_wait_ns;
    case TRAIL_COLUMN_SYSCALL:
        return times->syscall_ns;
    case TRAIL_COLUMN_SYSCALL_BLOCK:
        return times->syscall_block_ns;
    default:
        for (uint32_t i = 0; i < times->block_count; i++)
            ns_add(&sum, times->block[i].ns);
        return sum;
    }
}

trail_times trail_times_corrected(const trail_times *times)
{
    trail_times right = *times;
    ns_add(&right.sched_wait_ns, ns_between(times->open_block_ns, 0));
    ns_add(&right.syscall_ns, ns_between(times->open_block_ns, 0));
    ns_add(&right.syscall_block_ns, times->open_block_ns);
    right.open_block_ns = 0;
    return right;
}

static struct group *group_get(struct groups *groups, trail_name name)
{
    struct group *group = idmap_find(&groups->by_name, name);
    if (group)
        return group;
    if (!GROW(groups->items, groups->capacity, groups->count + 1))
        return NULL;
    group = calloc(1, sizeof *group);
    if (!group)
        return NULL;
    group->name = name;
    groups->items[groups->count++] = group;
    return idmap_put(&groups->by_name, name, group) ? group : NULL;
}

static bool add_list(struct named_times *to, const trail_named_time *items, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        size_t at = 0;
        while (at < to->count && to->items[at].name != items[i].name)
            at++;
        if (at == to->count) {
            if (!GROW_SMALL(to->items, to->capacity, to->count + 1))
                return false;
            to->items[to->count++] = (trail_named_time){.name = items[i].name};
        }
        ns_add(&to->items[at].ns, items[i].ns);
    }
    return true;
}

bool groups_add(struct groups *groups, trail_name name, const trail_times *times, bool alive)
{
    struct group *group = group_get(groups, name);
    if (!group)
        return false;
    group->count++;
    group->alive += alive;
    ns_add(&group->sums.exec_ns, times->exec_ns);
    ns_add(&group->sums.sched_wait_ns, times->sched_wait_ns);
    ns_add(&group->sums.syscall_ns, times->syscall_ns);
    ns_add(&group->sums.syscall_block_ns, times->syscall_block_ns);
    ns_add(&group->sums.total_ns, times->total_ns);
    ns_add(&group->sums.lost_ns, times->lost_ns);
    ns_add(&group->sums.open_block_ns, times->open_block_ns);
    for (int i = 0; groups->distributions && i < TRAIL_COLUMNS; i++)
        if (!trail_histogram_add(&group->columns[i], trail_times_column(times, (trail_column)i)))
            return false;
    return add_list(&group->block, times->block, times->block_count) &&
           add_list(&group->range, times->range, times->range_count);
}

static int by_total(const void *a, const void *b)
{
    const trail_group *x = a, *y = b;
    return ORDER(y->times.total_ns, x->times.total_ns) ?: ORDER(x->name, y->name);
}

bool groups_finish(struct groups *groups)
{
    groups->rows = calloc(groups->count + 1, sizeof *groups->rows);
    if (!groups->rows)
        return false;
    for (size_t i = 0; i < groups->count; i++) {
        const struct group *group = groups->items[i];
        trail_group *row = &groups->rows[i];
        *row = (trail_group){.name = group->name,
                             .count = group->count,
                             .alive = group->alive,
                             .times = group->sums,
                             .columns = groups->distributions ? group->columns : NULL};
        row->times.block = group->block.items;
        row->times.block_count = (uint32_t)group->block.count;
        row->times.range = group->range.items;
        row->times.range_count = (uint32_t)group->range.count;
    }
    qsort(groups->rows, groups->count, sizeof *groups->rows, by_total);
    return true;
}

void groups_clear(struct groups *groups)
{
    for (size_t i = 0; i < groups->count; i++) {
        free(groups->items[i]->block.items);
        free(groups->items[i]->range.items);
        for (int column = 0; column < TRAIL_COLUMNS; column++)
            trail_histogram_free(&groups->items[i]->columns[column]);
        free(groups->items[i]);
    }
    free(groups->items);
    free(groups->rows);
    idmap_free(&groups->by_name);
    *groups = (struct groups){.distributions = groups->distributions};
}
