/*
 * Names for what a wait is for that has a number of the kernel's and is no descriptor
 * (shm_is_numbered): processes, System V semaphore sets and message queues, and paths. A process's
 * name is read when a call has waited for it, as long as it is a child of the program. A path is
 * read from the program's memory while the call has not returned.
 */
#ifndef TRAIL_COLLECT_NUMBERED_H
#define TRAIL_COLLECT_NUMBERED_H

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

/* Called at the begin of a step: more look-ups may be made. */
void numbered_step(struct collect *c);

/* Returns the object's name, "1234 (sort)"; it lives as long as the collector. NULL: only its
 * number is known. */
const char *numbered_name(struct collect *c, uint64_t object);

/*
 * Reads the path or the descriptors that an open call has (shm_is_path, shm_is_pollfds), or else
 * the operations of a ring of io_uring, into the thread's feed.
 */
void numbered_read_open(struct collect *c, struct thread *thread, const struct area_open *open);

/* Writes what is known of any such object: its number; empty: a path. */
void numbered_text(uint64_t object, char *text, size_t size);

void numbered_free(struct collect *c);

#endif
