/*
 * The processes of a trace of `trail record`: if there are several, thread names include the
 * process, "sort (812): main". Threads that the program had before it started others are named
 * without it: "main".
 */
#pragma once

#include <stdbool.h>
#include <trail/analyze.h>

struct summary_process {
    trail_string label; /* "sort (812)" */
    trail_string name;  /* "sort"; may be empty */
    uint64_t pid;
    uint64_t threads;
    int64_t running_ns, ready_ns, waiting_ns;
    bool recorded;               /* the trace has the following */
    int64_t cpu_ns, recorder_ns; /* its CPU time; the recorder's, for its records */
    bool is_program;             /* it is the first process, which trail started */
};

/*
 * Returns the number of processes and sets *list, which the caller frees; the longest-running come
 * first. 0: the trace has only one process, or out of memory. The analysis must have
 * TRAIL_ANALYZE_GROUPS, and owns the texts.
 */
size_t summary_processes(const trail_analysis *answers, const trail_reader *reader,
                         struct summary_process **list);

/*
 * Finds the process that worked for the program: if the program itself waited nearly all the time,
 * the longest-running of the others. NULL: the program did not wait that much, or the process is
 * not known.
 */
const struct summary_process *summary_processes_worker(const struct summary_process *list,
                                                       size_t count,
                                                       const struct summary_process **program);
