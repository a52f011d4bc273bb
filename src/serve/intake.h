/*
 * Intake: the source of the viewer's trace. Waiting for input can be interrupted, and the complete
 * trace is available as a file at the end.
 *
 *   - A file is read as a stream, never mapped: it may be truncated while it is read.
 *   - A file that is still being written (follow) is read as it grows, until it is complete.
 *   - Data from a pipe is copied into a file: an unnamed temporary one, or the one that the user chose.
 */
#pragma once

#include <trail/read.h>

struct intake;

struct intake_options {
    const char *path; /* "-": stdin */
    const char *save; /* copy stdin to this file; NULL: to a temporary one */
    bool follow;      /* the file is still being written; stdin ends when it is complete */
};

/* Returns NULL with *err set on error. */
struct intake *intake_open(const struct intake_options *options, trail_error *err);

/* Makes a waiting read return the end of input. May be called from any thread. */
void intake_stop(struct intake *intake);

/* Called when the source is no longer read. Accepts NULL. */
void intake_close(struct intake *intake);

/* Waits for the first bytes. The intake owns the source. Returns NULL with *err set on error. */
trail_source *intake_begin(struct intake *intake, trail_error *err);

/* Whether the trace is still being produced, so that its size is unknown until its end. */
bool intake_is_live(const struct intake *intake);

/* Bytes of the input that have arrived; may be called from any thread. */
int64_t intake_received(const struct intake *intake);

/* Bytes of the complete file; -1 if not known. */
int64_t intake_size(const struct intake *intake);

/* Whether the path now names another file than the opened one, or that file has been written to. */
bool intake_is_changed(const struct intake *intake);

/*
 * Sets *identity to a hash of what distinguishes the file from others and from its own later states. Returns
 * false if it has no such state: it is still arriving, a part of a file, or has changed.
 */
bool intake_identity(const struct intake *intake, uint64_t *identity);

/* Whether a second reading may find other bytes than those that were read. */
bool intake_is_overwritten(const struct intake *intake);

/*
 * Writes the name of a file with the complete trace, for other programs; valid while this process
 * runs. Returns false if the trace is not complete yet.
 */
enum { INTAKE_PATH = 4096 };
bool intake_path(const struct intake *intake, char path[INTAKE_PATH]);
