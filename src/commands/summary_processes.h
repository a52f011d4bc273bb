/*
 * The processes of a trace of `trail record`: if there are several, each thread is named after its process as well,
 * "sort (812): main". Threads of the program from before it started others are not: "main".
 */
#ifndef TRAIL_COMMANDS_SUMMARY_PROCESSES_H
#define TRAIL_COMMANDS_SUMMARY_PROCESSES_H

#include <stdbool.h>
#include <trail/analyze.h>

struct summary_process {
    trail_string label; /* "sort (812)" */
    trail_string name;  /* "sort"; may be empty */
    uint64_t pid;
    uint64_t threads;
    int64_t running_ns, ready_ns, waiting_ns;
    bool recorded;               /* the trace has what follows */
    int64_t cpu_ns, recorder_ns; /* its CPU time; the recorder's, for its records */
    bool is_program;             /* it is the first, which was started */
};

/*
 * Returns the number of processes and sets *list, which the caller frees, those that ran longest first. 0: the trace is of
 * one process, or memory is out. The analysis has TRAIL_ANALYZE_GROUPS; the texts are its own.
 */
size_t summary_processes(const trail_analysis *answers, const trail_reader *reader,
                         struct summary_process **list);

/*
 * Finds the process that worked for the program: if the program itself waited nearly all the time, the one that ran longest of
 * the others. NULL: it did not, or it is not known which it is.
 */
const struct summary_process *summary_processes_worker(const struct summary_process *list,
                                                       size_t count,
                                                       const struct summary_process **program);

#endif
