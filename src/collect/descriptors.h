/*
 * Names for the program's descriptors: a file's path, a socket's peer. A name is looked up in /proc
 * when a call has first waited for the descriptor, and kept until it is closed; a step makes a
 * limited number of look-ups.
 */
#ifndef TRAIL_COLLECT_DESCRIPTORS_H
#define TRAIL_COLLECT_DESCRIPTORS_H

#include <stdint.h>

struct collect;
struct descriptors;

/* Called at the begin of a step: more look-ups may be made. */
void descriptors_step(struct collect *c);

/*
 * Returns the name of a record's `detail`; it lives as long as the collector. NULL: there is none,
 * or the descriptor was closed before the look-up. `generation` is the descriptor's when the call
 * ended.
 */
const char *descriptors_name(struct collect *c, uint32_t detail, uint32_t generation);

/*
 * Returns a text that lives as long as the collector, as one line of limited length; NULL: there
 * are too many. For names that are no descriptor's, too.
 */
const char *descriptors_keep(struct collect *c, const char *text);

/*
 * The same for a name of several: there may be very many, so that there is a limit for them alone.
 */
const char *descriptors_keep_list(struct collect *c, const char *text);

void descriptors_free(struct descriptors *descriptors);

#endif
