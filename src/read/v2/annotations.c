/*
 * v2, annotations: tasks, regions and logs. Other events do not depend on them, so one that breaks
 * the rules is kept, with TRAIL_EVENT_MISUSED. Only a strict reader fails, with Go's message.
 */
#include "read/v2/common.h"

#include <stdlib.h>
#include <string.h>

#include "read/v2/guess.h"
#include "wire/wire.h"

/* The name is a copy, which outlives its generation. */
struct v2_region {
    struct v2_region *outer;
    uint64_t task;
    size_t size;
    char name[];
};

struct v2_task {
    uint64_t parent;
    size_t size;
    char name[];
};

/* An event being processed, with what it shows. */
struct annotation {
    struct step *step;
    bool misused;
};

/* Notes a broken rule. Returns from the handler if the reader is strict. */
#define MISUSED(a, ...)                                                                            \
    do {                                                                                           \
        if ((a)->step->order->strict)                                                              \
            return v2_fail((a)->step, __VA_ARGS__);                                                \
        (a)->misused = true;                                                                       \
    } while (0)

static enum v2_step check_context(struct annotation *a)
{
    if (met(a->step, V2_NEED_USER_GO))
        return V2_ADVANCED;
    a->misused = true;
    return a->step->order->strict ? unmet(a->step, V2_NEED_USER_GO) : V2_ADVANCED;
}

/* An ID that the generation does not define gives the empty string. */
static enum v2_step find_string(struct annotation *a, uint64_t id, trail_string_handle *handle)
{
    if (!tables_string(a->step->order->tables, id, handle))
        MISUSED(a, "found invalid string ID %" PRIu64 " for event %s", id, type_name(a->step));
    return V2_ADVANCED;
}

static enum v2_step find_name(struct annotation *a, uint64_t id, trail_string_handle *handle)
{
    if (!tables_string(a->step->order->tables, id, handle))
        MISUSED(a, "invalid string ID %" PRIu64 " for %s event", id, type_name(a->step));
    return V2_ADVANCED;
}

static enum v2_step find_stack(struct annotation *a, uint64_t id, trail_stack_handle *handle)
{
    if (!tables_stack(a->step->order->tables, id, handle))
        MISUSED(a, "found invalid stack ID %" PRIu64 " for event %s", id, type_name(a->step));
    return V2_ADVANCED;
}

#define TRY(call)                                                                                  \
    do {                                                                                           \
        enum v2_step tried = (call);                                                               \
        if (tried != V2_ADVANCED)                                                                  \
            return tried;                                                                          \
    } while (0)

static trail_event *emit_annotation(const struct annotation *a, trail_kind kind,
                                    trail_stack_handle stack)
{
    trail_event *e = emit(a->step, kind);
    e->stack = stack;
    /* Where events are lost, the missing one may be one of these. */
    if (a->misused && !a->step->order->lenient) {
        e->flags = TRAIL_EVENT_MISUSED;
        a->step->order->misused++;
    }
    return e;
}

static enum v2_step emit_task(const struct annotation *a, trail_kind kind, trail_stack_handle stack,
                              uint64_t parent, trail_string_handle type)
{
    trail_event *e = emit_annotation(a, kind, stack);
    e->task.id = arg(a->step, 0);
    e->task.parent = parent;
    e->task.type = type;
    return V2_ADVANCED;
}

/* MARK: Tasks */

static bool add_task(struct v2_order *o, uint64_t id, uint64_t parent, trail_string name)
{
    struct v2_task *task = malloc(sizeof *task + name.size);
    if (!task)
        return false;
    task->parent = parent;
    task->size = name.size;
    memcpy(task->name, name.data, name.size);
    free(idmap_remove(&o->tasks, id));
    if (idmap_put(&o->tasks, id, task))
        return true;
    free(task);
    return false;
}

static enum v2_step on_task_begin(struct annotation *a)
{
    struct step *s = a->step;
    struct v2_order *o = s->order;
    uint64_t id = arg(s, 0), parent = arg(s, 1);
    trail_string_handle type;
    trail_stack_handle stack;
    if (idmap_find(&o->tasks, id))
        MISUSED(a, "task ID conflict: %" PRIu64, id);
    if (parent == TRAIL_BACKGROUND_TASK)
        parent = TRAIL_NO_TASK;
    TRY(find_name(a, arg(s, 2), &type));
    if (!add_task(o, id, parent, o->tables->strings[type]) ||
        (o->guess && !v2_guess_task_begins(o->guess, id)))
        return v2_fail_memory(s);
    TRY(check_context(a));
    TRY(find_stack(a, arg(s, 3), &stack));
    return emit_task(a, TRAIL_TASK_BEGIN, stack, parent, type);
}

/* A task may end whose start was not recorded; it then has no parent and no name. */
static enum v2_step on_task_end(struct annotation *a)
{
    struct v2_order *o = a->step->order;
    uint64_t parent = TRAIL_NO_TASK;
    trail_string_handle type = 0;
    trail_stack_handle stack;
    struct v2_task *task = idmap_remove(&o->tasks, arg(a->step, 0));
    if (task) {
        parent = task->parent;
        type = tables_extra_string(o->tables, task->name, task->size);
        free(task);
    } else if (o->guess && !v2_guess_task_ends(o->guess, arg(a->step, 0))) {
        return v2_fail_memory(a->step);
    }
    TRY(check_context(a));
    TRY(find_stack(a, arg(a->step, 1), &stack));
    return emit_task(a, TRAIL_TASK_END, stack, parent, type);
}

void v2_drop_tasks(struct v2_order *o)
{
    idmap_free_values(&o->tasks);
}

/* MARK: Regions */

static enum v2_step begin_region(struct step *s, struct v2_g *g, uint64_t task, trail_string name)
{
    struct v2_region *region = malloc(sizeof *region + name.size);
    if (!region)
        return v2_fail_memory(s);
    *region = (struct v2_region){.outer = g->regions, .task = task, .size = name.size};
    memcpy(region->name, name.data, name.size);
    g->regions = region;
    return V2_ADVANCED;
}

static bool is_region(const struct v2_region *region, uint64_t task, trail_string name)
{
    return region->task == task && region->size == name.size &&
           memcmp(region->name, name.data, name.size) == 0;
}

/*
 * A region that began before the trace may end at any time; otherwise only the innermost may. If
 * another one ends, it is closed, and those inside it stay open.
 */
static enum v2_step end_region(struct annotation *a, struct v2_g *g, uint64_t task,
                               trail_string name)
{
    const struct v2_region *inner = g->regions;
    struct v2_region **ends = &g->regions, *none = NULL;
    struct v2_guess *guess = a->step->order->guess;
    if (!inner)
        return !guess || v2_guess_region_ends(guess, g->id, task, name) ? V2_ADVANCED
                                                                        : v2_fail_memory(a->step);
    if (!is_region(inner, task, name))
        MISUSED(a,
                "misuse of region in goroutine %" PRId64 ": region end {%" PRIu64
                " %.*s} when the inner-most active region start event is {%" PRIu64 " %.*s}",
                g->id, task, (int)name.size, name.data, inner->task, (int)inner->size, inner->name);
    for (unsigned i = 0; *ends && !is_region(*ends, task, name); i++)
        ends = i < WIRE_REGION_DEPTH ? &(*ends)->outer : &none;
    struct v2_region *ended = *ends;
    if (ended) {
        *ends = ended->outer;
        free(ended);
    }
    return V2_ADVANCED;
}

static enum v2_step on_region(struct annotation *a)
{
    struct step *s = a->step;
    bool begin = s->type == V2_UserRegionBegin;
    uint64_t task = arg(s, 0);
    trail_string_handle type;
    trail_stack_handle stack;
    TRY(check_context(a));
    TRY(find_name(a, arg(s, 1), &type));
    struct v2_g *g = current_g(s);
    if (!g)
        MISUSED(a, "encountered %s without known state for current goroutine %" PRId64,
                type_name(s), s->now.g);
    trail_string name = s->order->tables->strings[type];
    if (g)
        TRY(begin ? begin_region(s, g, task, name) : end_region(a, g, task, name));
    TRY(find_stack(a, arg(s, 2), &stack));
    trail_event *e = emit_annotation(a, begin ? TRAIL_REGION_BEGIN : TRAIL_REGION_END, stack);
    e->region.task = task;
    e->region.type = type;
    return V2_ADVANCED;
}

bool v2_regions_end(const struct v2_g *g, const struct v2_region_end *ends)
{
    const struct v2_region *region = g->regions;
    for (; region && ends; region = region->outer, ends = ends->next)
        if (!is_region(region, ends->task, (trail_string){ends->name, ends->size}))
            return false;
    return true;
}

void v2_regions_move(struct v2_g *from, const struct v2_region_end *ends, struct v2_g *to)
{
    struct v2_region **last = &to->regions;
    for (; from->regions && ends; ends = ends->next) {
        struct v2_region *ended = from->regions;
        from->regions = ended->outer;
        free(ended);
    }
    while (*last)
        last = &(*last)->outer;
    *last = from->regions;
    from->regions = NULL;
}

void v2_drop_regions(struct v2_g *g)
{
    while (g->regions) {
        struct v2_region *outer = g->regions->outer;
        free(g->regions);
        g->regions = outer;
    }
}

/* MARK: Logs */

static enum v2_step on_log(struct annotation *a)
{
    struct step *s = a->step;
    trail_stack_handle stack;
    trail_string_handle category, message;
    TRY(check_context(a));
    TRY(find_stack(a, arg(s, 3), &stack));
    TRY(find_string(a, arg(s, 1), &category));
    TRY(find_string(a, arg(s, 2), &message));
    trail_event *e = emit_annotation(a, TRAIL_LOG, stack);
    e->log.task = arg(s, 0);
    e->log.category = category;
    e->log.message = message;
    return V2_ADVANCED;
}

enum v2_step v2_annotation(struct step *s)
{
    struct annotation annotation = {.step = s};
    switch (s->type) {
    case V2_UserTaskBegin:
        return on_task_begin(&annotation);
    case V2_UserTaskEnd:
        return on_task_end(&annotation);
    case V2_UserLog:
        return on_log(&annotation);
    default:
        return on_region(&annotation);
    }
}
