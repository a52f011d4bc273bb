/* What the functions for tasks, regions and logs have in common. */
#ifndef TRAIL_TRACER_ANNOTATION_H
#define TRAIL_TRACER_ANNOTATION_H

#include "host/annotations.h"
#include "tracer/event.h"

/* Whether annotations go to `trail record`, because no trace of the program's own is on. */
static inline bool is_recorded_outside(void)
{
    return annotations && !trace_is_on();
}

/*
 * Opens a section for an annotation, in any thread, if the format has annotations. Returns NULL if
 * nothing is to be written. Only used in the function that the host called.
 */
always_inline trail_m *open_any(uint64_t *generation)
{
    trail_m *m = section_open(generation);
    if (!m)
        return NULL;
    m->frame_ = stack_frame();
    if (tracer.format >= 11)
        return m;
    count(&tracer.stats.not_expressible);
    section_leave(m);
    return NULL;
}

/* The same, if the thread runs a goroutine on a P; otherwise it is misuse. */
always_inline trail_m *open_annotation(uint64_t *generation, const char *what)
{
    trail_m *m = open_any(generation);
    if (!m || runs_goroutine(m, *generation))
        return m;
    if (thread_is_changing())
        count(&tracer.stats.reentrant);
    else
        misuse(m, what, "the thread runs no goroutine on a P");
    section_leave(m);
    return NULL;
}

#endif
