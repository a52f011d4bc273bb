/* Finds the thread of an event, and writes the records that traces of v1 lack: see event_v1.c. */
#pragma once

#include "write/event_records.h"

/* Returns the M of a P or goroutine to use instead of `m`, which is not a valid context for the
 * event; NULL if there is none. */
struct model_m *event_v1_context(struct event_writer *w, const trail_event *e, unsigned needs,
                                 struct model_m *m);

/* Returns the M for a ProcStatus. In v1 it may be that of the P `p` (NULL: a new M), or none. */
struct model_m *event_v1_status_thread(struct event_writer *w, const trail_event *e,
                                       const struct model_p *p);

/*
 * Takes the goroutine out of its system call and off its M, and returns that M; NULL if it is not
 * in one. A P that v1 left in the call gets there by added records.
 */
struct model_m *event_v1_leave_syscall(struct event_writer *w, struct model_g *g);

/* Frees an M from its goroutine for another one. Returns false if the goroutine is running. */
bool event_v1_free(struct event_writer *w, struct model_m *m);

/* Returns the M on which the event can be written, or NULL. */
static inline struct model_m *event_context(struct event_writer *w, const trail_event *e,
                                            unsigned needs)
{
    struct model_m *m = model_m(&w->model, e->thread);
    return event_is_context(m, e, needs) ? m : event_v1_context(w, e, needs, m);
}
