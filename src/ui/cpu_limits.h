/* What kept the threads of a recording from CPUs, as `trail record` has noted it (trail_recorded). */
#ifndef TRAIL_UI_CPU_LIMITS_H
#define TRAIL_UI_CPU_LIMITS_H

#include <trail/read.h>

#include "base/json.h"

/* Rows of a trace that was read to its end; those with a count of 0 it does not have. */
struct cpu_limits {
    trail_recorded machine, cpus, quota;
    char list[128]; /* the name of `cpus` */
};

void cpu_limits_find(const trail_reader *reader, struct cpu_limits *limits);

/* Prints lines, each after `before`. */
void cpu_limits_show(const struct cpu_limits *limits, const char *before);

/* Prints threads whose scheduling is not the default: "TID 4712: CPU 0; nice 5". */
void cpu_limits_show_threads(const trail_reader *reader);

/* An object with the key "cpus", which is left out if the trace does not have it. */
void cpu_limits_json(const struct cpu_limits *limits, struct json *json);

/* An array with the key "scheduling" of the settings of a thread; none if it had the default only. */
void cpu_limits_json_thread(const trail_reader *reader, struct json *json, int64_t tid);

#endif
