/*
 * How the parts of the event writer write records: on which thread, before or for the event, and
 * with the state of a goroutine or P announced before a generation's first record that refers to
 * it.
 */
#ifndef TRAIL_WRITE_EVENT_RECORDS_H
#define TRAIL_WRITE_EVENT_RECORDS_H

#include "write/event_writer.h"
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

/* Writes a record before it. */
static inline void event_add(struct event_writer *w, struct model_m *m, unsigned type,
                             unsigned count, const uint64_t *args)
{
    m->seen = true;
    if (!w->begun)
        return;
    w->stats.added++;
    (void)event_send_at(w, m, w->time_ns - EVENT_WRITER_AHEAD_NS, type, count, args);
}

#define SEND0(w, m, type) event_send(w, m, type, 0, NULL)
#define SEND(w, m, type, ...)                                                                      \
    event_send(w, m, type, (unsigned)(sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t)),       \
               (const uint64_t[]){__VA_ARGS__})
#define ADD0(w, m, type) event_add(w, m, type, 0, NULL)
#define ADD(w, m, type, ...)                                                                       \
    event_add(w, m, type, (unsigned)(sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t)),        \
              (const uint64_t[]){__VA_ARGS__})

/* MARK: IDs (event_ids.c) */

/*
 * IDs in the tables of the written generation; 0 for handle 0, before the first generation, and on
 * out of memory. A string is text chosen by the program; a reason is usually the runtime's.
 */
uint64_t event_string_id(struct event_writer *w, trail_string_handle handle);
uint64_t event_reason_id(struct event_writer *w, trail_string_handle handle);
/*
 * Writes what the host has said of its goroutine, once a generation with its status or creation; in
 * version 22 also `start`, the stack of its start function (0: none), which that has no record for.
 * Traces that are merged have other IDs, and lose their names.
 */
void event_label_g(struct event_writer *w, int64_t id, trail_stack_handle start);

uint64_t event_new_stack_id(struct event_writer *w, trail_stack_handle handle);

static inline uint64_t event_stack_id(struct event_writer *w, trail_stack_handle handle)
{
    const struct known_ids *known = &w->from->stacks;
    if (handle < known->count && known->ids[handle].life == w->from->life)
        return known->ids[handle].id;
    return event_new_stack_id(w, handle);
}

/* The ID of the kind of a stop-the-world pause, the text in the parentheses of a range's name. */
uint64_t event_stw_kind_id(struct event_writer *w, trail_string_handle name);

/* MARK: Announcing */

/* Writes the status of a P or goroutine; of a goroutine only if its state can be written. */
void event_announce_p(struct event_writer *w, struct model_p *p);
void event_announce_g(struct event_writer *w, struct model_g *g);

/* Whether a record can refer to it: announces it if this generation has not. */
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

/* Threads of v1 that are known only by the goroutine on them. */
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

/* MARK: Of v1 (event_v1.c) */

/* Returns the M of a P or goroutine to use instead of `m`, which is not a valid context of the
 * event; NULL if there is none. */
struct model_m *event_v1_context(struct event_writer *w, const trail_event *e, unsigned needs,
                                 struct model_m *m);

/* Returns the M for a ProcStatus. In v1 it may be that of the P `p` (NULL: a new one), or none. */
struct model_m *event_v1_status_thread(struct event_writer *w, const trail_event *e,
                                       const struct model_p *p);

/*
 * Takes the goroutine out of its system call and off its M, and returns that M; NULL if it is in
 * none. A P that v1 left in the call gets there by records of its own.
 */
struct model_m *event_v1_leave_syscall(struct event_writer *w, struct model_g *g);

/* Frees an M of its goroutine for another one. Returns false if the goroutine is running. */
bool event_v1_free(struct event_writer *w, struct model_m *m);

/* Returns the M on which the event can be written, or NULL. */
static inline struct model_m *event_context(struct event_writer *w, const trail_event *e,
                                            unsigned needs)
{
    struct model_m *m = model_m(&w->model, e->thread);
    return event_is_context(m, e, needs) ? m : event_v1_context(w, e, needs, m);
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

/* MARK: Events of event_ranges.c */

/* The size of the heap; separate because it is as frequent as scheduling events. */
bool event_put_heap(struct event_writer *w, const trail_event *e);

/* All events but those of Ps, goroutines and system calls. */
bool event_put_range(struct event_writer *w, const trail_event *e);

#endif
