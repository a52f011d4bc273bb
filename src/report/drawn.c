#include "report/drawn.h"

#include "base/text.h"

const char *drawn_class(enum drawn_state state)
{
    static const char *const names[] = {"running",  "syscall", "p-released",
                                        "runnable", "waiting", ""};
    return names[state];
}

const char *drawn_title(enum drawn_state state)
{
    static const char *const names[] = {
        "running", "syscall", "syscall, {slot_lost}", "ready, not running", "waiting", ""};
    return names[state];
}

#define CLASS_NAMES(before)                                                                        \
    {                                                                                              \
        before "unknown", before "lock", before "cond", before "io", before "sleep",               \
            before "idle", before "runtime"                                                        \
    }

const char *drawn_wait_class(enum wait_class class)
{
    static const char *const names[WAIT_CLASSES] = CLASS_NAMES("waiting e-");
    return names[class];
}

const char *drawn_wash_class(enum wait_class class)
{
    static const char *const names[WAIT_CLASSES] = CLASS_NAMES("w-");
    return names[class];
}

static enum wait_class class_by_word(const struct names *names, trail_name wait)
{
    trail_wait_for what = wait_for_of(names, wait);
    return wait_class_of(what.kind ? text_from(what.kind) : names_text(names, what.reason));
}

enum wait_class drawn_find_class(struct drawn_states *all, trail_name wait)
{
    uintptr_t known = (uintptr_t)idmap_find(&all->classes, wait);
    if (known == 0) {
        known = (uintptr_t)class_by_word(&all->names, wait) + 1;
        (void)idmap_put(&all->classes, wait, (void *)known); /* else found again next time */
    }
    all->last_wait = wait;
    all->last_class = (enum wait_class)(known - 1);
    return all->last_class;
}

/* MARK: Following */

static struct drawn *drawn_of(struct followed *g)
{
    return (struct drawn *)(void *)g;
}

static bool change(struct drawn_states *all, struct drawn *g, enum drawn_state to, trail_name wait,
                   const trail_event *event)
{
    if (!all->hook(all->context, g, to, event))
        return false;
    g->drawn = to;
    g->drawn_ns = event->time_ns;
    g->wait = wait;
    return true;
}

static struct followed *make(void *context)
{
    struct drawn_states *all = context;
    struct drawn *g = slab_get(&all->slab);
    return g ? &g->followed : NULL;
}

static bool begins(void *context, struct followed *followed, const trail_event *event,
                   int64_t since_ns)
{
    (void)context, (void)event;
    struct drawn *g = drawn_of(followed);
    g->drawn = DRAWN_NONE;
    g->drawn_ns = since_ns;
    return true;
}

static bool enters(void *context, struct followed *g, const trail_event *event, trail_name reason)
{
    static const enum drawn_state states[TRAIL_GO_STATES] = {
        [TRAIL_GO_RUNNABLE] = DRAWN_RUNNABLE,
        [TRAIL_GO_RUNNING] = DRAWN_RUNNING,
        [TRAIL_GO_WAITING] = DRAWN_WAITING,
        [TRAIL_GO_SYSCALL] = DRAWN_SYSCALL,
    };
    enum drawn_state to = states[g->state];
    if (to == DRAWN_SYSCALL && event->proc < 0)
        to = DRAWN_P_RELEASED;
    return change(context, drawn_of(g), to, to == DRAWN_WAITING ? reason : 0, event);
}

static bool found(void *context, struct followed *g, const trail_event *event, trail_name reason,
                  int64_t since_ns)
{
    (void)since_ns; /* it has not been drawn so far */
    return enters(context, g, event, reason);
}

static bool loses_proc(void *context, struct followed *g, const trail_event *event)
{
    return change(context, drawn_of(g), DRAWN_P_RELEASED, 0, event);
}

static bool ends(void *context, struct followed *g, const trail_event *event)
{
    struct drawn_states *all = context;
    bool good = change(all, drawn_of(g), DRAWN_NONE, 0, event);
    slab_put(&all->slab, g);
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

void drawn_init(struct drawn_states *all, const trail_reader *reader, drawn_hook hook,
                void *context)
{
    *all = (struct drawn_states){
        .hook = hook,
        .context = context,
        .names = {.reader = reader},
        .slab = {.object_size = sizeof(struct drawn)},
    };
    follow_init(&all->follow, reader, &all->names);
}

void drawn_batch(struct drawn_states *all)
{
    names_begin_batch(&all->names);
}

bool drawn_event(struct drawn_states *all, const trail_event *event)
{
    if (!all->begun || event->kind == TRAIL_SYNC) {
        all->begun = true;
        follow_sync(&all->follow, event->time_ns);
    }
    if (event->kind == TRAIL_LOG)
        return follow_log(&all->follow, event);
    if (event->kind != TRAIL_STATE_TRANSITION)
        return true;
    return follow_transition(&all->follow, &ops, all, event) && !all->names.failed;
}

void drawn_free(struct drawn_states *all)
{
    follow_free(&all->follow);
    names_free(&all->names);
    slab_free(&all->slab);
    idmap_free(&all->classes);
}
