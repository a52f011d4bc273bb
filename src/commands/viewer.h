/*
 * The viewer of a recording in progress: `trail view` as a process of its own, which follows the
 * trace's file as it grows. The end of a pipe signals that the file is complete.
 */
#pragma once

#include <sys/types.h>

struct viewer {
    pid_t pid;  /* 0: not started */
    int writes; /* the write end of its stdin */
};

/* Starts the viewer. `skip_frames` is the file of --skip-frames, or NULL. On failure it prints a
 * message on stderr, and the recording continues without a viewer. */
void viewer_start(struct viewer *viewer, const char *path, const char *skip_frames);

/*
 * Called when the file is complete: waits until the viewer ends. SIGINT, SIGTERM and SIGHUP, which
 * the caller has blocked, are passed on to it.
 */
void viewer_finish(struct viewer *viewer);
