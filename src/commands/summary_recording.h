/* The cost and the losses of a recording by `trail record`. */
#pragma once

#include <stdbool.h>
#include <trail/read.h>

#include "base/json.h"

/* Whether the trace has such rows; known after its last event. */
bool summary_recording_has(const trail_reader *reader);

/* Returns the CPU time of the recorded processes by their clocks; 0: not known. */
int64_t summary_recording_cpu_ns(const trail_reader *reader);

/* Prints them as lines; or as an object with the key "recording", which is omitted if the trace has
 * none. */
void summary_recording_show(const trail_reader *reader);
void summary_recording_json(const trail_reader *reader, struct json *json);
