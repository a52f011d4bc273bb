/*
 * Names for objects of waits that have a number of the kernel's but are not descriptors
 * (shm_is_numbered): processes, System V semaphore sets and message queues, and paths. A process's
 * name is read after a call has waited for it, while it is a child of the program. A path is read
 * from the program's memory before the call returns.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/idmap.h"

struct area_open;
struct collect;
struct thread;

/* Owned by numbered.c. */
struct numbered {
    struct idmap names; /* object to struct numbered_name, in the collector's arena */
    unsigned lookups;   /* that this step may still make */
};

/* Called at the start of a step: renews its allowance of look-ups. */
void numbered_step(struct collect *c);

/* Returns the object's name, "1234 (sort)"; it lives as long as the collector. NULL: only its
 * number is known. */
const char *numbered_name(struct collect *c, uint64_t object);

/*
 * Reads into the thread's feed the path or the descriptors of an open call (shm_is_path,
 * shm_is_pollfds), or else the operations of an io_uring ring.
 */
void numbered_read_open(struct collect *c, struct thread *thread, const struct area_open *open);

/* Writes the number of such an object; empty for a path. */
void numbered_text(uint64_t object, char *text, size_t size);

void numbered_free(struct collect *c);
