/*
 * The output of a trace that is being recorded: a file, stdout, a compressed file, a series of
 * files, or memory that keeps only the newest generations.
 *
 * This works because each generation of a trace can be read without the earlier ones.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <trail/export.h>

#include "base/output.h"
#include "base/packed.h"

struct trace_limits {
    int64_t flight_ns;     /* keep only this much, in memory; 0: write everything at once */
    uint64_t rotate_bytes; /* begin another file after this much; 0: never */
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
    char *current;    /* the file being written; NULL: none yet */
    unsigned files;
    struct output out;
    bool open;
    struct packed packed; /* compresses what is written to `out`; open as long as that is */
    int64_t begin_ns, now_ns;
    uint64_t bytes; /* in the current file */
    uint8_t header[16];
    size_t header_size;
    struct kept *kept;
    size_t kept_count, kept_room;
    bool no_memory;
    /* Why a further file could not be started, until trace_output_lost takes it; TRAIL_OK: nothing
     * was lost. */
    trail_error lost;
};

/* Opens an output; `path` must outlive it. False with *err: nothing needs closing. */
bool trace_output_open(struct trace_output *t, const char *path, const struct trace_limits *limits,
                       trail_error *err);

/* Returns a sink that writes to the output. */
trail_sink trace_output_sink(struct trace_output *t);

/* Called between two generations: the next begins at `ns`. `context` is the struct trace_output. */
void trace_output_generation(void *context, int64_t ns);

/* Returns true once, with *err, if trace_output_generation could not complete a file or start the
 * next: the rest is lost. */
bool trace_output_lost(struct trace_output *t, trail_error *err);

/*
 * Flight recorder: writes its memory to a new file, and sets `current` to the path. The file's name
 * has `word` before the suffix; NULL: the next number. False with *err.
 */
bool trace_output_snapshot(struct trace_output *t, const char *word, trail_error *err);

/* Returns the size of such a file, uncompressed. */
uint64_t trace_output_kept(const struct trace_output *t);

/*
 * Completes the last file; a flight recorder writes it, if the trace is `whole`. False with *err.
 */
bool trace_output_close(struct trace_output *t, bool whole, trail_error *err);

/* Returns `path` for `number` 0, else NAME.NUMBER.SUFFIX; the caller frees it. NULL if out of
 * memory. */
char *numbered_path(const char *path, unsigned number);
