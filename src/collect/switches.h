/*
 * The kernel's word on when threads were on a CPU: its context switches, read from outside the program.
 *
 * What is opened by a process that has not started the program yet holds for that: the events are inherited
 * by its children and by theirs, with all of their threads, and are enabled when one of them executes a file. One
 * descriptor and one buffer a CPU: the kernel refuses to map a buffer for inherited events of all CPUs.
 *
 *     kernel - switch -> buffer of the CPU - switches_read -> who records the process
 *
 * Records of one CPU are in the order of time; those of one thread come from many.
 */
#ifndef TRAIL_COLLECT_SWITCHES_H
#define TRAIL_COLLECT_SWITCHES_H

#include <stdbool.h>
#include <stdint.h>

enum switch_kind {
    SWITCH_IN,
    SWITCH_OUT,       /* it waits for something */
    SWITCH_PREEMPTED, /* it would have gone on */
    SWITCH_EXIT,      /* the thread has ended: the last of it */
    SWITCH_LOST,      /* from here to the next time nothing is known, of any thread */
    SWITCH_FOUND,
};

/* Of which thread. Times are CLOCK_MONOTONIC's. */
struct switch_record {
    int64_t ns;
    uint32_t pid, tid;
    enum switch_kind kind;
};

struct switches;

/* Before the program is started. NULL with errno if the kernel does not let us, or without memory. */
struct switches *switches_open(void);
void switches_close(struct switches *switches);

/* Calls `take` with each record that has come since, and is of before `before_ns`; others are left for the next time. */
void switches_read(struct switches *switches, int64_t before_ns,
                   void (*take)(void *context, const struct switch_record *record), void *context);

/* How many records the kernel had no room for. */
uint64_t switches_lost(const struct switches *switches);

/* Whether switches_open would succeed, tried on one CPU: 0 or an errno. */
int switches_try(void);

/* Why the kernel does not report context switches, and what helps. */
struct switches_refusal {
    char why[128];
    const char *fix;
};

/* After switches_open, switches_try or samples_open has failed with the errno `reason`. */
void switches_explain(int reason, struct switches_refusal *refusal);

#endif
