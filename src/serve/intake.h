/*
 * Intake: where the viewer's trace comes from, so that waiting for it can be ended, and so that all of
 * it is in a file at the end.
 *
 *   - A file is read as a stream, never mapped: it may be cut off while it is read.
 *   - A file that is being written (follow) is read on when it grows, until `intake_complete`.
 *   - What comes from a pipe is kept in a file, as it comes: a temporary one without a name, or that
 *     which the user wants to have.
 */
#ifndef TRAIL_SERVE_INTAKE_H
#define TRAIL_SERVE_INTAKE_H

#include <trail/read.h>

struct intake;

struct intake_options {
    const char *path; /* "-": stdin */
    const char *save; /* keep what comes from stdin here; NULL: for as long as we run */
    bool follow;      /* the file is being written; stdin ends when it is complete */
};

/* NULL: *err says why. */
struct intake *intake_open(const struct intake_options *options, trail_error *err);

/* Whoever waits for more gets the end. From any thread. */
void intake_stop(struct intake *intake);

/* When nobody reads the source any more. Accepts NULL. */
void intake_close(struct intake *intake);

/* Waits for the first bytes. The source stays the intake's. NULL: *err says why. */
trail_source *intake_begin(struct intake *intake, trail_error *err);

/* Whether the end is not known before it comes. */
bool intake_is_live(const struct intake *intake);

/* Bytes of the file as it is now; -1 where nobody knows. */
int64_t intake_size(const struct intake *intake);

/*
 * The name of a file with all of the trace, for other programs, as long as this one runs. False while
 * not everything is there.
 */
enum { INTAKE_PATH = 4096 };
bool intake_path(const struct intake *intake, char path[INTAKE_PATH]);

#endif
