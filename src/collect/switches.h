/*
 * When threads were on a CPU: the kernel's context switches, read from outside the program.
 *
 * The events are opened before the program is started: the process's children and theirs inherit
 * them, with all of their threads, and they are enabled when one of them executes a file. There is
 * one descriptor and one buffer per CPU, because the kernel does not map a buffer for inherited
 * events of all CPUs.
 *
 *     kernel - switch -> buffer of the CPU - switches_read -> the collector of the process
 *
 * Records of one CPU are in order of time; a thread's records come from several CPUs.
 *
 * When threads were woken is read beside them where the kernel allows it (collect/wakings.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum switch_kind {
    SWITCH_IN,
    SWITCH_OUT,       /* the thread waits */
    SWITCH_PREEMPTED, /* preempted: the thread is ready */
    SWITCH_EXIT,      /* the thread has ended: its last record */
    SWITCH_WOKEN,     /* no switch: the thread waited, or was made by a fork, and is ready from here
                       * on */
    SWITCH_FAULT,     /* no switch: the thread had a major page fault (faults.h), and now has its
                   * page */
    SWITCH_LOST, /* switches of any thread are lost or not recorded, from here to SWITCH_FOUND */
    SWITCH_FOUND,
    SWITCH_WAKINGS_LOST, /* the same for wake-ups only */
    SWITCH_WAKINGS_FOUND,
};

/* Whether a record, such as a report of lost records, applies to all threads. */
static inline bool switch_is_of_all(enum switch_kind kind)
{
    return kind >= SWITCH_LOST;
}

/* A switch of a thread. Times are CLOCK_MONOTONIC. */
struct switch_record {
    int64_t ns;
    uint32_t pid; /* 0: not known, as for a wake-up */
    uint32_t tid;
    enum switch_kind kind;
    /* Of a fault. The sample is valid during the call that passes the record; NULL: none. */
    uint64_t address;
    const struct cpu_sample *sample;
};

struct switches;

/* Called before the program is started. NULL with errno if the kernel refuses, or if out of
 * memory. */
struct switches *switches_open(void);

/*
 * The same for a running process: an event for each of its threads on each CPU, all writing into
 * one buffer per CPU. NULL with errno; EMFILE: it has more threads than there may be descriptors.
 */
struct switches *switches_open_process(pid_t pid);
void switches_close(struct switches *switches);

/* Calls `take` with each new record before `before_ns`; later ones are left for the next call. */
void switches_read(struct switches *switches, int64_t before_ns,
                   void (*take)(void *context, const struct switch_record *record), void *context);

/* Returns how many records of the busiest CPU were read since the last call. */
uint64_t switches_busiest(struct switches *switches);

/*
 * Closes the events: no records, and no cost, until switches_resume. Returns the time of the latest
 * record that was read.
 */
int64_t switches_pause(struct switches *switches);

/*
 * Opens the events again for the processes with these PIDs, as switches_open_process does. False
 * with errno, leaving them closed. EMFILE: more than MOST_THREAD_EVENTS are needed.
 */
bool switches_resume(struct switches *switches, const pid_t *pids, size_t count);

/* Whether there will be a SWITCH_WOKEN for each wake-up. */
bool switches_have_wakings(const struct switches *switches);

/* Returns how many records were lost because the kernel had no room. */
uint64_t switches_lost(const struct switches *switches);

/* Returns the same for wake-ups, of all programs. */
uint64_t switches_lost_wakings(const struct switches *switches);

/* Tests on one CPU whether switches_open would succeed. Returns 0 or an errno. */
int switches_try(void);

/* Why the kernel does not report context switches, and what would help. */
struct switches_refusal {
    char why[128];
    const char *fix;
};

/* Explains why switches_open, switches_try or samples_open has failed with the errno `reason`. */
void switches_explain(int reason, struct switches_refusal *refusal);
