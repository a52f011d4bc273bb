/*
 * Names for the program's descriptors: a file's path, a socket's peer. A name is looked up in /proc
 * the first time that a call waits for the descriptor, and kept until the descriptor is closed; the
 * number of look-ups per step is limited.
 */
#pragma once

#include <stdint.h>

struct collect;
struct descriptors;

/* Called at the start of a step: renews its allowance of look-ups. */
void descriptors_step(struct collect *c);

/*
 * Returns the name for a record's `detail`; it lives as long as the collector. NULL: none, or the
 * descriptor was closed before the look-up. `generation` is the descriptor's when the call ended.
 */
const char *descriptors_name(struct collect *c, uint32_t detail, uint32_t generation);

/*
 * Returns a copy of a text that lives as long as the collector, as one line of limited length;
 * NULL: too many. Also used for names of other objects.
 */
const char *descriptors_keep(struct collect *c, const char *text);

/*
 * The same for the names of several descriptors, which have a separate limit because there may be
 * very many.
 */
const char *descriptors_keep_list(struct collect *c, const char *text);

void descriptors_free(struct descriptors *descriptors);
