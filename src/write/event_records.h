/*
 * How the parts of the event writer write records: on which thread, before or for the event, and
 * with the state of a goroutine or P announced before a generation's first record that refers to
 * it.
 */
#pragma once

#include "write/event_state.h"
#include "write/v2_writer.h"

/* MARK: Records */

static inline bool event_send_at(struct event_writer *w, const struct model_m *m, int64_t time_ns,
                                 unsigned type, unsigned count, const uint64_t *args)
{
    uint64_t thread = m->id == TRAIL_NONE ? V2_NO_THREAD : (uint64_t)m->id;
    if (time_ns <= w->last_ns)
        time_ns = w->last_ns + 1;
    w->last_ns = time_ns;
    return v2_writer_event(w->out, thread, time_ns, type, count, args);
}

/* Writes the current event. */
static inline bool event_send(struct event_writer *w, struct model_m *m, unsigned type,
                              unsigned count, const uint64_t *args)
{
    m->seen = true;
    if (!w->begun)
        return true;
    w->stats.events++;
    return event_send_at(w, m, w->time_ns, type, count, args);
}

/* Writes a record before the current event. */
static inline void event_add(struct event_writer *w, struct model_m *m, unsigned type,
                             unsigned count, const uint64_t *args)
{
    m->seen = true;
    if (!w->begun)
        return;
    w->stats.added++;
    (void)event_send_at(w, m, w->time_ns - EVENT_WRITER_AHEAD_NS, type, count, args);
}

#define SEND0(w, m, type)     event_send(w, m, type, 0, NULL)
#define SEND(w, m, type, ...) event_send(w, m, type, V2_ARGS(__VA_ARGS__))
#define ADD0(w, m, type)      event_add(w, m, type, 0, NULL)
#define ADD(w, m, type, ...)  event_add(w, m, type, V2_ARGS(__VA_ARGS__))

/* MARK: Announcing */

/* Writes the status of a P or goroutine; that of a goroutine only if its state can be written. */
void event_announce_p(struct event_writer *w, struct model_p *p);
void event_announce_g(struct event_writer *w, struct model_g *g);

/* Whether a record can refer to the P; announces the P if this generation has not. */
static inline bool event_is_ready_p(struct event_writer *w, struct model_p *p)
{
    if (p->seq.generation != w->model.generation)
        event_announce_p(w, p);
    return true;
}

static inline bool event_is_ready_g(struct event_writer *w, struct model_g *g)
{
    if (g->seq.generation != w->model.generation)
        event_announce_g(w, g);
    return g->seq.generation == w->model.generation;
}

/* Returns an M on which a goroutine runs, so that any record can be written on it, or NULL. */
struct model_m *event_any_running(struct event_writer *w);

/* MARK: Threads */

/* Base of the IDs of v1 threads that are known only by the goroutine on them. */
#define EVENT_THREAD_OF_G (INT64_C(1) << 40)
#define EVENT_THREAD_OF_P (INT64_C(1) << 41)

static inline struct model_m *event_thread_named_after(struct event_writer *w, int64_t base,
                                                       int64_t id)
{
    return model_m(&w->model, base | (id & (base - 1)));
}

/* Returns the M of a goroutine whose status is a system call; without one, an M named after the
 * goroutine. */
static inline struct model_m *event_call_thread(struct event_writer *w, const trail_event *e)
{
    struct model_m *m = model_m(&w->model, e->thread);
    return m->id == TRAIL_NONE ? event_thread_named_after(w, EVENT_THREAD_OF_G, e->transition.id)
                               : m;
}

static inline bool event_is_real_p(int64_t proc)
{
    return proc != TRAIL_NONE && proc < TRAIL_FAKE_PROC;
}

/* Whether the M provides what the event needs (V2_NEED_...). */
static inline bool event_is_context(const struct model_m *m, const trail_event *e, unsigned needs)
{
    if (m->id == TRAIL_NONE)
        return needs == 0;
    if ((needs & V2_NEED_P) &&
        (m->p_id == TRAIL_NONE || (event_is_real_p(e->proc) && m->p_id != e->proc)))
        return false;
    if ((needs & V2_NEED_G) &&
        (m->g_id == TRAIL_NONE || (e->goroutine != TRAIL_NONE && m->g_id != e->goroutine)))
        return false;
    return !((needs & V2_NEED_NO_G) && m->g_id != TRAIL_NONE);
}

/* MARK: States */

static inline unsigned event_p_status(const trail_event *e)
{
    if (e->transition.status != 0)
        return e->transition.status;
    return e->transition.to == TRAIL_PROC_RUNNING ? V2_PROC_RUNNING : V2_PROC_IDLE; /* v1 */
}

static inline unsigned event_g_status(unsigned state)
{
    static const uint8_t statuses[TRAIL_GO_STATES] = {
        [TRAIL_GO_RUNNABLE] = V2_GO_RUNNABLE,
        [TRAIL_GO_RUNNING] = V2_GO_RUNNING,
        [TRAIL_GO_WAITING] = V2_GO_WAITING,
        [TRAIL_GO_SYSCALL] = V2_GO_SYSCALL,
    };
    return state < TRAIL_GO_STATES ? statuses[state] : V2_GO_BAD;
}
