/* v2 hole: see hole.h. */
#include "read/v2/hole.h"

#include <stdlib.h>

#include "read/v2/common.h"

static int by_id(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

bool v2_hole_begin(struct v2_hole *hole, const struct v2_order *order)
{
    v2_hole_free(hole);
    hole->ids = malloc((order->gs.count + order->ps.count + 1) * sizeof *hole->ids);
    if (!hole->ids)
        return false;
    IDMAP_EACH(slot, &order->gs)
        hole->ids[hole->count++] = slot->id;
    hole->goroutines = hole->count;
    IDMAP_EACH(slot, &order->ps)
        hole->ids[hole->count++] = slot->id;
    qsort(hole->ids, hole->goroutines, sizeof *hole->ids, by_id);
    qsort(hole->ids + hole->goroutines, hole->count - hole->goroutines, sizeof *hole->ids, by_id);
    hole->open = true;
    return true;
}

/* An event of no thread, right behind the one before. */
static struct step implied(struct v2_order *order, uint8_t type)
{
    return (struct step){
        .order = order,
        .m = &order->nobody,
        .now = {.m = TRAIL_NONE, .p = TRAIL_NONE, .g = TRAIL_NONE},
        .output = order->output,
        .time_ns = order->output.last_ns,
        .type = type,
    };
}

static void end_goroutine(struct v2_order *order, struct v2_g *g)
{
    static const uint8_t states[V2_GO_STATUSES] = {
        [V2_GO_BAD] = TRAIL_GO_UNDETERMINED, [V2_GO_RUNNABLE] = TRAIL_GO_RUNNABLE,
        [V2_GO_RUNNING] = TRAIL_GO_RUNNING,  [V2_GO_SYSCALL] = TRAIL_GO_SYSCALL,
        [V2_GO_WAITING] = TRAIL_GO_WAITING,
    };
    struct step s = implied(order, V2_GoStatus);
    v2_end_ranges(&s, &g->ranges, TRAIL_RESOURCE_GOROUTINE, g->id);
    emit_go(&s, g->id, states[g->status], TRAIL_GO_UNDETERMINED)->flags = TRAIL_EVENT_IMPLIED;
    order->output = s.output;
    v2_destroy_g(order, g);
}

static void end_proc(struct v2_order *order, struct v2_p *p)
{
    bool busy = p->status == V2_PROC_RUNNING || p->status == V2_PROC_SYSCALL;
    struct step s = implied(order, V2_ProcStatus);
    v2_end_ranges(&s, &p->ranges, TRAIL_RESOURCE_PROC, p->id);
    emit_proc(&s, p->id, busy ? TRAIL_PROC_RUNNING : TRAIL_PROC_IDLE, TRAIL_PROC_UNDETERMINED)
        ->flags = TRAIL_EVENT_IMPLIED;
    order->output = s.output;
    idmap_remove(&order->ps, (uint64_t)p->id);
    free(p->ranges.items);
    slab_put(&order->p_slab, p);
}

bool v2_hole_emit(struct v2_hole *hole, struct v2_order *order, const trail_event *full)
{
    for (; hole->next < hole->count && order->output.next < full; hole->next++) {
        uint64_t id = hole->ids[hole->next];
        if (hole->next < hole->goroutines)
            end_goroutine(order, idmap_find(&order->gs, id));
        else
            end_proc(order, idmap_find(&order->ps, id));
    }
    if (hole->next < hole->count)
        return false;
    struct step s = implied(order, V2_GCEnd);
    v2_end_gc(&s);
    order->output = s.output;
    v2_hole_free(hole);
    v2_order_restart(order);
    return true;
}

void v2_hole_free(struct v2_hole *hole)
{
    free(hole->ids);
    *hole = (struct v2_hole){0};
}
