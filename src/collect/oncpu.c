/* Gives the kernel's switches to their threads, and orders them relative to the ops: see
 * oncpu.h. */
#include "collect/oncpu.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/order.h"
#include "collect/parts.h"

/* MARK: Coming in */

static void note_newest(struct oncpu *o, const struct switch_record *record)
{
    if (record->ns < o->newest_ns || (record->kind != SWITCH_IN && record->kind != SWITCH_OUT &&
                                      record->kind != SWITCH_PREEMPTED))
        return;
    o->newest_ns = record->ns;
    o->newest_out = record->kind == SWITCH_OUT;
}

/* Uses a record to measure what a switch costs the thread. */
static void count_switch(struct collect *c, const struct switch_record *record)
{
    struct thread *thread;
    if (switch_is_of_all(record->kind)) {
        for (size_t at = 0;
             record->kind == SWITCH_LOST && (thread = threads_next(c, &at)) != NULL;) {
            switch_cost_forget(&thread->oncpu.cost);
            thread->oncpu.newest_out = false;
        }
        return;
    }
    thread = thread_with_tid(c, record->tid);
    if (!thread)
        return;
    note_newest(&thread->oncpu, record);
    if (record->kind == SWITCH_IN)
        switch_cost_in(&thread->oncpu.cost, record->ns);
    else if ((record->kind == SWITCH_OUT || record->kind == SWITCH_PREEMPTED) &&
             switch_cost_out(&thread->oncpu.cost, record->ns))
        switch_cost_want(&c->switch_costs, thread->serial);
}

void oncpu_read_count(struct collect *c)
{
    struct switch_costs *costs = &c->switch_costs;
    for (size_t i = 0; i < costs->count; i++) {
        struct thread *thread = thread_of(c, costs->serials[i]);
        if (thread && c->options.process.pid)
            switch_cost_read(&thread->oncpu.cost, costs, c->options.process.pid, thread->tid);
    }
    costs->count = 0;
}

void collect_switch(struct collect *c, const struct switch_record *record)
{
    struct kernel_switches *list = &c->switches;
    if (c->ended)
        return;
    count_switch(c, record);
    if (!GROW(list->at, list->room, list->count + 1)) {
        collect_no_memory(c);
        return;
    }
    list->at[list->count++] = (struct kernel_switch){
        .record = *record,
        .fault = record->kind == SWITCH_FAULT ? faults_take(c, record) : (struct fault){0}};
}

bool collect_has_thread(const struct collect *c, uint32_t tid)
{
    return !c->ended && thread_with_tid(c, tid) != NULL;
}

/* Inserts a switch in order of time: records of another CPU may have been read first. */
static void insert(struct collect *c, struct thread *thread, const struct cpu_switch *sw)
{
    struct oncpu *o = &thread->oncpu;
    size_t i;
    if (o->first && o->first + o->count == o->room) {
        memmove(o->at, o->at + o->first, o->count * sizeof o->at[0]);
        o->first = 0;
    }
    if (!GROW(o->at, o->room, o->first + o->count + 1)) {
        collect_no_memory(c);
        return;
    }
    for (i = o->first + o->count++; i > o->first && o->at[i - 1].time > sw->time; i--)
        o->at[i] = o->at[i - 1];
    o->at[i] = *sw;
}

/* The most that one switch takes over of the cost owed by earlier ones. */
#define MOST_OWED_NS 50000

/* Inserts a switch in, earlier than its record by what the switch costs, but not before the
 * preceding switch or wake-up: the cost is a mean, and what exceeds one switch is added to the
 * next. */
static void insert_in(struct collect *c, struct thread *thread, const struct cpu_switch *in)
{
    struct oncpu *o = &thread->oncpu;
    int64_t mean = switch_cost_of(&o->cost, &c->switch_costs);
    uint64_t cost = (mean > 0 ? ticks_of_ns(c->ticks, (uint64_t)mean) : 0) + o->owed;
    uint64_t most = ticks_of_ns(c->ticks, MOST_OWED_NS);
    struct cpu_switch moved = *in;
    uint64_t before = o->off ? o->off_time : 0;
    size_t i = o->first + o->count;
    while (i > o->first && o->at[i - 1].time > in->time)
        i--;
    if (i > o->first)
        before = o->at[i - 1].time;
    moved.time -= cost < moved.time ? cost : 0;
    if (moved.time < before)
        moved.time = before < in->time ? before + 1 : in->time;
    cost -= in->time - moved.time;
    o->owed = cost < most ? cost : most;
    insert(c, thread, &moved);
}

void oncpu_begins_off(struct collect *c, struct thread *thread, uint64_t time)
{
    insert(c, thread, &(struct cpu_switch){.time = time + 1, .kind = SWITCH_OUT});
}

void oncpu_is_ready(struct collect *c, struct thread *thread, uint64_t time)
{
    insert(c, thread, &(struct cpu_switch){.time = time, .kind = SWITCH_WOKEN});
}

/* Inserts a switch that concerns all threads. */
static void insert_all(struct collect *c, uint64_t time, enum switch_kind kind)
{
    struct thread *thread;
    for (size_t at = 0; (thread = threads_next(c, &at)) != NULL;)
        insert(c, thread, &(struct cpu_switch){.time = time, .kind = kind});
}

/*
 * From `time` on, records of unknown threads are missing. The start of a span may follow the start
 * or the end of another CPU's: then they are one span.
 */
static void begin_lost(struct collect *c, uint64_t time)
{
    struct lost_spans *lost = &c->switches.lost;
    struct lost_span *last = lost->count ? &lost->at[lost->count - 1] : NULL;
    insert_all(c, time, SWITCH_LOST);
    if (last && last->end >= time) {
        if (last->end != UINT64_MAX)
            insert_all(c, last->end, SWITCH_LOST);
        *last = (struct lost_span){time < last->begin ? time : last->begin, UINT64_MAX};
        return;
    }
    if (lost->count == LOST_SPANS)
        memmove(lost->at, lost->at + 1, --lost->count * sizeof lost->at[0]);
    lost->at[lost->count++] = (struct lost_span){time, UINT64_MAX};
}

static void end_lost(struct collect *c, uint64_t time)
{
    struct lost_spans *lost = &c->switches.lost;
    if (lost->count)
        lost->at[lost->count - 1].end = time;
    insert_all(c, time, SWITCH_FOUND);
}

static void give(struct collect *c, const struct kernel_switch *pending)
{
    const struct switch_record *record = &pending->record;
    uint64_t time = ticks_from_ns(c->ticks, record->ns);
    struct thread *thread;
    if (record->kind == SWITCH_LOST) {
        begin_lost(c, time);
    } else if (record->kind == SWITCH_FOUND) {
        end_lost(c, time);
    } else if (switch_is_of_all(record->kind)) {
        insert_all(c, time, record->kind);
    } else if ((thread = thread_with_tid(c, record->tid)) != NULL) {
        /* It may not have been known when the record was read. */
        note_newest(&thread->oncpu, record);
        const struct cpu_switch sw = {time, record->ns, record->kind, pending->fault};
        (sw.kind == SWITCH_IN ? insert_in : insert)(c, thread, &sw);
    }
}

/* By time; those with the same time in the order read. */
static int by_time(const void *a_, const void *b_)
{
    const struct kernel_switch *a = *(struct kernel_switch *const *)a_;
    const struct kernel_switch *b = *(struct kernel_switch *const *)b_;
    return ORDER(a->record.ns, b->record.ns) ?: ORDER(a, b);
}

/*
 * Hands switches out in order of time, merging those of the CPUs and the wake-ups; a late switch is
 * inserted among its thread's. The start and end of a gap stay together.
 */
static void give_all(struct collect *c, struct kernel_switch **due, size_t count, bool has_gap)
{
    if (!has_gap)
        qsort(due, count, sizeof(void *), by_time);
    for (size_t i = 0; i < count; i++)
        give(c, due[i]);
}

void oncpu_feed(struct collect *c, int64_t before_ns)
{
    struct kernel_switches *list = &c->switches;
    size_t kept = 0, count = 0;
    bool lost_is_late = false, has_gap = false;
    list->given_ns = before_ns;
    if (list->count == 0)
        return;
    if (!GROW(list->due, list->due_room, list->count)) {
        collect_no_memory(c);
        return;
    }
    for (size_t i = 0; i < list->count; i++) {
        const struct switch_record *record = &list->at[i].record;
        /* The end of a span never comes before its start. */
        bool late = record->kind == SWITCH_FOUND ? lost_is_late : record->ns >= before_ns;
        if (record->kind == SWITCH_LOST)
            lost_is_late |= late;
        list->at[i].late = late;
        if (late)
            continue;
        has_gap |= switch_is_of_all(record->kind);
        list->due[count++] = &list->at[i];
    }
    give_all(c, list->due, count, has_gap);
    for (size_t i = 0; i < list->count; i++) {
        if (list->at[i].late)
            list->at[kept++] = list->at[i];
    }
    list->count = kept;
}

void oncpu_take_over(struct collect *c, struct collect *former)
{
    c->switches = former->switches;
    former->switches = (struct kernel_switches){0};
}

void oncpu_dispose(struct collect *c)
{
    free(c->switches.at);
    free(c->switches.due);
}

static bool is_lost(const struct lost_spans *lost, uint64_t time)
{
    for (size_t i = 0; i < lost->count; i++) {
        if (time >= lost->at[i].begin && time <= lost->at[i].end)
            return true;
    }
    return false;
}

bool oncpu_is_known(const struct collect *c, uint64_t time)
{
    return c->trace->options.switches && !is_lost(&c->switches.lost, time);
}

/* MARK: Beside the ops */

struct cpu_switch oncpu_take(struct thread *thread)
{
    struct oncpu *o = &thread->oncpu;
    struct cpu_switch taken = o->at[o->first++];
    o->count--;
    if (taken.kind == SWITCH_WOKEN || taken.kind == SWITCH_IN)
        o->woken_at = taken.time;
    return taken;
}

static const struct op *first_op(const struct thread *thread)
{
    return op_in_ring(thread, 0);
}

/* The greatest distance at which a switch and an op may appear in the wrong order because of the
 * clocks. */
#define SKEW_NS 100000

bool oncpu_is_done_by_others(const struct thread *thread)
{
    const struct op *op = first_op(thread);
    return op->kind == OP_NOTHING || op->kind == OP_GONE ||
           (op->kind == OP_BLOCK && thread->g.in_call);
}

/* Whether an op before `in` is nearer to the switch out at `out`. */
static bool belongs_to_out(uint64_t out, uint64_t op, uint64_t in)
{
    return op < out || op - out < in - op;
}

/* Whether the record is about wake-ups rather than a switch. */
static bool is_beside(const struct cpu_switch *sw)
{
    return sw->kind == SWITCH_WOKEN || sw->kind == SWITCH_WAKINGS_LOST ||
           sw->kind == SWITCH_WAKINGS_FOUND;
}

/* Returns the switch in that ends the thread's time off its CPU, from `i` on; NULL: not known. */
static const struct cpu_switch *next_in(const struct oncpu *o, size_t i)
{
    while (i < o->first + o->count && is_beside(&o->at[i]))
        i++;
    return i < o->first + o->count && o->at[i].kind == SWITCH_IN ? &o->at[i] : NULL;
}

/* Whether the thread's i-th switch, out of its CPU, comes before `op`, allowing for the clocks. */
static bool is_out_first(const struct thread *thread, size_t i, const struct op *op)
{
    const struct oncpu *o = &thread->oncpu;
    const struct cpu_switch *out = &o->at[i], *in = next_in(o, i + 1);
    if (op->time < out->time)
        return false;
    if (!in)
        return op->time - out->time > ticks_of_ns(thread->of->ticks, SKEW_NS);
    return in->time <= op->time || !belongs_to_out(out->time, op->time, in->time);
}

/* The same for a thread that is off its CPU: whether it is put on one before `op`. */
static bool is_in_first(const struct oncpu *o, const struct op *op)
{
    const struct cpu_switch *next = &o->at[o->first], *in = next_in(o, o->first);
    if (!in)
        return next->time <= op->time;
    return in->time <= op->time || !belongs_to_out(o->off_time, op->time, in->time);
}

bool oncpu_is_next(const struct thread *thread)
{
    const struct oncpu *o = &thread->oncpu;
    if (o->count == 0 || thread->ops.count == 0)
        return o->count != 0;
    const struct cpu_switch *next = &o->at[o->first];
    const struct op *op = first_op(thread);
    if (oncpu_is_done_by_others(thread))
        return next->time <= op->time;
    if ((next->kind == SWITCH_IN || is_beside(next)) && o->off)
        return is_in_first(o, op);
    if (next->time > op->time)
        return false;
    if (next->kind == SWITCH_OUT || next->kind == SWITCH_PREEMPTED)
        return is_out_first(thread, o->first, op);
    return true;
}

bool oncpu_has_next(const struct thread *thread)
{
    return thread->ops.count || thread->oncpu.count;
}

/*
 * The time of the thread's first switch. A switch in that ends a wait is never before the release
 * that woke the thread: the kernel's clock differs, and the cost of a switch is inferred.
 */
static uint64_t first_switch_time(const struct thread *thread)
{
    const struct cpu_switch *sw = &thread->oncpu.at[thread->oncpu.first];
    const struct op *wake =
        sw->kind == SWITCH_IN && thread->oncpu.off ? oncpu_next_end(thread) : NULL;
    if (!wake || wake->object2 <= sw->time || wake->object2 > wake->time ||
        wake->object2 - sw->time > ticks_of_ns(thread->of->ticks, SKEW_NS) ||
        !oncpu_is_wake(thread))
        return sw->time;
    return wake->object2 + 1;
}

uint64_t oncpu_next_time(const struct thread *thread)
{
    uint64_t op = thread->ops.count ? first_op(thread)->time : UINT64_MAX;
    uint64_t next = thread->oncpu.count ? first_switch_time(thread) : UINT64_MAX;
    return op < next ? op : next;
}

bool oncpu_does_more(const struct thread *thread)
{
    return thread->ops.count && first_op(thread)->kind != OP_GONE;
}

const struct op *oncpu_next_end(const struct thread *thread)
{
    return thread->ops.count && first_op(thread)->kind == OP_WAKE ? first_op(thread) : NULL;
}

const struct op *oncpu_wake(const struct thread *thread)
{
    for (size_t i = 0; i < thread->ops.count; i++) {
        if (op_in_ring(thread, i)->kind == OP_WAKE)
            return op_in_ring(thread, i);
    }
    return NULL;
}

/* Returns when the wait of the call that the thread is in ended, though the call goes on;
 * UINT64_MAX: not known. */
static uint64_t ended_at(const struct thread *thread)
{
    const struct op *wake = oncpu_wake(thread);
    return wake && wake->final && wake->object2 ? wake->object2 : UINT64_MAX;
}

bool oncpu_is_unwound(const struct thread *thread, uint64_t time)
{
    const struct op *wake = oncpu_wake(thread);
    return wake && wake->flags & SHM_LEFT && time > ended_at(thread);
}

/* Whether the thread was last woken, or put on a CPU, after the end of its wait. */
static bool is_after_wait(const struct thread *thread)
{
    return thread->oncpu.woken_at > ended_at(thread);
}

bool oncpu_is_interrupted(const struct thread *thread)
{
    for (size_t i = 0; i < thread->ops.count && op_in_ring(thread, i)->kind != OP_WAKE; i++) {
        if (op_in_ring(thread, i)->kind != OP_NOTHING && op_in_ring(thread, i)->kind != OP_BLOCK)
            return true;
    }
    return false;
}

bool oncpu_lacks_waking(const struct thread *thread)
{
    const struct oncpu *o = &thread->oncpu;
    size_t i = o->first;
    while (i < o->first + o->count && is_beside(&o->at[i]) && o->at[i].kind != SWITCH_WOKEN)
        i++;
    return i < o->first + o->count && o->at[i].kind != SWITCH_WOKEN;
}

uint64_t oncpu_on_since(const struct thread *thread, uint64_t until)
{
    const struct oncpu *o = &thread->oncpu;
    uint64_t sum = 0, in = 0;
    for (size_t i = o->first; i < o->first + o->count; i++) {
        if (o->at[i].kind == SWITCH_IN)
            in = o->at[i].time;
        else if (in && !is_beside(&o->at[i])) {
            sum += o->at[i].time - in;
            in = 0;
        }
    }
    return in && until > in ? sum + (until - in) : sum;
}

uint64_t oncpu_ready_for(const struct thread *thread, uint64_t woken)
{
    const struct oncpu *o = &thread->oncpu;
    uint64_t sum = 0, since = woken;
    for (size_t i = o->first; i < o->first + o->count; i++) {
        const struct cpu_switch *sw = &o->at[i];
        if (is_beside(sw) || sw->kind == SWITCH_FAULT)
            continue;
        if (sw->kind == SWITCH_PREEMPTED) {
            since = sw->time;
        } else if (sw->kind == SWITCH_IN && since) {
            sum += sw->time - since;
            since = 0;
        } else if (sw->kind != SWITCH_IN) {
            return sum;
        }
    }
    return since ? UINT64_MAX : sum;
}

bool oncpu_is_killed(const struct thread *thread)
{
    const struct oncpu *o = &thread->oncpu;
    bool exits = o->count && o->at[o->first + o->count - 1].kind == SWITCH_EXIT;
    if (oncpu_wake(thread))
        return false;
    for (size_t i = 0; i < thread->ops.count && !exits; i++)
        exits = op_in_ring(thread, i)->kind == OP_GONE;
    return exits;
}

/*
 * How long a thread that the kernel has woken to kill it may take to end while other threads are
 * ready.
 */
#define KILLED_NS 10000000

bool oncpu_is_killed_now(const struct thread *thread)
{
    const struct oncpu *o = &thread->oncpu;
    size_t i = o->first;
    while (i < o->first + o->count && (is_beside(&o->at[i]) || o->at[i].kind == SWITCH_IN))
        i++;
    return i < o->first + o->count && o->at[i].kind == SWITCH_EXIT && !oncpu_does_more(thread) &&
           o->at[i].time - o->at[o->first].time < ticks_of_ns(thread->of->ticks, KILLED_NS);
}

int64_t oncpu_next_in(const struct collect *c, const struct thread *thread)
{
    const struct cpu_switch *in = next_in(&thread->oncpu, thread->oncpu.first);
    return in ? ticks_to_ns(c->ticks, in->time) : INT64_MAX;
}

int64_t oncpu_off_until(const struct collect *c, const struct thread *thread, int64_t off_ns,
                        int64_t read_ns)
{
    const struct oncpu *o = &thread->oncpu;
    size_t i = o->first;
    while (i < o->first + o->count && is_beside(&o->at[i]))
        i++;
    if (i < o->first + o->count)
        return ticks_to_ns(c->ticks, o->at[i].time);
    return o->newest_out && o->newest_ns == off_ns && read_ns > c->switches.given_ns
               ? read_ns
               : c->switches.given_ns;
}

/*
 * The kernel reports a fault within this much time after the thread was switched in, unless the
 * thread waits again first: usually within 50 us, in virtual machines 200 us and more.
 */
#define FAULT_NS 1000000

const struct fault *oncpu_fault(const struct collect *c, const struct thread *thread)
{
    const struct oncpu *o = &thread->oncpu;
    uint64_t end =
        thread->ops.count && !oncpu_is_done_by_others(thread) ? first_op(thread)->time : UINT64_MAX;
    uint64_t in = 0, most = ticks_of_ns(c->ticks, FAULT_NS);
    for (size_t i = o->first; i < o->first + o->count && o->at[i].time < end; i++) {
        const struct cpu_switch *sw = &o->at[i];
        if (is_beside(sw))
            continue;
        if (in && sw->time - in > most)
            return NULL;
        if (sw->kind == SWITCH_FAULT)
            return in ? &sw->fault : NULL;
        in = sw->kind == SWITCH_IN ? sw->time : 0;
        if (sw->kind == SWITCH_LOST || sw->kind == SWITCH_EXIT)
            return NULL;
    }
    return NULL;
}

/* The thread does not continue to the call's end if it sleeps again first. */
bool oncpu_is_wake(const struct thread *thread)
{
    const struct oncpu *o = &thread->oncpu;
    const struct op *wake = oncpu_wake(thread);
    for (size_t i = o->first; i < o->first + o->count; i++) {
        if (o->at[i].kind == SWITCH_OUT)
            return wake && (!is_out_first(thread, i, wake) || is_after_wait(thread) ||
                            oncpu_is_unwound(thread, o->at[i].time));
        if (o->at[i].kind == SWITCH_LOST || (wake && o->at[i].time > wake->time))
            return true;
    }
    return true;
}
