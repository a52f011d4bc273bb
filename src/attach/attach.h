/*
 * Loads libtrail-preload.so into a process that runs, has it join a recording, and leave it: for `trail record -p PID`.
 * Everything is done by a thread of the process that waits in a system call, and that holds nothing that this could need
 * (see safe.c); the process's other threads go on meanwhile.
 */
#ifndef TRAIL_ATTACH_ATTACH_H
#define TRAIL_ATTACH_ATTACH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <trail/error.h>

#include "attach/image.h"
#include "attach/remote.h"

struct attach {
    pid_t pid;
    const char *path; /* of libtrail-preload.so; as the process sees it */
    struct image libc, library;
    struct remote_code code;
    uint64_t load, load_error; /* dlopen and dlerror */
    bool joined;
    uint32_t imports;  /* how many were changed last */
    int64_t paused_ns; /* the longest time for which a thread of the process was held up */
};

/* Whether the process can be recorded; nothing is done to it. False with *err. `path` outlives the attachment. */
bool attach_look(struct attach *a, pid_t pid, const char *path, trail_error *err);

/*
 * Begins, and ends; false with *err. Called by one thread, which ends soon: whatever it still holds of the process is let go
 * then. `word` is recorder_variable's.
 */
bool attach_join(struct attach *a, const char *word, trail_error *err);
bool attach_leave(struct attach *a, trail_error *err);

/* Has libraries recorded that the process has loaded since. */
bool attach_renew(struct attach *a, trail_error *err);

#endif
