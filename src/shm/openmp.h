/*
 * What libtrail-ompt.so (src/ompt), which LLVM's OpenMP run-time library loads, asks of the recorder that is in the
 * process: the library that `trail record` loads exports one object of this type. That one knows what OpenMP does,
 * this one how it is recorded.
 *
 * A place is a return address in the program, as OpenMP tells it; NULL: it is not known. Stacks begin with it; where
 * a thread has no function of the program on its stack, as workers between their regions, the place alone is
 * the stack.
 */
#ifndef TRAIL_SHM_OPENMP_H
#define TRAIL_SHM_OPENMP_H

#include <stdbool.h>
#include <stdint.h>

#include "shm/shm.h"

#define OPENMP_SYMBOL  "trail_preload_openmp"
#define OPENMP_VERSION 1

/* A wait of the calling thread. The caller sets all but `begin`. */
struct openmp_wait {
    uint64_t begin; /* the clock; 0: it is not open */
    const void *object, *place;
    enum shm_wait wait;
    bool alone; /* the place is the stack */
};

/* A lock that the calling thread has. */
struct openmp_hold {
    uint64_t since; /* the clock */
    const void *object, *place;
    uint32_t number; /* of its release */
};

struct openmp_recorder {
    uint32_t version;
    /* This process is recorded. */
    bool (*is_recorded)(void);
    /* A pointer that each thread has for itself; NULL at first. */
    void **(*own)(void);
    /* The calling thread's number; 0: it has none. */
    uint32_t (*number)(void);
    void (*name_thread)(const char *name);

    /* The task's name is completed by its place; 0: it is not recorded. */
    uint64_t (*task_begin)(uint64_t parent, const char *name, const void *place);
    void (*task_end)(uint64_t task);
    void (*region_begin)(uint64_t task, const char *name, const void *place, bool alone);
    void (*region_end)(uint64_t task, const char *name);

    void (*wait_begin)(struct openmp_wait *wait);
    /*
     * `next`: what it waited for after its object was released; NULL: for nothing more. `by`: who let it in, if no
     * release was recorded; 0: not known.
     */
    void (*wait_end)(struct openmp_wait *wait, const void *next, uint32_t by);
    /*
     * This thread lets in all who wait for an object, or will have to for no more than a moment. `since`: when the
     * first of them began; 0: nobody waits, nothing is recorded.
     */
    void (*let_in)(enum shm_wait wait, const void *object, uint64_t since, const void *place,
                   bool alone);

    void (*lock_wait)(struct openmp_wait *wait);
    void (*lock_got)(struct openmp_wait *wait, struct openmp_hold *hold);
    /* It turned out that it has the lock already. */
    void (*lock_nested)(struct openmp_wait *wait);
    void (*lock_gone)(const void *object);
    void (*lock_released)(enum shm_wait wait, const struct openmp_hold *hold, const void *place);
};

#endif
