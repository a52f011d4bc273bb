/*
 * What `trail record -p` calls in libtrail-preload.so after it has loaded it into a process that
 * runs: functions that are found by name in the library's file. Each runs in a thread of the
 * program that was waiting in a system call, once at a time, and stores its result where its first
 * argument points to.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "shm/shm.h"

/* A thread of the process before it joins, and what it waits for. */
struct shm_waiting {
    uint32_t tid;
    enum shm_wait wait;  /* SHM_NO_WAIT: none, or unknown */
    uint64_t object;     /* its address; 0: none, or unknown */
    uint32_t detail;     /* the descriptor + 1; 0: none */
    uint64_t start;      /* a PC in the thread's start function; 0: main, or unknown */
    const uint64_t *pcs; /* from the call's caller outwards, as return addresses */
    size_t count;
};

enum attach_result {
    ATTACH_NONE, /* the call has not finished */
    ATTACH_GOOD,
    ATTACH_NO_AREA,     /* the area cannot be opened, or was not for this process */
    ATTACH_RECORDED,    /* another recording is on */
    ATTACH_PRELOADED,   /* the library was loaded with the program */
    ATTACH_NO_FUNCTION, /* the C library's functions were not found */
};

struct attach_answer {
    uint32_t result;  /* enum attach_result */
    uint32_t imports; /* how many imports were changed */
};

#define ATTACH_JOIN   "trail_preload_join"
#define ATTACH_RENEW  "trail_preload_renew"
#define ATTACH_LEAVE  "trail_preload_leave"
#define ATTACH_LOADER "trail_preload_in_loader"

/* Begins the recording into the area that `word` names (see SHM_VARIABLE). */
void trail_preload_join(struct attach_answer *answer, const char *word);

/* Has libraries recorded that were loaded since. */
void trail_preload_renew(struct attach_answer *answer);

/* Ends the recording. */
void trail_preload_leave(struct attach_answer *answer);
