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
#include "shm/shm.h"

struct attach {
    pid_t pid;
    const char *path; /* of libtrail-preload.so; as the process sees it */
    struct image libc, library;
    struct remote_code code;
    struct image_code load, load_error; /* dlopen and dlerror */
    bool joined;
    uint32_t imports;   /* how many were changed last */
    int64_t paused_ns;  /* the longest time for which threads of the process were held up */
    uint64_t code_seen; /* what stands for the list of its mapped files when it joined */
};

/* Whether the process can be recorded; nothing is done to it. False with *err. `path` outlives the attachment. */
bool attach_look(struct attach *a, pid_t pid, const char *path, trail_error *err);

/* What a thread waits for before the process joins. NULL: what was found before is out of date. */
struct attach_found {
    pid_t tid;
    enum shm_wait wait;  /* SHM_NO_WAIT: nothing that is known */
    uint64_t object;     /* its address; 0: none, or not known */
    uint32_t detail;     /* the descriptor + 1; 0: none */
    uint64_t start;      /* a PC in the function that the thread began in; 0: main, or not known */
    const uint64_t *pcs; /* of the call's caller outwards, like return addresses */
    size_t count;
};
typedef void attach_found_fn(void *context, const struct attach_found *found);

/*
 * Begins, and ends; false with *err. Called by one thread, which ends soon: whatever it still holds of the process is let go
 * then. `word` is recorder_variable's.
 */
bool attach_join(struct attach *a, const char *word, attach_found_fn *found, void *context,
                 trail_error *err);
bool attach_leave(struct attach *a, trail_error *err);

/* Whether the process has loaded or unloaded libraries since this was last asked, or since it joined. */
bool attach_has_changed(struct attach *a);

/* Has libraries recorded that were loaded since; as attach_join. */
bool attach_renew(struct attach *a, trail_error *err);

#endif
