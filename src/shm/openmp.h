/*
 * The interface between libtrail-ompt.so (src/ompt), which LLVM's OpenMP run-time library loads,
 * and the recorder in the same process (src/preload), which exports one object of this type.
 * libtrail-ompt.so knows what OpenMP does; the recorder knows how that is recorded.
 *
 * A place is a return address in the program, as OpenMP reports it; NULL: not known. Stacks begin
 * with the place. If a thread has no function of the program on its stack, such as a worker between
 * regions, the place is the whole stack.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "shm/shm.h"

#define OPENMP_SYMBOL  "trail_preload_openmp"
#define OPENMP_VERSION 1

/* A wait of the calling thread. The caller sets all members except `begin`. */
struct openmp_wait {
    uint64_t begin; /* the clock; 0: it is not open */
    const void *object, *place;
    enum shm_wait wait;
    bool alone; /* the place is the stack */
};

/* A lock that the calling thread holds. */
struct openmp_hold {
    uint64_t since; /* the clock */
    const void *object, *place;
    uint32_t number; /* of its release */
};

struct openmp_recorder {
    uint32_t version;
    /* Whether this process is recorded. */
    bool (*is_recorded)(void);
    /* Returns a thread-local pointer; NULL at first. */
    void **(*own)(void);
    /* Returns the calling thread's serial; 0: none. */
    uint32_t (*number)(void);
    void (*name_thread)(const char *name);

    /* Returns the task's number; 0: it is not recorded. The place is appended to the name. */
    uint64_t (*task_begin)(uint64_t parent, const char *name, const void *place);
    void (*task_end)(uint64_t task);
    void (*region_begin)(uint64_t task, const char *name, const void *place, bool alone);
    void (*region_end)(uint64_t task, const char *name);

    void (*wait_begin)(struct openmp_wait *wait);
    /*
     * `next`: what the thread waited for after its object was released; NULL: nothing. `by`: the
     * serial of the thread that woke it, used if no release was recorded; 0: not known.
     */
    void (*wait_end)(struct openmp_wait *wait, const void *next, uint32_t by);
    /*
     * The calling thread wakes all threads that wait for an object, and those that are about to.
     * `since`: when the first wait began; 0: no thread waits, and nothing is recorded.
     */
    void (*let_in)(enum shm_wait wait, const void *object, uint64_t since, const void *place,
                   bool alone);

    void (*lock_wait)(struct openmp_wait *wait);
    void (*lock_got)(struct openmp_wait *wait, struct openmp_hold *hold);
    /* The thread already held the lock. */
    void (*lock_nested)(struct openmp_wait *wait);
    void (*lock_gone)(const void *object);
    void (*lock_released)(enum shm_wait wait, const struct openmp_hold *hold, const void *place);
};
