/*
 * Names of threads in recordings of several processes begin with their process: "writer (4711):
 * flush".
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <trail/read.h>

struct process_name {
    trail_string label;  /* "writer (4711)" */
    trail_string name;   /* "writer" */
    trail_string thread; /* "flush" */
    uint64_t pid;
};

/* Splits a thread's name; false: it does not name a process. */
bool process_name_of(trail_string thread, struct process_name *process);
