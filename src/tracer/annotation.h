/* Common code of the functions for tasks, regions and logs. */
#pragma once

#include "host/annotations.h"
#include "tracer/context.h"
#include "tracer/event.h"

/* Whether annotations go to `trail record`, because no trace of the program's own is on. */
static inline bool is_recorded_outside(void)
{
    return annotations && !trace_is_on();
}

/* Without an M: passes the annotation to `trail record`, if it records the process, and returns. */
#define RECORD_OUTSIDE_UNLESS(m, function, ...)                                                    \
    do {                                                                                           \
        if (!(m) && is_recorded_outside())                                                         \
            annotations->function(__VA_ARGS__);                                                    \
        if (!(m))                                                                                  \
            return;                                                                                \
    } while (0)

/*
 * Opens a section for an annotation, in any thread, if the format has annotations. Returns NULL if
 * nothing is to be written. Must be used in the function that the host called.
 */
always_inline trail_m *open_any(uint64_t *generation)
{
    trail_m *m = section_open(generation);
    if (!m)
        return NULL;
    m->frame_ = stack_frame();
    if (tracer.format >= 11)
        return m;
    leave_out(TRAIL_LEFT_OUT_ANNOTATION);
    section_leave(m);
    return NULL;
}

/* The same for a task or log, in the context it requires; close_annotation must follow. */
always_inline trail_m *open_annotation(uint64_t *generation, const char *what)
{
    trail_m *m = open_any(generation);
    if (!m || likely(runs_goroutine(m, *generation)) || m->paused_ == *generation)
        return m;
    return context_annotate(m, generation, what);
}

/* The same, for a region, which needs a running goroutine. */
always_inline trail_m *open_region(uint64_t *generation, const char *what)
{
    trail_m *m = open_any(generation);
    if (!m || likely(runs_goroutine(m, *generation)))
        return m;
    return context_borrow(m, generation, what);
}

static inline void close_annotation(trail_m *m, uint64_t generation)
{
    if (unlikely(m->borrowed_))
        context_return(m, generation);
    section_leave(m);
}
