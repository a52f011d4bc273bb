/* v1, check: the states of goroutines and Ps that each event requires (§3.6). */
#include "read/v1/check.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"
#include "base/text.h"

struct task {
    uint64_t parent;
    uint64_t name; /* string ID */
};

/* MARK: Contradictions */

/* Returns true with the error set; with repairs, counts it and returns false: the event is kept. */
static bool contradiction(struct v1_check *check, const struct v1_event *ev, const char *format,
                          va_list args)
{
    char text[TRAIL_MESSAGE_MAX];
    if (check->repairs->enabled) {
        v1_repairs_add(check->repairs, TRAIL_REPAIR_STATE, ev, 0);
        return false;
    }
    (void)vsnprintf(text, sizeof text, format, args);
    error_set(&check->error, TRAIL_INCONSISTENT, "%s", text);
    v1_merge_locate(check->merge, ev, &check->error);
    return true;
}

/* Reports a contradiction. */
__attribute__((format(printf, 3, 4), cold, noinline)) static bool
wrong(struct v1_check *check, const struct v1_event *ev, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    bool result = contradiction(check, ev, format, args);
    va_end(args);
    return result;
}

/*
 * The same for an annotation. A reader that is not strict marks the event and keeps it. Where
 * events are lost this is not misuse, since the missing start or end may be one of them.
 */
__attribute__((format(printf, 3, 4), cold, noinline)) static bool
misused(struct v1_check *check, struct v1_event *ev, const char *format, ...)
{
    if (!check->strict) {
        ev->misused = !check->repaired;
        check->misused += ev->misused;
        return false;
    }
    va_list args;
    va_start(args, format);
    bool result = contradiction(check, ev, format, args);
    va_end(args);
    return result;
}

/* Casts for the formats of messages. */
static unsigned long long u(uint64_t number)
{
    return number;
}

static long long p(const struct v1_event *ev)
{
    return ev->proc;
}

static const char *name_of(const struct v1_event *ev)
{
    return v1_types[ev->type].name;
}

enum g0_rule { NOT_G0, ANY_G };

static inline bool wrong_if_not_running(struct v1_check *check, const struct v1_event *ev,
                                        enum g0_rule g0_rule)
{
    if (ev->gs->state != V1_RUNNING &&
        wrong(check, ev, "g %llu is not running while %s", u(ev->g), name_of(ev)))
        return true;
    if (ev->lane->running_g != ev->g &&
        wrong(check, ev, "p %lld is not running g %llu while %s", p(ev), u(ev->g), name_of(ev)))
        return true;
    return g0_rule == NOT_G0 && ev->g == 0 && wrong(check, ev, "g 0 did %s", name_of(ev));
}

/* The event's goroutine leaves its P. The scheduler's goroutine 0 always runs. */
static inline void leave(struct v1_event *ev, enum v1_status state)
{
    ev->lane->running_g = 0;
    if (ev->g == 0)
        return;
    ev->gs->state = (uint8_t)state;
    ev->gs->event = ev->type;
}

/* MARK: Handlers */

static bool on_proc_start(struct v1_check *check, struct v1_event *ev)
{
    if (ev->lane->running && wrong(check, ev, "p %lld is running before start", p(ev)))
        return true;
    ev->lane->running = true;
    return false;
}

static bool on_proc_stop(struct v1_check *check, struct v1_event *ev)
{
    struct v1_lane *lane = ev->lane;
    if (!lane->running && wrong(check, ev, "p %lld is not running before stop", p(ev)))
        return true;
    if (lane->running_g != 0 && wrong(check, ev, "p %lld is running a goroutine %llu during stop",
                                      p(ev), u(lane->running_g)))
        return true;
    lane->running = false;
    lane->running_g = 0;
    return false;
}

/* A range begins or ends: *open must be the opposite. */
static bool on_range(struct v1_check *check, const struct v1_event *ev, bool *open, bool begins,
                     const char *what)
{
    if (*open == begins &&
        wrong(check, ev, begins ? "previous %s is not ended before a new one" : "bogus %s end",
              what))
        return true;
    *open = begins;
    return false;
}

static bool on_gc(struct v1_check *check, struct v1_event *ev)
{
    if (on_range(check, ev, &check->gc_running, ev->type == V1_GCStart, "GC"))
        return true;
    if (check->gc_running)
        ev->proc = TRAIL_GC_PROC;
    return false;
}

/* Until 1.9 each P stopped and started separately. */
static bool on_stw(struct v1_check *check, struct v1_event *ev)
{
    bool *stopped = check->version < 10 ? &ev->lane->stopped_world : &check->stopped_world;
    bool start = ev->type == V1_STWStart;
    if (start && !check->newer_rules && !v1_stw_kind(ev->arg[0], check->version) &&
        wrong(check, ev, "unknown STW kind %llu", u(ev->arg[0])))
        return true;
    return on_range(check, ev, stopped, start, "STW");
}

/* A mark assist may have begun before the trace: an end without a begin is accepted. */
static bool on_mark_assist(struct v1_check *check, struct v1_event *ev)
{
    if (ev->type == V1_GCMarkAssistStart)
        return on_range(check, ev, &ev->gs->mark_assist, true, "mark assist");
    ev->gs->mark_assist = false;
    return false;
}

static bool on_snapshot(struct v1_check *check, struct v1_event *ev)
{
    if (ev->gs->state != V1_RUNNABLE &&
        wrong(check, ev, "g %llu is not runnable before Ev%s", u(ev->g), name_of(ev)))
        return true;
    if (ev->g != 0)
        ev->gs->state = V1_WAITING;
    ev->gs->event = ev->type;
    return false;
}

static bool on_create(struct v1_check *check, struct v1_event *ev)
{
    struct v1_g *created = ev->key;
    if (wrong_if_not_running(check, ev, ANY_G))
        return true;
    if (created->known && wrong(check, ev, "g %llu already exists", u(ev->arg[0])))
        return true;
    if (created->id != 0)
        created->state = V1_RUNNABLE;
    created->known = true;
    created->fresh = true;
    created->create_stack = ev->arg[1];
    created->event = ev->type;
    return false;
}

static inline bool on_start(struct v1_check *check, struct v1_event *ev)
{
    struct v1_g *g = ev->gs;
    if (g->state != V1_RUNNABLE &&
        wrong(check, ev, "g %llu is not runnable before start", u(ev->g)))
        return true;
    if (ev->lane->running_g != 0 &&
        wrong(check, ev, "p %lld is already running g %llu while start g %llu", p(ev),
              u(ev->lane->running_g), u(ev->g)))
        return true;
    g->state = V1_RUNNING;
    g->event = 0;
    ev->lane->running_g = ev->g;
    if (g->fresh) {
        g->fresh = false;
        ev->stack = g->create_stack;
    }
    return false;
}

static bool on_end(struct v1_check *check, struct v1_event *ev)
{
    if (wrong_if_not_running(check, ev, NOT_G0))
        return true;
    leave(ev, V1_DEAD);
    while (ev->type == V1_GoEnd && ev->gs->regions)
        v1_g_drop_region(check->gs, &ev->gs->regions);
    return false;
}

static inline bool on_unblock(struct v1_check *check, struct v1_event *ev)
{
    struct v1_g *target = ev->key;
    if (ev->gs->state != V1_RUNNING &&
        wrong(check, ev, "g %llu is not running while unpark", u(ev->g)))
        return true;
    if (ev->lane && ev->lane->running_g != ev->g &&
        wrong(check, ev, "p %lld is not running g %llu while unpark", p(ev), u(ev->g)))
        return true;
    if (target->state != V1_WAITING &&
        wrong(check, ev, "g %llu is not waiting before unpark", u(ev->arg[0])))
        return true;
    if (target->event == V1_GoBlockNet && (check->newer_rules || ev->proc != TRAIL_TIMER_PROC))
        ev->proc = TRAIL_NETPOLL_PROC;
    if (target->id != 0)
        target->state = V1_RUNNABLE;
    target->event = ev->type;
    return false;
}

static bool on_sys_exit(struct v1_check *check, struct v1_event *ev)
{
    if (ev->gs->state != V1_WAITING &&
        wrong(check, ev, "g %llu is not waiting during syscall exit", u(ev->g)))
        return true;
    if (ev->g != 0)
        ev->gs->state = V1_RUNNABLE;
    ev->gs->event = ev->type;
    return false;
}

/* MARK: Tasks and regions */

static trail_string text_of(const struct v1_check *check, uint64_t id)
{
    uint32_t handle;
    return tables_string(check->tables, id, &handle) ? check->tables->strings[handle]
                                                     : check->tables->strings[0];
}

static bool same_name(const struct v1_check *check, uint64_t a, uint64_t b)
{
    trail_string x = text_of(check, a), y = text_of(check, b);
    return a == b || text_equal(x, y);
}

/* The precision for %.*s, limited to 80 bytes. */
static int shown(trail_string text)
{
    return text.size < 80 ? (int)text.size : 80;
}

static int on_task_create(struct v1_check *check, struct v1_event *ev)
{
    struct task *task = objects_find(&check->tasks, ev->arg[0]);
    ev->misused = false;
    if (task) {
        trail_string was = text_of(check, task->name), is = text_of(check, ev->arg[2]);
        if (misused(check, ev, "task id conflicts (id:%llu), \"%.*s\" vs \"%.*s\"", u(ev->arg[0]),
                    shown(is), is.data, shown(was), was.data))
            return -1;
    } else if (!(task = objects_get(&check->tasks, ev->arg[0]))) {
        return error_no_memory(&check->error);
    }
    *task = (struct task){.parent = ev->arg[1], .name = ev->arg[2]};
    return 0;
}

static int on_task_end(struct v1_check *check, struct v1_event *ev)
{
    const struct task *task = objects_find(&check->tasks, ev->arg[0]);
    ev->misused = false;
    ev->arg[3] = task != NULL;
    if (task) {
        ev->arg[1] = task->parent;
        ev->arg[2] = task->name;
        objects_drop(&check->tasks, ev->arg[0]);
    }
    return 0;
}

static int push_region(struct v1_check *check, struct v1_event *ev)
{
    struct v1_region *region = slab_get(&check->gs->region_slab);
    if (!region)
        return error_no_memory(&check->error);
    *region = (struct v1_region){ev->arg[0], ev->arg[2], ev->gs->regions};
    ev->gs->regions = region;
    return 0;
}

static bool is_region(const struct v1_check *check, const struct v1_region *region,
                      const struct v1_event *ev)
{
    return region->task == ev->arg[0] && same_name(check, region->name, ev->arg[2]);
}

/* If a region other than the innermost ends, those inside it stay open. */
static int end_region(struct v1_check *check, struct v1_event *ev)
{
    struct v1_region *inner = ev->gs->regions, **ends = &ev->gs->regions, *none = NULL;
    if (!inner)
        return 0;
    if (!is_region(check, inner, ev)) {
        trail_string is = text_of(check, ev->arg[2]), was = text_of(check, inner->name);
        if (misused(check, ev,
                    "misuse of region in goroutine %llu: span end (task %llu) \"%.*s\" when the "
                    "inner-most active span start event is (task %llu) \"%.*s\"",
                    u(ev->g), u(ev->arg[0]), shown(is), is.data, u(inner->task), shown(was),
                    was.data))
            return -1;
    }
    for (unsigned i = 0; *ends && !is_region(check, *ends, ev); i++)
        ends = i < WIRE_REGION_DEPTH ? &(*ends)->outer : &none;
    if (*ends)
        v1_g_drop_region(check->gs, ends);
    return 0;
}

static int on_region(struct v1_check *check, struct v1_event *ev)
{
    ev->misused = false;
    if (ev->arg[1] == 0)
        return push_region(check, ev);
    if (ev->arg[1] != 1 && misused(check, ev, "invalid user region mode: %llu", u(ev->arg[1])))
        return -1;
    return end_region(check, ev);
}

/* MARK: Interface */

void v1_check_init(struct v1_check *check, const struct v1_merge *merge,
                   const struct tables *tables, struct v1_repairs *repairs, bool strict)
{
    *check = (struct v1_check){
        .merge = merge,
        .tables = tables,
        .gs = merge->gs,
        .repairs = repairs,
        .version = merge->format->version,
        .newer_rules = merge->format->newer_rules,
        .strict = strict,
        .repaired = repairs->count > 0,
        .tasks = OBJECTS_OF(struct task),
    };
    error_clear(&check->error);
}

void v1_check_fini(struct v1_check *check)
{
    objects_free(&check->tasks);
}

/* The kinds of most events: few, so that branches on them are predicted better than on the type. */
enum kind { KIND_OTHER, KIND_NONE, KIND_STOP, KIND_START, KIND_UNBLOCK, KIND_CALL };

static const uint8_t kinds[V1_TYPE_MASK + 1] = {
    [V1_Gomaxprocs] = KIND_NONE,    [V1_HeapAlloc] = KIND_NONE,     [V1_HeapGoal] = KIND_NONE,
    [V1_CPUSample] = KIND_NONE,     [V1_UserLog] = KIND_NONE,       [V1_FutileWakeup] = KIND_NONE,
    [V1_GoSched] = KIND_STOP,       [V1_GoPreempt] = KIND_STOP,     [V1_GoSleep] = KIND_STOP,
    [V1_GoBlock] = KIND_STOP,       [V1_GoBlockSend] = KIND_STOP,   [V1_GoBlockRecv] = KIND_STOP,
    [V1_GoBlockSelect] = KIND_STOP, [V1_GoBlockSync] = KIND_STOP,   [V1_GoBlockCond] = KIND_STOP,
    [V1_GoBlockNet] = KIND_STOP,    [V1_GoBlockGC] = KIND_STOP,     [V1_GoSysBlock] = KIND_STOP,
    [V1_GoStart] = KIND_START,      [V1_GoStartLabel] = KIND_START, [V1_GoUnblock] = KIND_UNBLOCK,
    [V1_GoSysCall] = KIND_CALL,
};

/* After the hole, nothing that the P does can contradict what it did before. */
static void on_lost(struct v1_event *ev)
{
    ev->lane->running = ev->lane->stopped_world = ev->lane->sweeping = false;
    ev->lane->running_g = 0;
    if (ev->g != 0)
        ev->gs->state = V1_DEAD;
}

static int judge_rare(struct v1_check *check, struct v1_event *ev)
{
    switch (ev->type) {
    case V1_LOST:
        on_lost(ev);
        return 0;
    case V1_ProcStart:
        return -on_proc_start(check, ev);
    case V1_ProcStop:
        return -on_proc_stop(check, ev);
    case V1_GCStart:
    case V1_GCDone:
        return -on_gc(check, ev);
    case V1_STWStart:
    case V1_STWDone:
        return -on_stw(check, ev);
    case V1_GCSweepStart:
    case V1_GCSweepDone:
        return -on_range(check, ev, &ev->lane->sweeping, ev->type == V1_GCSweepStart, "sweeping");
    case V1_GCMarkAssistStart:
    case V1_GCMarkAssistDone:
        return -on_mark_assist(check, ev);
    case V1_GoWaiting:
    case V1_GoInSyscall:
        return -on_snapshot(check, ev);
    case V1_GoCreate:
        return -on_create(check, ev);
    case V1_GoEnd:
    case V1_GoStop:
        return -on_end(check, ev);
    case V1_GoSysExit:
        return -on_sys_exit(check, ev);
    case V1_UserTaskCreate:
        return on_task_create(check, ev);
    case V1_UserTaskEnd:
        return on_task_end(check, ev);
    case V1_UserRegion:
        return on_region(check, ev);
    default:
        return 0;
    }
}

static inline int judge(struct v1_check *check, struct v1_event *ev)
{
    switch (kinds[ev->type]) {
    case KIND_NONE:
        return 0;
    case KIND_STOP:
        if (wrong_if_not_running(check, ev, NOT_G0))
            return -1;
        leave(ev, ev->type == V1_GoSched || ev->type == V1_GoPreempt ? V1_RUNNABLE : V1_WAITING);
        return 0;
    case KIND_START:
        return -on_start(check, ev);
    case KIND_UNBLOCK:
        return -on_unblock(check, ev);
    case KIND_CALL:
        if (wrong_if_not_running(check, ev, NOT_G0))
            return -1;
        ev->gs->event = ev->type;
        return 0;
    default:
        return judge_rare(check, ev);
    }
}

int v1_check_event(struct v1_check *check, struct v1_event *ev)
{
    if (judge(check, ev) < 0)
        return -1;
    /* Go 1.21 knows a goroutine from its first sample on, later releases do not. */
    if (ev->type != V1_CPUSample || !check->newer_rules)
        ev->gs->known = true;
    return 0;
}
