/* The summary that `trail record` prints when the program has ended: ten lines. */
#pragma once

#include <stddef.h>

#include "collect/collect.h"
#include "collect/executed.h"

/* CPU time in ns of this process or its ended children: RUSAGE_SELF, RUSAGE_CHILDREN. */
int64_t record_summary_cpu_ns(int who);

/*
 * Prints the summary on stderr. `path` is the trace's, `cpu_ns` the program's CPU time, -1 if
 * unknown; `about` names the processes that the times cover, NULL: the only one, or all.
 */
void record_summary_print(const struct collect_summary *summary, const char *path, int64_t cpu_ns,
                          const char *about);

/* One of several processes, as a row. */
struct record_summary_process {
    const char *title, *path; /* of its own trace; NULL: it shares one */
    int pid;
    bool left_out;        /* left out of the times of all: it only waited */
    enum wire_missed why; /* why the program that it executed did not load the recorder */
    int64_t cpu_ns;       /* CPU time */
    int64_t cost_ns;      /* CPU time that the recorder spent on its records */
    struct collect_summary summary;
};

#define RECORD_SUMMARY_ABOUT 256

/*
 * Writes which processes the times cover: those that worked or waited for others that did. NULL:
 * all of them.
 */
const char *record_summary_about(const struct record_summary_process *processes, size_t count,
                                 char text[RECORD_SUMMARY_ABOUT]);

/*
 * Sorts the processes. Prints on stderr a table of them, the programs that they executed and that
 * were not recorded (except by the process with the PID `program`), and how to get a trace per
 * process.
 */
void record_summary_print_all(struct record_summary_process *processes, size_t count, int program);

/* Prints on stderr why programs that the processes executed were not recorded, as far as known. */
void record_summary_print_left(const struct record_summary_process *processes, size_t count);

/*
 * Prints on stderr which executed programs were not recorded; nothing if all were. `turned_away`
 * counts those for which the recorder had no area.
 */
void record_summary_print_executed(const struct executed_list *executed, uint64_t turned_away);
