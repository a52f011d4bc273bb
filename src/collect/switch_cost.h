/*
 * What a switch to a thread costs it. The kernel counts CPU time from before the switch, but its
 * record of the switch is stamped some microseconds later, which for a thread that wakes to work
 * for microseconds is most of its CPU time. So the kernel's own count
 * (/proc/PID/task/TID/schedstat) is compared now and then with the time between the records; the
 * difference per switch is how much earlier than its record the thread ran. The cost changes with
 * the machine's load by the millisecond, so it is measured on the records that are about to be
 * used, not averaged over earlier ones.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Of one thread; times in ns. Zero-initialised: empty. */
struct switch_cost {
    int64_t on_since, on_ns; /* on a CPU by the records: since when, 0 if not now; total so far */
    uint64_t count;          /* switches to it */
    uint64_t due;            /* the count at which the kernel's count is read again */
    /* The last reading of the kernel's count. */
    struct switch_count {
        int64_t ns, times; /* the kernel's CPU time and number of switches to the thread; 0: not
                            * read */
        int64_t on_ns;
        uint64_t count;
    } last;
    int64_t ns; /* the cost; 0: not known */
};

/* Of one program: used for threads without a cost of their own; and the threads whose counts are
 * read next. */
#define SWITCH_COST_READS 16
struct switch_costs {
    int64_t ns;
    uint64_t serials[SWITCH_COST_READS];
    size_t count; /* of serials */
};

/* Counts a switch to the thread, when its record is read. */
void switch_cost_in(struct switch_cost *cost, int64_t ns);

/* Counts the switch away from it. Returns whether to read the kernel's count. */
bool switch_cost_out(struct switch_cost *cost, int64_t ns);

/* Called when records are missing. */
void switch_cost_forget(struct switch_cost *cost);

/* Adds a thread to those whose counts are read next, if there is room. */
void switch_cost_want(struct switch_costs *costs, uint64_t serial);

/* Reads the kernel's count of the thread; called soon after the records were read. */
void switch_cost_read(struct switch_cost *cost, struct switch_costs *costs, pid_t pid,
                      uint64_t tid);

/* Returns the cost of a switch to the thread. */
static inline int64_t switch_cost_of(const struct switch_cost *cost,
                                     const struct switch_costs *costs)
{
    return cost->ns ? cost->ns : costs->ns;
}
