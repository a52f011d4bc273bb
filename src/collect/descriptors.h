/*
 * What a descriptor of the program is: the file's path, a socket's peer. Looked up in /proc when a call is first
 * seen to have waited for it, and remembered until it is closed; never more than a few look-ups a millisecond.
 */
#ifndef TRAIL_COLLECT_DESCRIPTORS_H
#define TRAIL_COLLECT_DESCRIPTORS_H

#include <stdint.h>

struct collect;
struct descriptors;

/* More look-ups may be made: called once a step. */
void descriptors_step(struct collect *c);

/*
 * The name of a record's `detail`, as long as the collector lives; NULL: it has none, is not known, or was closed
 * before anybody looked. `generation` is what it had when the call ended.
 */
const char *descriptors_name(struct collect *c, uint32_t detail, uint32_t generation);

/* The process executes another program: what it was is forgotten, names stay. */
void descriptors_forget(struct collect *c);
void descriptors_free(struct descriptors *descriptors);

#endif
