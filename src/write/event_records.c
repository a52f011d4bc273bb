/* Announces goroutines and Ps before the first record that refers to them: see event_records.h. */
#include "write/event_records.h"

#include "write/event_ids.h"

void event_announce_p(struct event_writer *w, struct model_p *p)
{
    struct model_m *m = model_p_runs(p) ? model_thread_of_p(&w->model, p) : NULL;
    m = m ? m : &w->model.nobody;
    ADD(w, m, V2_ProcStatus, (uint64_t)p->id, p->status);
    p->seq = (struct model_seq){w->model.generation, 0};
    if (p->sweeps)
        ADD(w, m, V2_GCSweepActive, (uint64_t)p->id);
}

void event_announce_g(struct event_writer *w, struct model_g *g)
{
    struct model_m *m = NULL;
    if (g->status == V2_GO_RUNNING || g->status == V2_GO_SYSCALL)
        m = model_thread_of_g(&w->model, g);
    if (!m && g->status == V2_GO_SYSCALL) {
        m = event_thread_named_after(w, EVENT_THREAD_OF_G, g->id);
        if (!m || !w->initial || m->g_id != TRAIL_NONE)
            return; /* no record can refer to it any more */
        model_bind_g(m, g);
    }
    m = m ? m : &w->model.nobody;
    ADD(w, m, V2_GoStatus, (uint64_t)g->id, (uint64_t)m->id, g->status);
    event_label_g(w, g->id, 0);
    g->seq = (struct model_seq){w->model.generation, 0};
    if (g->assists)
        ADD(w, m, V2_GCMarkAssistActive, (uint64_t)g->id);
}

struct model_m *event_any_running(struct event_writer *w)
{
    IDMAP_VALUES(const struct model_g, g, &w->model.gs.map) {
        struct model_m *m = g->status == V2_GO_RUNNING ? model_thread_of_g(&w->model, g) : NULL;
        if (m && m->p_id != TRAIL_NONE)
            return m;
    }
    return NULL;
}
