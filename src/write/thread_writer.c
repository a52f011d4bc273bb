/* Writes threads as goroutines and Ms, CPUs as Ps: see thread_writer.h. */
#include "write/thread_writer.h"

#include <stdlib.h>

#include "base/grow.h"

#define GENERATION_BYTES (8u << 20)

void thread_writer_dispose(struct thread_writer *w)
{
    free(w->ps);
}

/* MARK: Generations */

bool thread_writer_is_full(const struct thread_writer *w)
{
    return v2_writer_bytes(w->out) - w->begin_bytes >= GENERATION_BYTES;
}

void thread_writer_end(struct thread_writer *w)
{
    if (w->generation > 0)
        (void)v2_writer_end(w->out);
}

void thread_writer_begin(struct thread_writer *w, int64_t wall_ns, const trail_maker *maker)
{
    w->generation++;
    w->begin_ns = w->now_ns;
    (void)v2_writer_begin(w->out, w->now_ns, wall_ns);
    v2_writer_maker(w->out, maker);
}

void thread_writer_ps(struct thread_writer *w)
{
    for (size_t i = 0; i < w->p_count; i++) {
        struct written_p *p = &w->ps[i];
        p->seq = 0;
        if (p->known)
            THREAD_EVENT(w, p->running ? p->running->m : V2_NO_THREAD, w->now_ns, V2_ProcStatus, i,
                         p->running ? V2_PROC_RUNNING : V2_PROC_IDLE);
    }
}

/* Everything that follows is later than all statuses. */
void thread_writer_begun(struct thread_writer *w)
{
    (void)thread_writer_tick(w);
    w->begin_bytes = v2_writer_bytes(w->out);
}

void thread_writer_status(struct thread_writer *w, uint64_t on, struct written_thread *thread,
                          int64_t ns, unsigned status, uint64_t name)
{
    bool bound = status == V2_GO_RUNNING || status == V2_GO_SYSCALL;
    const uint64_t args[] = {thread->g, bound ? thread->m : V2_NO_THREAD, status, name};
    thread->seq = 0;
    (void)v2_writer_event(w->out, on, ns, name ? V2_GoStatusStack : V2_GoStatus, name ? 4 : 3,
                          args);
}

/* MARK: Ps */

bool thread_writer_add_ps(struct thread_writer *w, size_t count)
{
    if (!GROW(w->ps, w->p_room, count))
        return false;
    while (w->p_count < count)
        w->ps[w->p_count++] = (struct written_p){0};
    return true;
}

size_t thread_writer_free_p(const struct thread_writer *w)
{
    size_t p = 0;
    while (p < w->p_count && w->ps[p].running)
        p++;
    return p;
}

void thread_writer_show_p(struct thread_writer *w, size_t p, uint64_t on, int64_t ns)
{
    if (!w->ps[p].known)
        THREAD_EVENT(w, on, ns, V2_ProcStatus, p, V2_PROC_IDLE);
    w->ps[p].known = true;
}

void thread_writer_take_p(struct thread_writer *w, struct written_thread *thread, size_t p,
                          int64_t ns)
{
    thread_writer_show_p(w, p, thread->m, ns);
    THREAD_EVENT(w, thread->m, ns, V2_ProcStart, p, ++w->ps[p].seq);
    w->ps[p].running = thread;
    thread->p = (int64_t)p;
}

void thread_writer_give_p(struct thread_writer *w, struct written_thread *thread, int64_t ns)
{
    (void)v2_writer_event(w->out, thread->m, ns, V2_ProcStop, 0, NULL);
    w->ps[thread->p].running = NULL;
    thread->p = -1;
}

/* MARK: Goroutines */

void thread_writer_start(struct thread_writer *w, struct written_thread *thread, int64_t ns)
{
    THREAD_EVENT(w, thread->m, ns, V2_GoStart, thread->g, ++thread->seq);
}

void thread_writer_unblock(struct thread_writer *w, uint64_t by, struct written_thread *thread,
                           int64_t ns, uint64_t stack)
{
    THREAD_EVENT(w, by, ns, V2_GoUnblock, thread->g, ++thread->seq, stack);
}
