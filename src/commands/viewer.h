/*
 * The viewer beside a recording: `trail view` as a process of its own, which follows the trace's file
 * as it grows. It is told by the end of a pipe that the file is complete.
 */
#ifndef TRAIL_COMMANDS_VIEWER_H
#define TRAIL_COMMANDS_VIEWER_H

#include <stdbool.h>
#include <sys/types.h>

struct viewer {
    pid_t pid;  /* 0: not started */
    int writes; /* our end of its stdin */
};

/* `skip_frames` is the file of --skip-frames or NULL. Told on stderr if it cannot be started; the recording goes on without. */
void viewer_start(struct viewer *viewer, const char *path, const char *skip_frames);

/*
 * The file is complete: waits until the viewer ends, which SIGINT, SIGTERM and SIGHUP, blocked since
 * before, are passed on to.
 */
void viewer_finish(struct viewer *viewer);

#endif
