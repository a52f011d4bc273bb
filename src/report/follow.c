#include "report/follow.h"

const char *look_class(enum look look)
{
    static const char *const names[] = {"running", "syscall", "bare", "runnable", "waiting", ""};
    return names[look];
}

const char *look_title(enum look look)
{
    static const char *const names[] = {
        "running",           "system call", "system call, its P taken away",
        "ready (could run)", "waiting",     ""};
    return names[look];
}

void follow_init(struct follow *follow, const trail_reader *reader, follow_hook hook, void *context)
{
    *follow = (struct follow){
        .reader = reader,
        .hook = hook,
        .context = context,
        .names = {.reader = reader},
        .slab = {.object_size = sizeof(struct followed)},
        .proc_slab = {.object_size = sizeof(struct followed *)},
    };
}

void follow_batch(struct follow *follow)
{
    names_begin_batch(&follow->names);
}

void follow_free(struct follow *follow)
{
    names_free(&follow->names);
    idmap_free(&follow->alive);
    idmap_free(&follow->procs);
    slab_free(&follow->slab);
    slab_free(&follow->proc_slab);
}

/* MARK: Ps */

/* Where who is in a system call on the P is noted. NULL when memory is out. */
static struct followed **on_proc(struct follow *follow, int64_t proc)
{
    struct followed **slot = idmap_find(&follow->procs, (uint64_t)proc);
    if (slot)
        return slot;
    slot = slab_get(&follow->proc_slab);
    return slot && idmap_put(&follow->procs, (uint64_t)proc, slot) ? slot : NULL;
}

static void leave_syscall(struct followed *g)
{
    if (g->in_syscall && *g->in_syscall == g)
        *g->in_syscall = NULL;
    g->in_syscall = NULL;
}

static bool change(struct follow *follow, struct followed *g, enum look to,
                   const trail_event *event)
{
    if (!follow->hook(follow->context, g, to, event))
        return false;
    g->look = to;
    g->since_ns = event->time_ns;
    return true;
}

/* Who was in a system call on a P that becomes idle has lost it. */
static bool proc_transition(struct follow *follow, const trail_event *event)
{
    if (event->transition.from == event->transition.to || event->transition.to != TRAIL_PROC_IDLE)
        return true;
    struct followed **slot = idmap_find(&follow->procs, (uint64_t)event->transition.id);
    struct followed *g = slot ? *slot : NULL;
    if (!g)
        return true;
    leave_syscall(g);
    return change(follow, g, LOOK_BARE, event);
}

/* MARK: Goroutines */

static enum look look_of(const trail_event *event)
{
    switch (event->transition.to) {
    case TRAIL_GO_RUNNABLE:
        return LOOK_RUNNABLE;
    case TRAIL_GO_RUNNING:
        return LOOK_RUNNING;
    case TRAIL_GO_WAITING:
        return LOOK_WAITING;
    case TRAIL_GO_SYSCALL:
        return event->proc < 0 ? LOOK_BARE : LOOK_SYSCALL;
    default:
        return LOOK_NONE;
    }
}

static bool end(struct follow *follow, struct followed *g, const trail_event *event)
{
    leave_syscall(g);
    bool good = change(follow, g, LOOK_NONE, event);
    (void)idmap_remove(&follow->alive, (uint64_t)g->id);
    slab_put(&follow->slab, g);
    return good;
}

/* Seen first, or another with the number of one before. NULL when memory is out. */
static struct followed *begin(struct follow *follow, const trail_event *event)
{
    bool created = event->transition.from == TRAIL_GO_NOT_EXIST;
    struct followed *g = slab_get(&follow->slab);
    if (!g || !idmap_put(&follow->alive, (uint64_t)event->transition.id, g))
        return NULL;
    *g = (struct followed){
        .id = event->transition.id,
        .since_ns = created ? event->time_ns : follow->sync_ns,
        .look = LOOK_NONE,
    };
    return g;
}

/* The start function is the outermost frame of the first stack that is known. */
static void find_name(struct follow *follow, struct followed *g, trail_stack_handle stack)
{
    size_t count;
    const trail_frame *frames = trail_reader_stack(follow->reader, stack, &count);
    if (count > 0)
        g->name = names_of(&follow->names, frames[count - 1].function);
}

static bool transition(struct follow *follow, const trail_event *event)
{
    unsigned from = event->transition.from;
    if (from == event->transition.to)
        return true;
    struct followed *g = idmap_find(&follow->alive, (uint64_t)event->transition.id);
    if (from <= TRAIL_GO_NOT_EXIST) {
        if (g && !end(follow, g, event))
            return false;
        g = begin(follow, event);
        if (!g)
            return false;
    }
    if (!g)
        return true;
    if (g->name == 0 && event->transition.stack != 0)
        find_name(follow, g, event->transition.stack);
    enum look to = look_of(event);
    if (to == LOOK_NONE)
        return end(follow, g, event);
    leave_syscall(g);
    if (to == LOOK_SYSCALL) {
        g->in_syscall = on_proc(follow, event->proc);
        if (!g->in_syscall)
            return false;
        *g->in_syscall = g;
    }
    return change(follow, g, to, event);
}

bool follow_event(struct follow *follow, const trail_event *event)
{
    if (!follow->begun || event->kind == TRAIL_SYNC) {
        follow->begun = true;
        follow->sync_ns = event->time_ns;
    }
    if (event->kind != TRAIL_STATE_TRANSITION)
        return true;
    return event->transition.resource == TRAIL_RESOURCE_GOROUTINE ? transition(follow, event)
                                                                  : proc_transition(follow, event);
}
