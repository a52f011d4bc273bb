/*
 * The schedule of a replay as a trace, to examine and to compare with the real one (`trail whatif
 * -o`).
 *
 * It contains the states of the threads, on as many Ps as were in use at once, and their tasks and
 * regions. Each wait has its original kind, object and stack, and its waker if that was running. A
 * thread that waits again before it has run is shown in its first wait. Calls that kept their CPU,
 * logs, samples and the garbage collector's own events are left out.
 */
#pragma once

#include "replay/replay.h"

struct trail_sink;

/*
 * Replays the chains with these changes, and writes the schedule to `sink`; `what` is the changes
 * in words, for a log at the start. Returns false with *err set.
 */
bool schedule_write(const struct chains *chains, const struct change *changes, size_t count,
                    const struct replay_goal *goal, const char *what, const struct trail_sink *sink,
                    trail_error *err);
