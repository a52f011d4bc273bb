/*
 * The output of a trace that is being recorded: a file, stdout, a compressed file, a series of
 * files, or memory that keeps the newest generations only.
 *
 * This is possible because each generation of a trace can be read without those before it.
 */
#ifndef TRAIL_COLLECT_TRACE_OUTPUT_H
#define TRAIL_COLLECT_TRACE_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <trail/export.h>

#include "base/output.h"
#include "base/packed.h"

struct trace_limits {
    int64_t flight_ns;     /* keep only this much, in memory; 0: write all at once */
    uint64_t rotate_bytes; /* begin another file after this much; 0: do not */
    int64_t rotate_ns;
};

/* The bytes of a generation in memory. */
struct kept {
    int64_t begin_ns;
    uint8_t *data;
    size_t size, room;
};

struct trace_output {
    struct trace_limits limits;
    const char *path; /* the first file's */
    char *current;    /* the file that is being written; NULL: none yet */
    unsigned files;
    struct output out;
    bool open;
    struct packed packed; /* between `out` and what is written; open with it */
    int64_t begin_ns, now_ns;
    uint64_t bytes; /* of the present file */
    uint8_t header[16];
    size_t header_size;
    struct kept *kept;
    size_t kept_count, kept_room;
    bool no_memory;
    /* Why a further file could not be begun, until trace_output_lost takes it; TRAIL_OK: nothing
     * was lost. */
    trail_error lost;
};

/* Opens an output; the caller keeps `path`. False with *err: nothing is to be closed. */
bool trace_output_open(struct trace_output *t, const char *path, const struct trace_limits *limits,
                       trail_error *err);

/* Returns a sink that writes to the output. */
trail_sink trace_output_sink(struct trace_output *t);

/* Called between two generations: the next begins at `ns`. `context` is the struct trace_output. */
void trace_output_generation(void *context, int64_t ns);

/* Returns true once, with *err, if trace_output_generation could not complete a file or begin the
 * next: the rest is lost. */
bool trace_output_lost(struct trace_output *t, trail_error *err);

/* Flight recorder: writes what is kept into a file of its own. False with *err. */
bool trace_output_snapshot(struct trace_output *t, trail_error *err);

/*
 * Completes the last file; a flight recorder writes it, if the trace is `whole`. False with *err.
 */
bool trace_output_close(struct trace_output *t, bool whole, trail_error *err);

/* Returns the first name for `number` 0, else NAME.NUMBER.SUFFIX; the caller frees it. NULL when
 * memory is out. */
char *numbered_path(const char *path, unsigned number);

#endif
