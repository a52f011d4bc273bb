/*
 * Writes a trace of format 1.22, 1.23, 1.25 or 1.26 from events with explicit times (§5). The
 * writer implements the layout of a trace: header, generations, batches, tables, limits. It does
 * not interpret events: statuses, sequence numbers and the states behind them are the caller's.
 *
 *     struct v2_writer *w = v2_writer_open(26, &sink, &err);
 *     v2_writer_begin(w, now_ns, wall_ns);
 *     uint64_t why = v2_writer_string(w, text), where = v2_writer_stack(w, frames, count);
 *     v2_writer_event(w, m, now_ns, V2_GoBlock, V2_ARGS(why, where));
 *     v2_writer_end(w);
 *     ... further generations ...
 *     if (!v2_writer_close(w, &err)) ...
 *
 * IDs of strings and stacks are valid in the generation in which they were returned. A tick is 1
 * ns.
 *
 * Failure is sticky: afterwards all calls do nothing and return false or 0, so a caller need not
 * check each; v2_writer_close returns the error. The output is then a complete trace of everything
 * before the failure, unless the sink failed. A wrong call, such as a time that goes backwards, is
 * a failure with TRAIL_USAGE.
 *
 * Memory: the tables of one generation, one to ten words for each of its threads, and incomplete
 * batches, at most 16 MiB of them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <trail/export.h>

#include "wire/wire.h"

struct v2_writer;

/*
 * Readers of 1.23 and later keep one frame per PC and generation: of several frames with the same
 * PC they show the first. Frames into which something was inlined need PCs of their own (see
 * trail_symbolize in trail/export.h).
 */
struct v2_frame {
    uint64_t pc; /* a return address; 0 if unknown */
    trail_string function, file;
    uint64_t line;
};

/* MARK: The trace */

/* Writes the header. `sink` is copied. Returns NULL with *err set for an unsupported version or if
 * out of memory. */
struct v2_writer *v2_writer_open(int version, const trail_sink *sink, trail_error *err);

/*
 * Ends the generation if one has begun, and frees the writer. Returns false with *err set to the
 * first failure, if there was any.
 */
bool v2_writer_close(struct v2_writer *w, trail_error *err);

/* True after a failure: nothing more will be written except the end. */
bool v2_writer_failed(const struct v2_writer *w);

/* Returns the size of the trace in bytes if the generation ended now, without the mark at its end
 * (1 byte, 1.26). */
uint64_t v2_writer_bytes(const struct v2_writer *w);

/* MARK: Generations */

/*
 * Begins generation 1, 2, ... The clocks are written in 1.25 and later; earlier versions use only
 * trace_ns, as the time of the tables. Readers show a Sync event at the generation's first time,
 * and each event at least 1 ns after the previous one.
 */
bool v2_writer_begin_at(struct v2_writer *w, const trail_clock_snapshot *clocks);

/* The same for a generation that begins at `time_ns`, not later than the clocks were read. */
bool v2_writer_begin_before(struct v2_writer *w, int64_t time_ns,
                            const trail_clock_snapshot *clocks);

/* The same if the trace's time is the monotonic clock. `wall_ns` since 1970. */
bool v2_writer_begin(struct v2_writer *w, int64_t time_ns, int64_t wall_ns);

/* Completes the generation and passes it to the sink. */
bool v2_writer_end(struct v2_writer *w);

/* Returns the number of the last generation begun; 0 before the first. */
uint64_t v2_writer_generation(const struct v2_writer *w);

/* MARK: Tables */

/* Returns the ID of a text; 0 for the empty one. A text longer than V2_MAX_STRING is truncated. */
uint64_t v2_writer_string(struct v2_writer *w, trail_string text);

/* Adds a text that no event refers to, such as a line of the module map. */
static inline void v2_writer_note(struct v2_writer *w, trail_string text)
{
    (void)v2_writer_string(w, text);
}

/* Records what made the trace, in this generation; nothing for Go. */
void v2_writer_maker(struct v2_writer *w, const trail_maker *maker);

/* Records what its recording took or missed. */
void v2_writer_recorded(struct v2_writer *w, const trail_recorded *row);

/*
 * Returns the ID of a stack, innermost frame first; 0 for none. If a stack has more than
 * V2_MAX_FRAMES frames, the outermost are left out; longer names are truncated.
 */
uint64_t v2_writer_stack(struct v2_writer *w, const struct v2_frame *frames, size_t count);

/*
 * Writes a batch of an experiment unchanged, in 1.23 and later; at most V2_MAX_BATCH_DATA bytes.
 * Go's readers reject experiments other than V2_EXPERIMENT_ALLOC_FREE.
 */
bool v2_writer_experiment(struct v2_writer *w, uint8_t experiment, uint64_t m, const void *data,
                          size_t size);

/* MARK: Events */

/*
 * Writes an event of thread `m` (or V2_NO_THREAD), not earlier than the thread's last in this
 * generation. `type` has a time and exists in the version; `args` are its `count` numbers after the
 * time, and IDs of strings and stacks among them belong to this generation.
 */
bool v2_writer_event(struct v2_writer *w, uint64_t m, int64_t time_ns, unsigned type,
                     unsigned count, const uint64_t *args);

/* The numbers of an event, as the last two arguments of v2_writer_event. */
#define V2_ARGS(...)                                                                               \
    (unsigned)(sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t)),                              \
        ((const uint64_t[]){__VA_ARGS__})

/*
 * Writes a CPU sample, in any order. `m` may be V2_NO_THREAD, `p` V2_NO_PROC, `g` 0 for none.
 */
bool v2_writer_sample(struct v2_writer *w, int64_t time_ns, uint64_t m, uint64_t p, uint64_t g,
                      uint64_t stack);
