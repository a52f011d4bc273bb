/* Compares the records of switches with the kernel's count of CPU time: see switch_cost.h. */
#include "collect/switch_cost.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/small_file.h"

/* The number of switches between two readings: with fewer, a switch that is in only one of the
 * counts would weigh too much. */
#define LEAST_SWITCHES 32
#define MOST_SWITCHES  1024

/* A larger difference has another cause. */
#define MOST_NS 50000

void switch_cost_forget(struct switch_cost *cost)
{
    cost->on_since = 0;
    cost->last.ns = 0;
    cost->due = cost->count;
}

void switch_cost_in(struct switch_cost *cost, int64_t ns)
{
    cost->on_since = ns;
    cost->count++;
}

bool switch_cost_out(struct switch_cost *cost, int64_t ns)
{
    if (!cost->on_since)
        return false;
    cost->on_ns += ns - cost->on_since;
    cost->on_since = 0;
    return cost->count > cost->due;
}

/* Reads the kernel's count; false: the thread has ended, or the kernel does not count. */
static bool read_count(const struct switch_cost *cost, pid_t pid, uint64_t tid,
                       struct switch_count *now)
{
    char text[128];
    *now = (struct switch_count){.on_ns = cost->on_ns, .count = cost->count};
    return small_file_text(text, sizeof text, "/proc/%d/task/%" PRIu64 "/schedstat", (int)pid,
                           tid) &&
           sscanf(text, "%" SCNd64 " %*d %" SCNd64, &now->ns, &now->times) == 2;
}

void switch_cost_want(struct switch_costs *costs, uint64_t serial)
{
    for (size_t i = 0; i < costs->count; i++) {
        if (costs->serials[i] == serial)
            return;
    }
    if (costs->count < SWITCH_COST_READS)
        costs->serials[costs->count++] = serial;
}

/*
 * Sets the thread's cost to that since the last reading, and moves the program's towards it. The
 * kernel may have switched to the thread again since the records were read: such times are assumed
 * to be as long as the others.
 */
static void compare(struct switch_cost *cost, struct switch_costs *costs,
                    const struct switch_count *now)
{
    double count = (double)(now->count - cost->last.count);
    double times = (double)(now->times - cost->last.times);
    double on_ns = (double)(now->on_ns - cost->last.on_ns);
    double ns = times < LEAST_SWITCHES / 2.0 || count < LEAST_SWITCHES
                    ? -1
                    : (double)(now->ns - cost->last.ns) / times - on_ns / count;
    if (ns < 0 || ns > MOST_NS)
        return;
    cost->ns = (int64_t)ns;
    costs->ns += costs->ns ? ((int64_t)ns - costs->ns) / 4 : (int64_t)ns;
}

static uint64_t clamp(uint64_t count)
{
    return count < LEAST_SWITCHES ? LEAST_SWITCHES : count > MOST_SWITCHES ? MOST_SWITCHES : count;
}

void switch_cost_read(struct switch_cost *cost, struct switch_costs *costs, pid_t pid, uint64_t tid)
{
    struct switch_count now;
    if (!read_count(cost, pid, tid, &now))
        return;
    if (cost->last.ns)
        compare(cost, costs, &now);
    cost->last = now;
    cost->due = cost->count + clamp(cost->count / 4);
}
