/* Logs the locks that threads hold: see holds.h. */
#include "collect/holds.h"

#include <stdio.h>
#include <stdlib.h>

#include "collect/parts.h"
#include "wire/waits.h"

/* More locks of one thread are left out: a log for each would fill the trace. */
enum { MOST_HOLDS = 16 };

/* Reads the locks of all threads, once a step. Returns false when memory is out. */
static bool read_holds(struct collect *c)
{
    struct holds *holds = &c->holds;
    if (!holds->list)
        holds->list = calloc(SHM_OBJECTS, sizeof *holds->list);
    if (!holds->list)
        collect_no_memory(c);
    else if (!holds->known)
        holds->count = area_holds(c->area, holds->list);
    holds->known = true;
    return holds->list != NULL;
}

void holds_forget(struct collect *c)
{
    c->holds.known = false;
}

void holds_log(struct collect *c, struct thread *thread, int64_t ns)
{
    char text[600];
    uint64_t base = c->threads.base;
    if (!read_holds(c))
        return;
    for (size_t i = 0, logged = 0; i < c->holds.count && logged < MOST_HOLDS; i++) {
        const struct area_hold *hold = &c->holds.list[i];
        if (hold->serial != thread->serial - base)
            continue;
        snprintf(text, sizeof text, "%s %s", wait_kinds[hold->wait].words,
                 names_lock(c, hold->object, hold->pc, 0));
        EVENT(c, thread, ns, V2_UserLog, 0, names_string(c, WIRE_HOLDS_CATEGORY),
              names_string(c, text), 0);
        logged++;
    }
}

void holds_dispose(struct collect *c)
{
    free(c->holds.list);
}
