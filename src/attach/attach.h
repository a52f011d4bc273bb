/*
 * Loads libtrail-preload.so into a running process and makes it join and leave a recording, for
 * `trail record -p PID`. A thread of the process that waits in a system call and holds no lock that
 * this might need (see safe.c) does all the work; the other threads keep running.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <trail/error.h>

#include "attach/image.h"
#include "attach/remote.h"
#include "shm/attach.h"
#include "shm/shm.h"

struct attach {
    pid_t pid;
    const char *path; /* of libtrail-preload.so, as the process sees it */
    struct image libc, library;
    struct remote_code code;
    struct image_code load, load_error;   /* dlopen and dlerror */
    struct image_code join, renew, leave; /* of the library: shm/attach.h */
    bool joined;
    uint32_t imports;   /* how many imports the last call changed */
    int64_t paused_ns;  /* the longest time for which threads of the process were stopped */
    uint64_t code_seen; /* hash of its mapped code when last checked */
};

/*
 * Returns whether the process can be recorded, without touching it; false with *err if not. `path`
 * must outlive the attachment.
 */
bool attach_look(struct attach *a, pid_t pid, const char *path, trail_error *err);

/* Takes what a thread waits for before the process joins. NULL discards earlier findings. */
typedef void attach_found_fn(void *context, const struct shm_waiting *found);

/*
 * Join and leave the recording that `word` (from recorder_variable) names; false with *err. Called
 * from a short-lived thread, whose end releases whatever it still holds of the process.
 */
bool attach_join(struct attach *a, const char *word, attach_found_fn *found, void *context,
                 trail_error *err);
bool attach_leave(struct attach *a, trail_error *err);

/* Whether the process has loaded or unloaded libraries since the last call, or since it began to
 * join. */
bool attach_has_changed(struct attach *a);

/* Wraps libraries loaded since. Same rules as attach_join. */
bool attach_renew(struct attach *a, trail_error *err);
