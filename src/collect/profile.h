/* Pending CPU samples, in order of time: from when they were taken until the model reaches their
 * times. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shm/shm.h"

struct collect;
struct thread;

struct pending_sample {
    int64_t ns;
    uint64_t tid;
    uint64_t *pcs;
    size_t count;
};

/* Owned by profile.c. Zero-initialised: empty. */
struct profile {
    struct pending_sample *samples; /* [first, first + count) */
    size_t first, count, room;
};

/* Adds a sample that the program took itself (SHM_SAMPLED). */
void profile_record(struct collect *c, const struct thread *thread,
                    const struct shm_record *record);

/* Removes the first sample if it was taken before a time; false: none was. The caller frees its
 * PCs. */
bool profile_next(struct collect *c, int64_t before_ns, struct pending_sample *sample);

void profile_dispose(struct collect *c);
