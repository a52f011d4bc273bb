/* What the recording of a trace of `trail record` took, and what it missed. */
#ifndef TRAIL_COMMANDS_SUMMARY_RECORDING_H
#define TRAIL_COMMANDS_SUMMARY_RECORDING_H

#include <stdbool.h>
#include <trail/read.h>

#include "base/json.h"

/* Whether the trace has that; known after its last event. */
bool summary_recording_has(const trail_reader *reader);

/* Prints it as lines; or as an object with the key "recording", which is left out if the trace does not have it. */
void summary_recording_show(const trail_reader *reader);
void summary_recording_json(const trail_reader *reader, struct json *json);

#endif
