/*
 * The feed: takes the records of all threads out of the area, turns them into ops, and sets the
 * watermark before which all ops are known.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "collect/collect.h"

/* A name that a thread has given to another one. */
struct named_thread {
    uint64_t handle, time;
    char name[16];
};

/* Owned by feed.c. Times in ticks. */
struct feed {
    uint64_t fed_at;         /* the start of the last step: earlier records have been taken */
    uint64_t ended_until;    /* the records of waits that ended before this have been taken */
    uint64_t holds, records; /* of all threads so far */
    uint64_t short_ticks;    /* spent in calls whose waits were too short to record */
    struct collect_rates rates;
    uint64_t rates_at;             /* when the rates were computed */
    struct named_thread named[64]; /* whose threads may not have been read yet */
    size_t named_count;
};

/* Takes all records; `last`: the program has ended. Sets c->watermark. */
void feed_all(struct collect *c, bool last);

/* Returns the time that threads spent in calls whose waits were too short to record. */
int64_t feed_short_ns(const struct collect *c);
