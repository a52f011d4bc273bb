/*
 * What a switch to a thread costs it: the kernel counts CPU time from before it switches, and its
 * record of the switch has a time some microseconds later, which is most of the CPU time of a thread
 * that only waits and works for microseconds. So the kernel's own count (/proc/PID/task/TID/schedstat)
 * is compared now and then with the time between the records, and the difference for each switch is
 * how much earlier than its record the thread ran.
 */
#ifndef TRAIL_COLLECT_SWITCH_COST_H
#define TRAIL_COLLECT_SWITCH_COST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Of a thread; times in ns. Zero-initialised is empty. */
struct switch_cost {
    int64_t on_since, on_ns; /* on a CPU by the records: now, 0 if it is not; so far */
    uint64_t count;          /* of switches to it */
    uint64_t due;            /* the count at which the kernel's own is read again */
    /* When the kernel's count was read last. */
    struct switch_count {
        int64_t ns, times; /* the kernel's: CPU time, switches to the thread; 0: not read */
        int64_t on_ns;
        uint64_t count;
    } last;
    int64_t ns; /* the cost; 0: not known */
};

/* Of a program: for threads whose own is not known, and the thread whose count is read next. */
struct switch_costs {
    int64_t ns;
    uint64_t serial; /* 0: none */
};

/* Takes a switch to the thread when its record is read. */
void switch_cost_in(struct switch_cost *cost, int64_t ns);

/* Takes the switch from it. Returns whether the kernel's count is to be read. */
bool switch_cost_out(struct switch_cost *cost, int64_t ns);

/* Records are missing. */
void switch_cost_forget(struct switch_cost *cost);

/* Reads the kernel's count of the thread; called soon after the records were read. */
void switch_cost_read(struct switch_cost *cost, struct switch_costs *costs, pid_t pid,
                      uint64_t tid);

/* Returns the cost of a switch to the thread. */
static inline int64_t switch_cost_of(const struct switch_cost *cost,
                                     const struct switch_costs *costs)
{
    return cost->ns ? cost->ns : costs->ns;
}

#endif
