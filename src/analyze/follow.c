#include "analyze/follow.h"

void follow_init(struct follow *follow, const trail_reader *reader, struct names *names)
{
    *follow = (struct follow){
        .reader = reader,
        .names = names,
        .forever = names_of_text(names, "forever"),
        .procs = OBJECTS_OF(struct followed *),
    };
}

void follow_free(struct follow *follow)
{
    idmap_free(&follow->alive);
    announced_free(&follow->announced);
    objects_free(&follow->procs);
}

bool follow_name(struct follow *follow, const struct follow_ops *ops, void *context,
                 struct followed *g, const trail_event *event)
{
    size_t count;
    const trail_frame *frames = trail_reader_stack(follow->reader, event->transition.stack, &count);
    if (count == 0)
        return true;
    g->name =
        names_goroutine(follow->names, g->id, names_of(follow->names, frames[count - 1].function));
    return !ops->named || ops->named(context, g, &frames[count - 1]);
}

/* Sets a name that the program has given and that no stack is needed for. */
static bool take_label(struct follow *follow, const struct follow_ops *ops, void *context,
                       struct followed *g)
{
    trail_goroutine_label label;
    if (!trail_reader_goroutine(follow->reader, g->id, &label) || label.name.size == 0)
        return true;
    trail_name name = names_goroutine(follow->names, g->id, 0);
    if (name == g->name)
        return true;
    g->name = name;
    return !ops->named || ops->named(context, g, NULL);
}

bool follow_again(struct follow *follow, const struct follow_ops *ops, void *context,
                  const trail_event *event)
{
    trail_goroutine_label label;
    if (!trail_reader_goroutine(follow->reader, event->transition.id, &label))
        return true;
    struct followed *g = follow_find(follow, event->transition.id);
    if (!g)
        return true;
    return event->transition.stack != 0 ? follow_name(follow, ops, context, g, event)
                                        : take_label(follow, ops, context, g);
}

static bool end(struct follow *follow, const struct follow_ops *ops, void *context,
                struct followed *g, const trail_event *event)
{
    uint64_t id = (uint64_t)g->id;
    if (*g->in_syscall == g)
        *g->in_syscall = NULL;
    bool good = ops->ends(context, g, event);
    (void)idmap_remove(&follow->alive, id);
    return good;
}

bool follow_over(struct follow *follow, const struct follow_ops *ops, void *context,
                 struct followed *g, const trail_event *event)
{
    if (g->state != TRAIL_GO_UNDETERMINED)
        g->state = TRAIL_GO_NOT_EXIST;
    return end(follow, ops, context, g, event);
}

/* It was lost, and is in a state again. */
static bool again(struct follow *follow, const struct follow_ops *ops, void *context,
                  struct followed *g, const trail_event *event)
{
    bool created = event->transition.from == TRAIL_GO_NOT_EXIST;
    return (g->name != 0 || event->transition.stack == 0 ||
            follow_name(follow, ops, context, g, event)) &&
           (!ops->leaves || ops->leaves(context, g, event)) &&
           follow_enter(follow, ops, context, g, event, created ? NULL : &follow->sync_ns,
                        follow->announced.heard);
}

bool follow_first(struct follow *follow, const struct follow_ops *ops, void *context,
                  const trail_event *event)
{
    uint64_t id = (uint64_t)event->transition.id;
    bool created = event->transition.from == TRAIL_GO_NOT_EXIST;
    int64_t since_ns = created ? event->time_ns : follow->sync_ns;
    struct followed *g = idmap_find(&follow->alive, id);
    if (g && g->state == TRAIL_GO_UNDETERMINED && ops->lost)
        return again(follow, ops, context, g, event);
    if (g && !end(follow, ops, context, g, event))
        return false; /* another goroutine had its ID */
    g = ops->make(context);
    if (!g || !idmap_put(&follow->alive, id, g))
        return false;
    g->id = event->transition.id;
    g->since_ns = since_ns;
    g->in_syscall = &follow->nobody;
    if (!(event->transition.stack != 0 ? follow_name(follow, ops, context, g, event)
                                       : take_label(follow, ops, context, g)))
        return false;
    return ops->begins(context, g, event, since_ns) &&
           follow_enter(follow, ops, context, g, event, created ? NULL : &since_ns,
                        follow->announced.heard);
}
