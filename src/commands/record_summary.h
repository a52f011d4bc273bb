/* The summary that `trail record` prints when the program has ended: ten lines. */
#ifndef TRAIL_COMMANDS_RECORD_SUMMARY_H
#define TRAIL_COMMANDS_RECORD_SUMMARY_H

#include <stddef.h>

#include "collect/collect.h"
#include "collect/executed.h"

/* CPU time in ns of this process or of its children that have ended: RUSAGE_SELF, RUSAGE_CHILDREN. */
int64_t record_summary_cpu_ns(int who);

/*
 * Prints it on stderr. `path` is the trace's, `cpu_ns` the program's CPU time, -1 if unknown, `about`
 * what the times are of; NULL: of the only process, or all.
 */
void record_summary_print(const struct collect_summary *summary, const char *path, int64_t cpu_ns,
                          const char *about);

/* A process of several, as a row. */
struct record_summary_process {
    const char *title, *path; /* of its own trace; NULL: it shares one */
    int pid;
    bool left_out;        /* of the times of all: it only waited */
    enum wire_missed why; /* what it has executed did not load the recorder */
    int64_t cpu_ns;       /* CPU time */
    int64_t cost_ns;      /* CPU time of the recorder, for its records alone */
    struct collect_summary summary;
};

#define RECORD_SUMMARY_ABOUT 256

/*
 * Writes what the times of all are of, if any process is left out: those that worked, and those that
 * waited for them. NULL: none is.
 */
const char *record_summary_about(const struct record_summary_process *processes, size_t count,
                                 char text[RECORD_SUMMARY_ABOUT]);

/*
 * Sorts processes, prints a table of them on stderr, which of them executed what was not recorded, but for the one with the
 * PID `program`, and what to do with their own traces.
 */
void record_summary_print_all(struct record_summary_process *processes, size_t count, int program);

/* Prints on stderr why what processes have executed in their place was not recorded, as far as that is known. */
void record_summary_print_left(const struct record_summary_process *processes, size_t count);

/*
 * Prints on stderr what was executed and not recorded; nothing if all was. `turned_away` of them are no cause: the recorder
 * had no area for them.
 */
void record_summary_print_executed(const struct executed_list *executed, uint64_t turned_away);

#endif
