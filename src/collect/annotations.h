/* The program's own annotations as events: tasks, regions and logs. */
#pragma once

#include <stdint.h>

#include "base/objects.h"
#include "collect/slow.h"

struct collect;
struct op;
struct thread;

struct open_task {
    uint32_t text; /* the number of its name */
    struct slow_span slow;
};

/* Owned by annotations.c. `tasks` is OBJECTS_OF(struct open_task); zero-initialise the rest. */
struct annotations {
    struct objects tasks; /* that have not ended, by the trace's ID */
    struct idmap texts;   /* texts by number, in the collector's arena */
};

/* Writes the event of an OP_ANNOTATION. */
void annotation_do(struct collect *c, struct thread *thread, const struct op *op, int64_t ns);

/* Reports open tasks and regions that are slow at `ns`. */
void annotations_look_at_open(struct collect *c, int64_t ns);

void annotations_dispose(struct collect *c);
