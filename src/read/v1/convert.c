/* v1, convert: a table of what each event becomes in v2, and the exceptions. */
#include "read/v1/convert.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/grow.h"

int64_t v1_clock_ns(const struct v1_clock *clock, int64_t ticks)
{
    int64_t since = (int64_t)((uint64_t)ticks - (uint64_t)clock->first_ticks);
    double ns = (double)since * clock->ns_per_tick;
    if (ns >= 9.2e18)
        return INT64_MAX / 2;
    return ns <= -9.2e18 ? INT64_MIN / 2 : (int64_t)ns;
}

/* MARK: Rules */

/* How an event becomes one of v2 (§4.2). */
enum how {
    HOW_APART, /* by convert_apart */
    HOW_NOT,   /* no counterpart */
    HOW_METRIC,
    HOW_RANGE_BEGINS,
    HOW_RANGE_ENDS,
    HOW_OWN_STATE,   /* a transition of its own goroutine */
    HOW_OTHER_STATE, /* ... of the goroutine in its first argument */
    HOW_STOP,        /* its own goroutine stops running, for `reason` */
    HOW_STATUS       /* the state of another goroutine at the start of the trace */
};

static const struct rule {
    uint8_t how;
    uint8_t wire;     /* type in v2 */
    uint8_t from, to; /* states; `to` is the metric or range of those */
    const char *reason;
} rules[V1_TYPE_MASK + 1] = {
    [V1_Gomaxprocs] = {HOW_METRIC, V2_ProcsChange, 0, TRAIL_METRIC_GOMAXPROCS, NULL},
    [V1_HeapAlloc] = {HOW_METRIC, V2_HeapAlloc, 0, TRAIL_METRIC_HEAP_LIVE, NULL},
    [V1_HeapGoal] = {HOW_METRIC, V2_HeapGoal, 0, TRAIL_METRIC_HEAP_GOAL, NULL},
    [V1_GCStart] = {HOW_RANGE_BEGINS, V2_GCBegin, 0, TRAIL_RANGE_GC, NULL},
    [V1_GCDone] = {HOW_RANGE_ENDS, V2_GCEnd, 0, TRAIL_RANGE_GC, NULL},
    [V1_STWDone] = {HOW_RANGE_ENDS, V2_STWEnd, 0, TRAIL_RANGE_STW, NULL},
    [V1_GCSweepStart] = {HOW_RANGE_BEGINS, V2_GCSweepBegin, 0, TRAIL_RANGE_SWEEP, NULL},
    [V1_GCMarkAssistStart] = {HOW_RANGE_BEGINS, V2_GCMarkAssistBegin, 0, TRAIL_RANGE_MARK_ASSIST,
                              NULL},
    [V1_GCMarkAssistDone] = {HOW_RANGE_ENDS, V2_GCMarkAssistEnd, 0, TRAIL_RANGE_MARK_ASSIST, NULL},
    [V1_GoStart] = {HOW_OTHER_STATE, V2_GoStart, TRAIL_GO_RUNNABLE, TRAIL_GO_RUNNING, NULL},
    [V1_GoUnblock] = {HOW_OTHER_STATE, V2_GoUnblock, TRAIL_GO_WAITING, TRAIL_GO_RUNNABLE, NULL},
    [V1_GoEnd] = {HOW_OWN_STATE, V2_GoDestroy, TRAIL_GO_RUNNING, TRAIL_GO_NOT_EXIST, NULL},
    [V1_GoSysExit] = {HOW_OWN_STATE, V2_GoSyscallEndBlocked, TRAIL_GO_SYSCALL, TRAIL_GO_RUNNABLE,
                      NULL},
    [V1_GoSysBlock] = {HOW_NOT, 0, 0, 0, NULL},
    [V1_GoWaiting] = {HOW_STATUS, V2_GoStatus, TRAIL_GO_UNDETERMINED, TRAIL_GO_WAITING, NULL},
    [V1_GoInSyscall] = {HOW_STATUS, V2_GoStatus, TRAIL_GO_UNDETERMINED, TRAIL_GO_SYSCALL, NULL},
#define STOP(name, wire, to, reason) [V1_##name] = {HOW_STOP, wire, TRAIL_GO_RUNNING, to, reason}
    STOP(GoSched, V2_GoStop, TRAIL_GO_RUNNABLE, "runtime.Gosched"),
    STOP(GoPreempt, V2_GoStop, TRAIL_GO_RUNNABLE, "preempted"),
    STOP(GoStop, V2_GoBlock, TRAIL_GO_WAITING, "forever"),
    STOP(GoSleep, V2_GoBlock, TRAIL_GO_WAITING, "sleep"),
    STOP(GoBlock, V2_GoBlock, TRAIL_GO_WAITING, NULL),
    STOP(GoBlockSend, V2_GoBlock, TRAIL_GO_WAITING, "chan send"),
    STOP(GoBlockRecv, V2_GoBlock, TRAIL_GO_WAITING, "chan receive"),
    STOP(GoBlockSelect, V2_GoBlock, TRAIL_GO_WAITING, "select"),
    STOP(GoBlockSync, V2_GoBlock, TRAIL_GO_WAITING, "sync"),
    STOP(GoBlockCond, V2_GoBlock, TRAIL_GO_WAITING, "sync.(*Cond).Wait"),
    STOP(GoBlockNet, V2_GoBlock, TRAIL_GO_WAITING, "network"),
    STOP(GoBlockGC, V2_GoBlock, TRAIL_GO_WAITING, "GC mark assist wait for work"),
#undef STOP
};

/* MARK: Strings of the v2 model */

/* Texts of STW kinds in Go's conversion; two differ from Go 1.21's (§4.1). */
static const char *stw_text(unsigned kind)
{
    enum { UNKNOWN = 0, ALL_STACKS = 6 };
    if (kind == UNKNOWN)
        return "";
    return kind == ALL_STACKS ? "all goroutine stack trace" : v1_stw_kind(kind, 21);
}

static bool add_text(struct tables *tables, const char *text, trail_string_handle *handle)
{
    *handle = tables_extra_string(tables, text, strlen(text));
    return *handle != 0;
}

static bool add_texts(struct v1_convert *convert)
{
    struct tables *tables = convert->tables;
    bool good = add_text(tables, "GC concurrent mark phase", &convert->ranges[TRAIL_RANGE_GC]) &&
                add_text(tables, "GC incremental sweep", &convert->ranges[TRAIL_RANGE_SWEEP]) &&
                add_text(tables, "GC mark assist", &convert->ranges[TRAIL_RANGE_MARK_ASSIST]);
    for (unsigned type = 0; good && type <= V1_TYPE_MASK; type++)
        if (rules[type].reason)
            good = add_text(tables, rules[type].reason, &convert->reasons[type]);
    for (unsigned i = 0; good && i < V1_STW_REASONS; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "stop-the-world (%s)", stw_text(i));
        good = add_text(tables, name, &convert->stw[i]);
    }
    return good;
}

/*
 * Go 1.10 to 1.20 have two kinds, numbered differently; earlier files have no number, which reads
 * as 0.
 */
static unsigned stw_reason(const struct v1_convert *convert, uint64_t kind)
{
    if (convert->version >= 21)
        return kind < V1_STW_REASONS ? (unsigned)kind : 0;
    return kind < 2 ? (unsigned)kind + 1 : 0;
}

trail_stack_handle v1_stack_handle(const struct tables *tables, uint64_t id)
{
    uint32_t handle;
    return tables_stack(tables, id, &handle) ? handle : 0;
}

trail_stack_handle v1_start_stack(const struct tables *tables, const struct idmap *pc_stacks,
                                  int version, uint64_t id)
{
    if (version >= 7)
        return v1_stack_handle(tables, id);
    return (trail_stack_handle)(uintptr_t)idmap_find(pc_stacks, id);
}

static trail_string_handle string_handle(const struct v1_convert *convert, uint64_t id)
{
    uint32_t handle;
    return tables_string(convert->tables, id, &handle) ? handle : 0;
}

trail_string_handle v1_log_text(struct tables *tables, const struct v1_event *event)
{
    uint64_t size = 0;
    /* The decoder has checked that these bytes are present. */
    const uint8_t *at = uvarint_get(event->text, event->text + UVARINT_MAX_SIZE, &size);
    if (!at)
        return 0;
    const char *data = (const char *)at;
    /* The lane's copy of file data is freed with its batch. */
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a log has a lane */
    return event->lane->piece.data ? tables_extra_string(tables, data, (size_t)size)
                                   : tables_text(tables, (trail_string){data, (size_t)size});
}

/* MARK: Output */

/* The most that one event can become in a repaired trace. */
#define MOST_REPAIRED 12

static int reserve(struct v1_convert *convert, size_t more)
{
    bool room = GROW(convert->out, convert->out_capacity, convert->out_count + more);
    return room ? 0 : error_no_memory(&convert->error);
}

/* Needs reserved room. Makes times strictly increasing. */
static inline trail_event *push(struct v1_convert *convert, int64_t time_ns)
{
    if (time_ns <= convert->last_ns)
        time_ns = convert->last_ns + 1;
    convert->last_ns = time_ns;
    trail_event *out = &convert->out[convert->out_count++];
    *out = (trail_event){
        .time_ns = time_ns,
        .thread = TRAIL_NONE,
        .proc = TRAIL_NONE,
        .goroutine = TRAIL_NONE,
    };
    return out;
}

static void push_sync(struct v1_convert *convert, int64_t time_ns, bool final)
{
    trail_event *out = &convert->out[convert->out_count++];
    *out = (trail_event){
        .time_ns = time_ns,
        .thread = TRAIL_NONE,
        .proc = TRAIL_NONE,
        .goroutine = TRAIL_NONE,
        .kind = TRAIL_SYNC,
        .wire = V2_Sync,
    };
    out->sync.n = ++convert->syncs;
    out->sync.final = final;
}

/* Returns the thread of the event's P if that is a real P, else `unknown`. */
static int64_t thread_of(const struct v1_event *ev, int64_t unknown)
{
    if (!ev->lane || ev->proc != ev->lane->proc || ev->type == V1_CPUSample)
        return unknown;
    return ev->lane->thread != TRAIL_NONE ? ev->lane->thread : unknown;
}

static inline trail_event *push_event(struct v1_convert *convert, const struct v1_event *ev,
                                      uint8_t wire, trail_kind kind)
{
    trail_event *out = push(convert, v1_clock_ns(convert->clock, ev->ticks));
    out->kind = (uint8_t)kind;
    out->wire = wire;
    out->proc = ev->proc;
    out->goroutine = ev->g == 0 ? TRAIL_NONE : (int64_t)ev->g;
    out->thread = ev->proc == TRAIL_NONE ? TRAIL_NONE : thread_of(ev, TRAIL_NONE);
    return out;
}

static void put_stack(struct v1_convert *convert, trail_event *out, const struct v1_event *ev)
{
    out->stack = v1_stack_handle(convert->tables, ev->stack);
}

/* MARK: Repairs: a former state ends, and the one that the next event requires begins */

static void infer(struct v1_convert *convert, const struct v1_event *ev, trail_resource resource,
                  int64_t id, unsigned from, unsigned to)
{
    trail_event *out = push(convert, v1_clock_ns(convert->clock, ev->ticks));
    out->kind = TRAIL_STATE_TRANSITION;
    out->wire = resource == TRAIL_RESOURCE_PROC ? V2_ProcStatus : V2_GoStatus;
    out->flags = TRAIL_EVENT_IMPLIED | TRAIL_EVENT_INFERRED;
    out->transition.resource = (uint8_t)resource;
    out->transition.id = id;
    out->transition.from = (uint8_t)from;
    out->transition.to = (uint8_t)to;
}

static void end_shown(struct v1_convert *convert, const struct v1_event *ev, struct v1_shown_g *g)
{
    infer(convert, ev, TRAIL_RESOURCE_GOROUTINE, (int64_t)g->id, g->state, TRAIL_GO_UNDETERMINED);
    g->state = TRAIL_GO_UNDETERMINED;
}

/* Whether no event of the goroutine can be lost between its last one and `ev`. */
static bool follows(const struct v1_event *ev, const struct v1_shown_g *g)
{
    if (ev->forced || ev->sequenced)
        return !ev->forced;
    return !ev->lane || g->lane == 0 ||
           (g->lane == ev->lane->order + 1 && g->losses == ev->lane->losses);
}

/*
 * Moves the goroutine from state `from` to `to`. First ends the state shown so far if it does not
 * fit: only now is it known whether that state was right.
 */
static __attribute__((cold, noinline)) int change_shown(struct v1_convert *convert,
                                                        const struct v1_event *ev, uint64_t id,
                                                        unsigned from, unsigned to)
{
    struct v1_shown_g *g = v1_shown_get(convert->shown, id);
    if (!g)
        return error_no_memory(&convert->error);
    bool known = g->state != TRAIL_GO_UNDETERMINED;
    bool fits = g->state == from || (!known && from <= TRAIL_GO_NOT_EXIST);
    if (known && (!fits || !follows(ev, g))) {
        if (!v1_shown_doubt(convert->shown, g))
            return error_no_memory(&convert->error);
        end_shown(convert, ev, g);
        fits = from <= TRAIL_GO_NOT_EXIST;
    }
    if (!fits && from > TRAIL_GO_NOT_EXIST)
        infer(convert, ev, TRAIL_RESOURCE_GOROUTINE, (int64_t)id, TRAIL_GO_NOT_EXIST, from);
    g->state = to == TRAIL_GO_NOT_EXIST ? TRAIL_GO_UNDETERMINED : (uint8_t)to;
    g->offset = ev->offset;
    g->lane = ev->lane ? ev->lane->order + 1 : 0;
    g->losses = ev->lane ? ev->lane->losses : 0;
    convert->changed = g;
    return 0;
}

/* After an event: ends the state that it began, or, for the last event of its goroutine, notes that
 * the next hole ends it. */
static int end_doubted(struct v1_convert *convert, const struct v1_event *ev)
{
    struct v1_shown *shown = convert->shown;
    struct v1_shown_g *g = convert->changed;
    convert->changed = NULL;
    if (convert->error.code != TRAIL_OK)
        return -1;
    if (!g || g->state == TRAIL_GO_UNDETERMINED || shown->collecting)
        return 0;
    bool last = v1_shown_is_last(shown, g);
    if (v1_shown_is_doubted(shown, g) || (last && convert->open_holes > 0))
        end_shown(convert, ev, g);
    else if (last && !v1_shown_lasts(shown, g))
        return error_no_memory(&convert->error);
    return 0;
}

/* A hole begins: whether states that no event ends last through it is unknown. */
static int end_lasting(struct v1_convert *convert, const struct v1_event *ev)
{
    struct v1_shown *shown = convert->shown;
    size_t count = v1_shown_sort_lasting(shown);
    if (reserve(convert, count + MOST_REPAIRED) < 0)
        return -1;
    for (size_t i = 0; i < count; i++)
        if (shown->lasting[i]->state != TRAIL_GO_UNDETERMINED)
            end_shown(convert, ev, shown->lasting[i]);
    shown->lasting_count = 0;
    return 0;
}

/* A hole begins on the P: what the P and its goroutine do in it is unknown. */
static int lose(struct v1_convert *convert, const struct v1_event *ev)
{
    struct v1_lane *lane = ev->lane;
    struct v1_shown_g *g = v1_shown_get(convert->shown, ev->g);
    if (!g)
        return error_no_memory(&convert->error);
    if (g->state == TRAIL_GO_RUNNING)
        end_shown(convert, ev, g);
    if (lane->seen && !lane->lost)
        infer(convert, ev, TRAIL_RESOURCE_PROC, lane->proc,
              lane->thread != TRAIL_NONE ? TRAIL_PROC_RUNNING : TRAIL_PROC_IDLE,
              TRAIL_PROC_UNDETERMINED);
    convert->open_holes += !lane->lost;
    lane->lost = true;
    lane->losses++;
    lane->thread = TRAIL_NONE;
    return end_lasting(convert, ev);
}

/* The P's first event after a hole: it was running at that time, or idle before a start. */
static void find_proc(struct v1_convert *convert, const struct v1_event *ev)
{
    struct v1_lane *lane = ev->lane;
    convert->open_holes -= lane->lost;
    lane->lost = false;
    lane->seen = true;
    infer(convert, ev, TRAIL_RESOURCE_PROC, lane->proc, TRAIL_PROC_NOT_EXIST,
          ev->type == V1_ProcStart ? TRAIL_PROC_IDLE : TRAIL_PROC_RUNNING);
}

/* MARK: Transitions */

static inline trail_event *go_transition(struct v1_convert *convert, const struct v1_event *ev,
                                         uint8_t wire, uint64_t g, trail_go_state from,
                                         trail_go_state to)
{
    if (__builtin_expect(convert->shown && g != 0, 0))
        (void)change_shown(convert, ev, g, from, to);
    trail_event *out = push_event(convert, ev, wire, TRAIL_STATE_TRANSITION);
    out->transition.resource = TRAIL_RESOURCE_GOROUTINE;
    out->transition.id = (int64_t)g;
    out->transition.from = (uint8_t)from;
    out->transition.to = (uint8_t)to;
    return out;
}

static void proc_transition(struct v1_convert *convert, const struct v1_event *ev, bool start)
{
    struct v1_lane *lane = ev->lane;
    /* An event of a P has a lane: NOLINTBEGIN(clang-analyzer-core.NullDereference) */
    if (start)
        lane->thread = (int64_t)ev->arg[0];
    uint8_t wire = !lane->seen ? V2_ProcStatus : start ? V2_ProcStart : V2_ProcStop;
    trail_event *out = push_event(convert, ev, wire, TRAIL_STATE_TRANSITION);
    out->transition.resource = TRAIL_RESOURCE_PROC;
    out->transition.id = ev->proc;
    out->transition.from = !lane->seen ? TRAIL_PROC_UNDETERMINED
                           : start     ? TRAIL_PROC_IDLE
                                       : TRAIL_PROC_RUNNING;
    out->transition.to = start ? TRAIL_PROC_RUNNING : TRAIL_PROC_IDLE;
    lane->seen = true;
    if (!start)
        lane->thread = TRAIL_NONE;
    /* NOLINTEND(clang-analyzer-core.NullDereference) */
}

/* MARK: Start of the trace: the state before it (§4.3) */

/*
 * Go's converter drops the start functions of the snapshot, because the root of every later stack
 * of a Go goroutine is its start function. A host's goroutine may have any root, or none.
 */
static trail_stack_handle start_before(const struct v1_convert *convert, const struct v1_event *ev)
{
    if (convert->tables->maker.made_by != TRAIL_MADE_BY_HOST)
        return 0;
    return v1_start_stack(convert->tables, convert->pc_stacks, convert->version, ev->arg[1]);
}

static int created_before(struct v1_convert *convert, const struct v1_event *ev)
{
    uint64_t g = ev->arg[0];
    if (!APPEND(convert->created_order, convert->created_capacity, convert->created_count, g))
        return error_no_memory(&convert->error);
    /* Plus 1, because the map has no NULL values. */
    void *start = (void *)((uintptr_t)start_before(convert, ev) + 1);
    return idmap_put(&convert->created, g, start) ? 0 : error_no_memory(&convert->error);
}

/* Adds the start function to a status, as a native GoStatusStack has it. `start`: as in
 * `created`. */
static void put_start(trail_event *out, const void *start)
{
    if ((uintptr_t)start <= 1)
        return;
    out->wire = V2_GoStatusStack;
    out->stack = out->transition.stack = (trail_stack_handle)((uintptr_t)start - 1);
}

/* The snapshot ends: goroutines without events since their creation are runnable. */
static int start_ends(struct v1_convert *convert, const struct v1_event *ev)
{
    convert->starting = false;
    if (reserve(convert, convert->created.count * 2) < 0)
        return -1;
    for (size_t i = 0; i < convert->created_count; i++) {
        uint64_t g = convert->created_order[i];
        const void *start = idmap_remove(&convert->created, g);
        if (!start)
            continue;
        trail_event *out = push(convert, v1_clock_ns(convert->clock, ev->ticks));
        out->kind = TRAIL_STATE_TRANSITION;
        out->wire = V2_GoStatus;
        out->transition.resource = TRAIL_RESOURCE_GOROUTINE;
        out->transition.id = (int64_t)g;
        out->transition.from = TRAIL_GO_UNDETERMINED;
        out->transition.to = TRAIL_GO_RUNNABLE;
        put_start(out, start);
        if (convert->shown &&
            (change_shown(convert, ev, g, TRAIL_GO_UNDETERMINED, TRAIL_GO_RUNNABLE) < 0 ||
             end_doubted(convert, ev) < 0))
            return -1;
    }
    convert->created_count = 0;
    return 0;
}

static void go_status(struct v1_convert *convert, const struct v1_event *ev, trail_go_state state)
{
    const void *start = idmap_remove(&convert->created, ev->arg[0]);
    put_start(go_transition(convert, ev, V2_GoStatus, ev->arg[0], TRAIL_GO_UNDETERMINED, state),
              start);
}

/* MARK: Other events */

static void metric(struct v1_convert *convert, const struct v1_event *ev, uint8_t wire,
                   trail_metric which)
{
    trail_event *out = push_event(convert, ev, wire, TRAIL_METRIC);
    out->metric.metric = which;
    out->metric.value = ev->arg[0];
    put_stack(convert, out, ev);
}

static trail_event *range(struct v1_convert *convert, const struct v1_event *ev, uint8_t wire,
                          trail_range which, bool begin)
{
    static const uint8_t scopes[TRAIL_RANGES] = {
        [TRAIL_RANGE_STW] = TRAIL_RESOURCE_GOROUTINE,
        [TRAIL_RANGE_GC] = TRAIL_RESOURCE_NONE,
        [TRAIL_RANGE_SWEEP] = TRAIL_RESOURCE_PROC,
        [TRAIL_RANGE_MARK_ASSIST] = TRAIL_RESOURCE_GOROUTINE,
    };
    trail_event *out = push_event(convert, ev, wire, begin ? TRAIL_RANGE_BEGIN : TRAIL_RANGE_END);
    out->range.range = which;
    out->range.scope = scopes[which];
    out->range.scope_id = out->range.scope == TRAIL_RESOURCE_GOROUTINE ? out->goroutine
                          : out->range.scope == TRAIL_RESOURCE_PROC    ? out->proc
                                                                       : TRAIL_NONE;
    out->range.name =
        which == TRAIL_RANGE_STW ? convert->stw[convert->stw_reason] : convert->ranges[which];
    put_stack(convert, out, ev);
    return out;
}

static void sweep_end(struct v1_convert *convert, const struct v1_event *ev)
{
    trail_event *out = range(convert, ev, V2_GCSweepEnd, TRAIL_RANGE_SWEEP, false);
    out->range.has_swept = true;
    out->range.swept_bytes = ev->arg[0];
    out->range.reclaimed_bytes = ev->arg[1];
}

/* Go's converter looks up the thread without checking that it is known, and then gets 0. */
static void thread_or_0(trail_event *out, const struct v1_event *ev)
{
    out->thread = thread_of(ev, 0);
    out->goroutine = (int64_t)ev->g;
}

static void go_start_label(struct v1_convert *convert, const struct v1_event *ev)
{
    trail_event *out =
        go_transition(convert, ev, V2_GoStart, ev->arg[0], TRAIL_GO_RUNNABLE, TRAIL_GO_RUNNING);
    thread_or_0(out, ev);
    out = push_event(convert, ev, V2_GoLabel, TRAIL_LABEL);
    thread_or_0(out, ev);
    out->label.goroutine = (int64_t)ev->g;
    out->label.text = string_handle(convert, ev->arg[2]);
}

/* A call that does not block takes 1 ns: its end was not recorded. */
static void sys_call(struct v1_convert *convert, const struct v1_event *ev)
{
    bool blocks = v1_notes_blocks(convert->notes, ev->offset);
    trail_event *out =
        go_transition(convert, ev, V2_GoSyscallBegin, ev->g, TRAIL_GO_RUNNING, TRAIL_GO_SYSCALL);
    put_stack(convert, out, ev);
    out->transition.stack = out->stack;
    if (blocks)
        return;
    thread_or_0(out, ev);
    out = go_transition(convert, ev, V2_GoSyscallEnd, ev->g, TRAIL_GO_SYSCALL, TRAIL_GO_RUNNING);
    thread_or_0(out, ev);
}

static void go_create(struct v1_convert *convert, const struct v1_event *ev)
{
    trail_event *out =
        go_transition(convert, ev, V2_GoCreate, ev->arg[0], TRAIL_GO_NOT_EXIST, TRAIL_GO_RUNNABLE);
    put_stack(convert, out, ev);
    out->transition.stack =
        v1_start_stack(convert->tables, convert->pc_stacks, convert->version, ev->arg[1]);
}

/* v1_check has set arg[1..3] from the task, if it is known (§4.3: the parent as in the file). */
static void user_task(struct v1_convert *convert, const struct v1_event *ev, bool begin)
{
    trail_event *out = push_event(convert, ev, begin ? V2_UserTaskBegin : V2_UserTaskEnd,
                                  begin ? TRAIL_TASK_BEGIN : TRAIL_TASK_END);
    bool known = begin ? ev->arg[1] != 0 : ev->arg[3] != 0;
    out->task.id = ev->arg[0];
    out->task.parent = known ? ev->arg[1] : TRAIL_NO_TASK;
    out->task.type = begin || known ? string_handle(convert, ev->arg[2]) : 0;
    out->flags = ev->misused ? TRAIL_EVENT_MISUSED : 0;
    put_stack(convert, out, ev);
}

static void user_region(struct v1_convert *convert, const struct v1_event *ev)
{
    bool begin = ev->arg[1] == 0;
    trail_event *out = push_event(convert, ev, begin ? V2_UserRegionBegin : V2_UserRegionEnd,
                                  begin ? TRAIL_REGION_BEGIN : TRAIL_REGION_END);
    out->region.task = ev->arg[0];
    out->region.type = string_handle(convert, ev->arg[2]);
    out->flags = ev->misused ? TRAIL_EVENT_MISUSED : 0;
    put_stack(convert, out, ev);
}

static void user_log(struct v1_convert *convert, const struct v1_event *ev)
{
    trail_event *out = push_event(convert, ev, V2_UserLog, TRAIL_LOG);
    out->log.task = ev->arg[0];
    out->log.category = string_handle(convert, ev->arg[1]);
    out->log.message = v1_log_text(convert->tables, ev);
    put_stack(convert, out, ev);
}

static int unexpected(struct v1_convert *convert, const struct v1_event *ev)
{
    if (ev->type == V1_FutileWakeup && convert->drop_futile)
        return 0;
    error_set(&convert->error, TRAIL_INCONSISTENT, "unexpected event type %u (%s)", ev->type,
              v1_types[ev->type].name);
    convert->error.offset = (int64_t)ev->offset;
    convert->error.proc = ev->proc;
    convert->error.goroutine = (int64_t)ev->g;
    convert->error.time_ns = ev->ticks;
    return -1;
}

/* Converts events that do not become a single event of the table's kinds. */
static int convert_apart(struct v1_convert *convert, const struct v1_event *ev)
{
    switch (ev->type) {
    case V1_ProcStart:
    case V1_ProcStop:
        proc_transition(convert, ev, ev->type == V1_ProcStart);
        return 0;
    case V1_STWStart:
        convert->stw_reason = stw_reason(convert, ev->arg[0]);
        range(convert, ev, V2_STWBegin, TRAIL_RANGE_STW, true);
        return 0;
    case V1_GCSweepDone:
        sweep_end(convert, ev);
        return 0;
    case V1_GoCreate:
        go_create(convert, ev);
        return 0;
    case V1_GoStartLabel:
        go_start_label(convert, ev);
        return 0;
    case V1_GoSysCall:
        sys_call(convert, ev);
        return 0;
    case V1_UserTaskCreate:
    case V1_UserTaskEnd:
        user_task(convert, ev, ev->type == V1_UserTaskCreate);
        return 0;
    case V1_UserRegion:
        user_region(convert, ev);
        return 0;
    case V1_UserLog:
        user_log(convert, ev);
        return 0;
    case V1_CPUSample:
        put_stack(convert, push_event(convert, ev, V2_CPUSample, TRAIL_STACK_SAMPLE), ev);
        return 0;
    default:
        return unexpected(convert, ev);
    }
}

/* Converts an event if it belongs to the snapshot. Returns 1 if it does not, else 0 or -1. */
static int convert_start(struct v1_convert *convert, const struct v1_event *ev)
{
    unsigned how = rules[ev->type].how;
    if (ev->type == V1_Gomaxprocs)
        return start_ends(convert, ev);
    /* In a damaged trace the start or the end of the snapshot may be lost. */
    if (convert->shown && (how == HOW_STOP || how == HOW_OWN_STATE))
        return start_ends(convert, ev) < 0 || reserve(convert, MOST_REPAIRED) < 0 ? -1 : 1;
    if (ev->type == V1_GoCreate)
        return created_before(convert, ev);
    if (ev->type != V1_GoStart || (convert->shown && !idmap_find(&convert->created, ev->arg[0])))
        return 1;
    go_status(convert, ev, TRAIL_GO_RUNNING);
    return 0;
}

static inline __attribute__((always_inline)) int convert_one(struct v1_convert *convert,
                                                             const struct v1_event *ev)
{
    const struct rule *rule = &rules[ev->type];
    trail_event *out;
    if (__builtin_expect(convert->starting, 0)) {
        int started = convert_start(convert, ev);
        if (started <= 0)
            return started;
    }
    switch ((enum how)rule->how) {
    case HOW_APART:
        return convert_apart(convert, ev);
    case HOW_NOT:
        break;
    case HOW_METRIC:
        metric(convert, ev, rule->wire, rule->to);
        break;
    case HOW_RANGE_BEGINS:
    case HOW_RANGE_ENDS:
        range(convert, ev, rule->wire, rule->to, rule->how == HOW_RANGE_BEGINS);
        break;
    case HOW_OWN_STATE:
        go_transition(convert, ev, rule->wire, ev->g, rule->from, rule->to);
        break;
    case HOW_OTHER_STATE:
        out = go_transition(convert, ev, rule->wire, ev->arg[0], rule->from, rule->to);
        if (ev->type == V1_GoUnblock)
            put_stack(convert, out, ev);
        break;
    case HOW_STOP: /* the stack is both the context's and its own */
        out = go_transition(convert, ev, rule->wire, ev->g, rule->from, rule->to);
        put_stack(convert, out, ev);
        out->transition.reason = convert->reasons[ev->type];
        out->transition.stack = out->stack;
        break;
    case HOW_STATUS:
        go_status(convert, ev, rule->to);
        break;
    }
    return 0;
}

/* A goroutine starts on the P: the previous one has stopped, at an unknown time. */
static int replace_running(struct v1_convert *convert, const struct v1_event *ev)
{
    struct v1_shown_g *g = v1_shown_get(convert->shown, ev->lane->shown_g);
    if (!g)
        return error_no_memory(&convert->error);
    bool runs = g->state == TRAIL_GO_RUNNING && g->lane == ev->lane->order + 1 && g->id != 0;
    if (runs && !v1_shown_doubt(convert->shown, g))
        return error_no_memory(&convert->error);
    if (runs)
        end_shown(convert, ev, g);
    ev->lane->shown_g = ev->g;
    return 0;
}

/* Converts an event of a trace with lost events. */
static __attribute__((cold, noinline)) int convert_repaired(struct v1_convert *convert,
                                                            const struct v1_event *ev)
{
    if (reserve(convert, MOST_REPAIRED) < 0)
        return -1;
    if (ev->type == V1_LOST)
        return lose(convert, ev);
    if (ev->lane && (ev->lane->lost || !(ev->lane->seen || convert->starting)) &&
        ev->proc == ev->lane->proc)
        find_proc(convert, ev);
    if (ev->type == V1_UserLog && convert->shown->collecting)
        return 0; /* its text would be copied twice */
    bool starts = ev->type == V1_GoStart || ev->type == V1_GoStartLabel;
    if ((ev->lane && starts && replace_running(convert, ev) < 0) || convert_one(convert, ev) < 0)
        return -1;
    return end_doubted(convert, ev);
}

/* MARK: Interface */

int v1_convert_event(struct v1_convert *convert, const struct v1_event *ev)
{
    /* No event becomes more than two, except the one that ends the snapshot, which reserves its own
     * room. */
    if (reserve(convert, 3) < 0)
        return -1;
    if (!convert->synced) {
        convert->synced = true;
        push_sync(convert, v1_clock_ns(convert->clock, ev->ticks) - 1, false);
    }
    return __builtin_expect(convert->shown != NULL, 0) ? convert_repaired(convert, ev)
                                                       : convert_one(convert, ev);
}

int v1_convert_end(struct v1_convert *convert)
{
    if (reserve(convert, 1) < 0)
        return -1;
    push_sync(convert, convert->last_ns + 1, true);
    return 0;
}

bool v1_convert_init(struct v1_convert *convert, struct tables *tables,
                     const struct v1_notes *notes, const struct v1_clock *clock, int version,
                     bool drop_futile, struct v1_shown *shown, const struct idmap *pc_stacks)
{
    *convert = (struct v1_convert){
        .tables = tables,
        .notes = notes,
        .clock = clock,
        .version = version,
        .drop_futile = drop_futile,
        .shown = shown,
        .pc_stacks = pc_stacks,
        .last_ns = -1,
        .starting = true,
    };
    error_clear(&convert->error);
    return add_texts(convert);
}

void v1_convert_fini(struct v1_convert *convert)
{
    free(convert->out);
    free(convert->created_order);
    idmap_free(&convert->created);
    convert->out = NULL;
    convert->created_order = NULL;
}
