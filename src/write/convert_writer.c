/* Changes events for a part of a trace, or for Go 1.22: see convert_writer.h. */
#include "write/convert_writer.h"

#include "write/event_ids.h"
#include "write/event_v1.h"

/* Counts an event for which nothing is written. */
static void pass_over(struct event_writer *base, const trail_event *e)
{
    if (event_writer_take(base, e))
        event_writer_done(base, e, true);
}

/* In a part of a trace, a stolen P may still run, or be idle already. */
static void put_steal(struct convert_writer *w, const trail_event *e)
{
    const struct model_p *p = model_find_p(&w->base.model, e->transition.id);
    bool by_itself = w->part && p && !(e->flags & TRAIL_EVENT_IMPLIED);
    trail_event stop = *e;
    stop.wire = V2_ProcStop;
    if (by_itself && p->status == V2_PROC_IDLE)
        pass_over(&w->base, e);
    else if (by_itself && p->status == V2_PROC_RUNNING)
        event_writer_put(&w->base, &stop);
    else
        event_writer_put(&w->base, e);
}

/* 1.22 has no GoCreateBlocked: the goroutine becomes runnable earlier than in the source. */
static void create_early(struct event_writer *base, trail_event *e)
{
    bool is_new = !model_find_g(&base->model, e->transition.id);
    e->wire = V2_GoCreate;
    event_writer_put(base, e);
    struct model_g *g = model_find_g(&base->model, e->transition.id);
    if (is_new && g)
        g->early = true;
}

/* Writes a transition of a goroutine. 1.22 has no GoSwitch either: its three events are written one
 * by one. */
static void put_in_122(struct event_writer *base, trail_event e)
{
    struct model_g *g = model_find_g(&base->model, e.transition.id);
    bool early = g && g->early;
    if (event_is_of_damage(&e)) {
        event_writer_put(base, &e);
        return;
    }
    e.flags = 0;
    if (e.wire == V2_GoSwitch || e.wire == V2_GoSwitchDestroy)
        e.wire = V2_GoUnblock;
    if (e.wire == V2_GoUnblock && early && g->status != V2_GO_WAITING) {
        g->early = false;
        pass_over(base, &e);
        return;
    }
    bool status = e.wire == V2_GoStatus || e.wire == V2_GoStatusStack;
    if (status && early && e.transition.to == TRAIL_GO_WAITING)
        e.transition.to = TRAIL_GO_RUNNABLE;
    if (e.wire == V2_GoCreateBlocked)
        create_early(base, &e);
    else
        event_writer_put(base, &e);
}

void convert_writer_change(struct convert_writer *w, const trail_event *e)
{
    if (e->wire == V2_ProcSteal)
        put_steal(w, e);
    else if (e->kind == TRAIL_STATE_TRANSITION &&
             e->transition.resource == TRAIL_RESOURCE_GOROUTINE)
        put_in_122(&w->base, *e);
    else
        event_writer_put(&w->base, e);
}

void convert_writer_last(struct convert_writer *w, int64_t time_ns,
                         const trail_clock_snapshot *clocks)
{
    struct event_writer *base = &w->base;
    const struct idmap *ps = &base->model.ps.map;
    if (!base->begun || time_ns + base->shift_ns <= base->last_ns || ps->count == 0 ||
        event_writer_failed(base))
        return;
    event_writer_begin(base, time_ns - 1, clocks, false); /* its Sync is also an event */
    base->time_ns += 1 + EVENT_WRITER_AHEAD_NS;
    event_announce_p(base, idmap_next(ps, NULL)->value);
}

int convert_writer_init(struct convert_writer *w, int version, trail_reader *reader,
                        const trail_sink *sink, trail_error *err)
{
    *w = (struct convert_writer){.origin = {.reader = reader, .pc_mask = UINT64_MAX}};
    if (event_writer_init(&w->base, version, sink, err) < 0)
        return -1;
    w->base.origins = w->base.from = &w->origin;
    if (!trail_version_is_v2(trail_reader_version(reader)))
        w->base.shift_ns = EVENT_WRITER_V1_SHIFT_NS;
    return 0;
}

int convert_writer_anonymize(struct convert_writer *w, const char *secret, trail_error *err)
{
    w->base.anonymizer = &w->anonymizer;
    return anonymizer_init(&w->anonymizer, secret, err);
}

bool convert_writer_fini(struct convert_writer *w, trail_convert_stats *stats, trail_error *err)
{
    origin_fini(&w->origin);
    return event_writer_fini(&w->base, stats, err);
}
