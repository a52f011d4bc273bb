#include "report/looks.h"

const char *look_class(enum look look)
{
    static const char *const names[] = {"running", "syscall", "bare", "runnable", "waiting", ""};
    return names[look];
}

const char *look_title(enum look look)
{
    static const char *const names[] = {
        "running", "system call", "system call, {slot_lost}", "ready, not running", "waiting", ""};
    return names[look];
}

/* MARK: Following */

static struct looking *looking_of(struct followed *g)
{
    return (struct looking *)(void *)g;
}

static bool change(struct looks *looks, struct looking *g, enum look to, const trail_event *event)
{
    if (!looks->hook(looks->context, g, to, event))
        return false;
    g->look = to;
    g->look_ns = event->time_ns;
    return true;
}

static struct followed *make(void *context)
{
    struct looks *looks = context;
    struct looking *g = slab_get(&looks->slab);
    return g ? &g->followed : NULL;
}

static bool begins(void *context, struct followed *followed, const trail_event *event,
                   int64_t since_ns)
{
    (void)context, (void)event;
    struct looking *g = looking_of(followed);
    g->look = LOOK_NONE;
    g->look_ns = since_ns;
    return true;
}

static bool enters(void *context, struct followed *g, const trail_event *event, trail_name reason)
{
    static const enum look looks[TRAIL_GO_STATES] = {
        [TRAIL_GO_RUNNABLE] = LOOK_RUNNABLE,
        [TRAIL_GO_RUNNING] = LOOK_RUNNING,
        [TRAIL_GO_WAITING] = LOOK_WAITING,
        [TRAIL_GO_SYSCALL] = LOOK_SYSCALL,
    };
    (void)reason;
    enum look to = looks[g->state];
    if (to == LOOK_SYSCALL && event->proc < 0)
        to = LOOK_P_RELEASED;
    return change(context, looking_of(g), to, event);
}

static bool found(void *context, struct followed *g, const trail_event *event, trail_name reason,
                  int64_t since_ns)
{
    (void)since_ns; /* it has not been drawn so far */
    return enters(context, g, event, reason);
}

static bool loses_proc(void *context, struct followed *g, const trail_event *event)
{
    return change(context, looking_of(g), LOOK_P_RELEASED, event);
}

static bool ends(void *context, struct followed *g, const trail_event *event)
{
    struct looks *looks = context;
    bool good = change(looks, looking_of(g), LOOK_NONE, event);
    slab_put(&looks->slab, g);
    return good;
}

static const struct follow_ops ops = {
    .make = make,
    .begins = begins,
    .enters = enters,
    .found = found,
    .loses_proc = loses_proc,
    .ends = ends,
};

void looks_init(struct looks *looks, const trail_reader *reader, look_hook hook, void *context)
{
    *looks = (struct looks){
        .hook = hook,
        .context = context,
        .names = {.reader = reader},
        .slab = {.object_size = sizeof(struct looking)},
    };
    follow_init(&looks->follow, reader, &looks->names);
}

void looks_batch(struct looks *looks)
{
    names_begin_batch(&looks->names);
}

bool looks_event(struct looks *looks, const trail_event *event)
{
    if (!looks->begun || event->kind == TRAIL_SYNC) {
        looks->begun = true;
        follow_sync(&looks->follow, event->time_ns);
    }
    if (event->kind == TRAIL_LOG)
        return follow_log(&looks->follow, event);
    if (event->kind != TRAIL_STATE_TRANSITION)
        return true;
    return follow_transition(&looks->follow, &ops, looks, event) && !looks->names.failed;
}

void looks_free(struct looks *looks)
{
    follow_free(&looks->follow);
    names_free(&looks->names);
    slab_free(&looks->slab);
}
