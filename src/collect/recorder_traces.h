/* The traces of a recording: which process has which, their files, and their failures. */
#pragma once

#include "collect/recorder_state.h"

/* Reports a failure of one trace. `path` NULL: the message names the file. */
void recorder_fail(struct recorder *r, const char *path, const trail_error *err);
/* Reports a failure in switching a trace from one file to the next. */
void recorder_trace_look_for_loss(const struct recorder *r, struct recorded_trace *to);

/* Whether all processes share one trace. */
bool recorder_is_shared(const struct recorder *r);
/* Returns the trace of a process, opening it for the first process. NULL: the failure was
 * reported. */
struct recorded_trace *recorder_trace_for(struct recorder *r, pid_t pid);
void recorder_trace_finish(struct recorder *r, struct recorded_trace *to);
void recorder_trace_free(struct recorded_trace *to);
