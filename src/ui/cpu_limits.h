/* What kept the threads of a recording from CPUs, as recorded by `trail record`
 * (trail_recorded). */
#pragma once

#include <trail/read.h>

#include "base/json.h"

/* Rows of a trace that was read to its end; a count of 0 means that it has no such row. */
struct cpu_limits {
    trail_recorded machine, cpus, quota;
    char list[128]; /* the name of `cpus` */
};

void cpu_limits_find(const trail_reader *reader, struct cpu_limits *limits);

/* Prints lines, each after `before`. */
void cpu_limits_show(const struct cpu_limits *limits, const char *before);

/* Prints threads whose scheduling is not the default: "TID 4712: CPU 0; nice 5". */
void cpu_limits_show_threads(const trail_reader *reader);

/* Writes an object with the key "cpus", which is omitted if the trace has none. */
void cpu_limits_json(const struct cpu_limits *limits, struct json *json);

/* Writes an array with the key "scheduling", the settings of a thread; omitted if it only had the
 * default. */
void cpu_limits_json_thread(const trail_reader *reader, struct json *json, int64_t tid);
