/* The program's own annotations as events: tasks, regions and logs. */
#ifndef TRAIL_COLLECT_ANNOTATIONS_H
#define TRAIL_COLLECT_ANNOTATIONS_H

#include <stdint.h>

#include "base/idmap.h"

struct collect;
struct op;
struct thread;

/* Owned by annotations.c. Zero-initialised: empty. */
struct annotations {
    struct idmap tasks; /* open tasks, by the trace's ID */
    struct idmap texts; /* texts by number, in the collector's arena */
};

/* Writes the event of an OP_ANNOTATION. */
void annotation_do(struct collect *c, struct thread *thread, const struct op *op, int64_t ns);

void annotations_dispose(struct collect *c);

#endif
