/*
 * The v2 writer (§5, §7): Go 1.22 to 1.27. One buffer a thread; a generation a second of trace
 * time, with its own string and stack numbers and sequences. What takes part in a generation has
 * its status written in front of the first event that concerns it (§7.4), and what took no part has
 * it at the end.
 */
#include "base/varint.h"
#include "generate.h"
#include "wire/wire.h"
#include <stdlib.h>
#include <string.h>

#define BATCH_SIZE 65504 /* header and data, §7.3 */
#define MAX_RECORD 64
#define WALL_START 1750000000u

struct buffer {
    uint64_t thread;
    uint64_t last_ticks;
    size_t used, size_at;
    bool started;
    uint8_t data[BATCH_SIZE];
};

struct sample {
    uint64_t time, thread, proc, goroutine, stack;
};

struct v2 {
    int version;
    uint64_t generation;
    struct ids strings, stacks;
    struct buffer common; /* what no thread wrote: tables, statuses, samples */
    struct sample *sample;
    size_t samples, sample_capacity;
    uint64_t gc_seq; /* of the next GC event */
    bool gc_active;  /* a collection runs on from the generation before: to be said */
};

/* MARK: Batches */

static void put(struct buffer *buffer, uint64_t number)
{
    buffer->used += uvarint_put(buffer->data + buffer->used, number);
}

static void buffer_start(struct sim *sim, struct buffer *buffer)
{
    const struct v2 *v2 = sim->state;
    if (sim->now <= buffer->last_ticks)
        sim->now = buffer->last_ticks + 1;
    buffer->last_ticks = sim->now;
    buffer->data[buffer->used++] = V2_EventBatch;
    put(buffer, v2->generation);
    put(buffer, buffer->thread);
    put(buffer, sim->now);
    buffer->size_at = buffer->used;
    buffer->used += UVARINT_MAX_SIZE;
    buffer->started = true;
}

/*
 * The size is a varint of ten bytes whatever it is, because its place was kept before it was known.
 */
static void buffer_flush(struct sim *sim, struct buffer *buffer)
{
    if (!buffer->started)
        return;
    uint64_t size = buffer->used - buffer->size_at - UVARINT_MAX_SIZE;
    for (int i = 0; i < UVARINT_MAX_SIZE; i++, size >>= 7)
        buffer->data[buffer->size_at + (size_t)i] =
            (uint8_t)((size & 0x7f) | (i < UVARINT_MAX_SIZE - 1 ? 0x80 : 0));
    sim_write(sim, buffer->data, buffer->used);
    buffer->used = 0;
    buffer->started = false;
}

/* Room for `size` bytes. Returns whether the batch is new. */
static bool buffer_ensure(struct sim *sim, struct buffer *buffer, size_t size)
{
    if (buffer->used + size > BATCH_SIZE)
        buffer_flush(sim, buffer);
    if (buffer->started)
        return false;
    buffer_start(sim, buffer);
    return true;
}

static struct buffer *buffer_of(struct machine *m)
{
    if (!m->buffer) {
        struct buffer *buffer = must_alloc(sizeof *buffer);
        buffer->thread = m->id;
        m->buffer = buffer;
    }
    return m->buffer;
}

static void record(struct sim *sim, struct buffer *buffer, unsigned type, unsigned args,
                   const uint64_t *arg)
{
    buffer_ensure(sim, buffer, MAX_RECORD);
    if (sim->now <= buffer->last_ticks)
        sim->now = buffer->last_ticks + 1;
    buffer->data[buffer->used++] = (uint8_t)type;
    put(buffer, sim->now - buffer->last_ticks);
    buffer->last_ticks = sim->now;
    for (unsigned i = 0; i < args; i++)
        put(buffer, arg[i]);
}

#define EVENT(buffer, type, ...)                                                                   \
    do {                                                                                           \
        const uint64_t arg_[] = {__VA_ARGS__};                                                     \
        record(sim, buffer, type, sizeof arg_ / sizeof arg_[0], arg_);                             \
    } while (0)
#define EVENT0(buffer, type) record(sim, buffer, type, 0, NULL)

static uint64_t string_id(struct sim *sim, uint64_t text)
{
    return ids_get(&((struct v2 *)sim->state)->strings, text);
}

static uint64_t stack_id(struct sim *sim, uint32_t stack)
{
    return ids_get(&((struct v2 *)sim->state)->stacks, stack);
}

/* MARK: Statuses */

static void proc_status(struct sim *sim, struct buffer *buffer, struct proc *p, uint64_t status)
{
    struct v2 *v2 = sim->state;
    if (p->status_gen == v2->generation)
        return;
    p->status_gen = v2->generation;
    p->seq = 0;
    EVENT(buffer, V2_ProcStatus, (uint64_t)p->id, status);
    if (p->sweeping)
        EVENT(buffer, V2_GCSweepActive, (uint64_t)p->id);
}

static uint64_t proc_state(const struct proc *p)
{
    if (p->state == P_IDLE)
        return V2_PROC_IDLE;
    return p->state == P_SYSCALL ? V2_PROC_SYSCALL : V2_PROC_RUNNING;
}

static uint64_t goroutine_state(const struct goroutine *g)
{
    static const uint8_t state[] = {[G_RUNNABLE] = V2_GO_RUNNABLE,
                                    [G_RUNNING] = V2_GO_RUNNING,
                                    [G_SYSCALL] = V2_GO_SYSCALL,
                                    [G_WAITING] = V2_GO_WAITING};
    return state[g->state];
}

static void go_status(struct sim *sim, struct buffer *buffer, struct goroutine *g)
{
    struct v2 *v2 = sim->state;
    if (g->status_gen == v2->generation)
        return;
    g->status_gen = v2->generation;
    g->seq = 0;
    uint64_t thread = g->m ? g->m->id : NO_THREAD;
    if (v2->version >= 23 && g->state == G_WAITING && !g->m && buffer == &v2->common)
        EVENT(buffer, V2_GoStatusStack, g->id, thread, goroutine_state(g),
              stack_id(sim, (uint32_t)sim->program.first[SITE_RECEIVE]));
    else
        EVENT(buffer, V2_GoStatus, g->id, thread, goroutine_state(g));
    if (g->assist)
        EVENT(buffer, V2_GCMarkAssistActive, g->id);
}

/* What must stand in front of any event of `m`. Returns its buffer. */
static struct buffer *prepare(struct sim *sim, struct machine *m)
{
    struct v2 *v2 = sim->state;
    struct buffer *buffer = buffer_of(m);
    if (m->p)
        proc_status(sim, buffer, m->p, proc_state(m->p));
    if (m->g)
        go_status(sim, buffer, m->g);
    if (v2->gc_active && m->p && m->g && m->g->state == G_RUNNING) {
        v2->gc_active = false;
        EVENT(buffer, V2_GCActive, v2->gc_seq++);
    }
    return buffer;
}

/* MARK: Events */

static void add_sample(struct sim *sim, struct machine *m, uint32_t stack)
{
    struct v2 *v2 = sim->state;
    if (v2->samples == v2->sample_capacity) {
        v2->sample_capacity = v2->sample_capacity ? v2->sample_capacity * 2 : 1024;
        v2->sample = must_grow(v2->sample, v2->sample_capacity * sizeof *v2->sample);
    }
    v2->sample[v2->samples++] = (struct sample){.time = sim->now,
                                                .thread = m->id,
                                                .proc = m->p ? (uint64_t)m->p->id : V2_NO_PROC,
                                                .goroutine = m->g ? m->g->id : 0,
                                                .stack = stack_id(sim, stack)};
}

/*
 * A P taken from a thread in a system call. If neither had an event in this generation, readers
 * cannot know which call it was: its status is then "abandoned" (§5.3).
 */
static void steal(struct sim *sim, struct buffer *buffer, const struct action *action)
{
    proc_status(sim, buffer, action->p, V2_PROC_ABANDONED);
    EVENT(buffer, V2_ProcSteal, (uint64_t)action->p->id, ++action->p->seq, action->victim->id);
}

static void create(struct sim *sim, struct buffer *buffer, const struct action *action)
{
    struct v2 *v2 = sim->state;
    action->g->status_gen = v2->generation;
    action->g->seq = 0;
    uint64_t start = stack_id(sim, action->g->start_stack);
    EVENT(buffer, V2_GoCreate, action->g->id, start, stack_id(sim, action->stack));
}

static void v2_act(struct sim *sim, struct machine *m, enum act act, const struct action *action)
{
    struct v2 *v2 = sim->state;
    struct buffer *buffer = prepare(sim, m);
    struct goroutine *g = action->g;
    uint64_t stack = stack_id(sim, action->stack), text = string_id(sim, action->text);
    switch (act) {
    case ACT_PROC_START:
        proc_status(sim, buffer, action->p, V2_PROC_IDLE);
        EVENT(buffer, V2_ProcStart, (uint64_t)action->p->id, ++action->p->seq);
        break;
    case ACT_PROC_STOP:
        EVENT0(buffer, V2_ProcStop);
        break;
    case ACT_PROC_RETAKE:
        steal(sim, buffer, action);
        break;
    case ACT_GO_CREATE:
        create(sim, buffer, action);
        break;
    case ACT_GO_START:
        go_status(sim, buffer, g);
        EVENT(buffer, V2_GoStart, g->id, ++g->seq);
        if (action->text)
            EVENT(buffer, V2_GoLabel, text);
        break;
    case ACT_GO_END:
        EVENT0(buffer, V2_GoDestroy);
        break;
    case ACT_GO_BLOCK:
        EVENT(buffer, V2_GoBlock, text, stack);
        break;
    case ACT_GO_STOP:
        EVENT(buffer, V2_GoStop, text, stack);
        break;
    case ACT_GO_UNBLOCK:
        go_status(sim, buffer, g);
        EVENT(buffer, V2_GoUnblock, g->id, ++g->seq, stack);
        break;
    case ACT_GO_SWITCH:
        go_status(sim, buffer, g);
        EVENT(buffer, action->a ? V2_GoSwitchDestroy : V2_GoSwitch, g->id, ++g->seq);
        break;
    case ACT_SYSCALL_BEGIN:
        EVENT(buffer, V2_GoSyscallBegin, ++m->p->seq, stack);
        break;
    case ACT_SYSCALL_END:
        EVENT0(buffer, V2_GoSyscallEnd);
        break;
    case ACT_SYSCALL_EXIT:
        EVENT0(buffer, V2_GoSyscallEndBlocked);
        break;
    case ACT_FOREIGN_BEGIN:
        g->status_gen = v2->generation;
        EVENT(buffer, V2_GoCreateSyscall, g->id);
        break;
    case ACT_FOREIGN_END:
        EVENT0(buffer, V2_GoDestroySyscall);
        break;
    case ACT_STW_BEGIN:
        EVENT(buffer, V2_STWBegin, text, stack);
        break;
    case ACT_STW_END:
        EVENT0(buffer, V2_STWEnd);
        break;
    case ACT_GC_BEGIN:
        EVENT(buffer, V2_GCBegin, v2->gc_seq++, stack);
        break;
    case ACT_GC_END:
        EVENT(buffer, V2_GCEnd, v2->gc_seq++);
        break;
    case ACT_SWEEP_BEGIN:
        EVENT(buffer, V2_GCSweepBegin, stack);
        break;
    case ACT_SWEEP_END:
        EVENT(buffer, V2_GCSweepEnd, action->a, action->b);
        break;
    case ACT_ASSIST_BEGIN:
        EVENT(buffer, V2_GCMarkAssistBegin, stack);
        break;
    case ACT_ASSIST_END:
        EVENT0(buffer, V2_GCMarkAssistEnd);
        break;
    case ACT_HEAP_ALLOC:
        EVENT(buffer, V2_HeapAlloc, action->a);
        break;
    case ACT_HEAP_GOAL:
        EVENT(buffer, V2_HeapGoal, action->a);
        break;
    case ACT_PROCS_CHANGE:
        EVENT(buffer, V2_ProcsChange, action->a, stack);
        break;
    case ACT_TASK_BEGIN:
        EVENT(buffer, V2_UserTaskBegin, action->a, action->b, text, stack);
        break;
    case ACT_TASK_END:
        EVENT(buffer, V2_UserTaskEnd, action->a, stack);
        break;
    case ACT_REGION_BEGIN:
        EVENT(buffer, V2_UserRegionBegin, action->a, text, stack);
        break;
    case ACT_REGION_END:
        EVENT(buffer, V2_UserRegionEnd, action->a, text, stack);
        break;
    case ACT_LOG:
        EVENT(buffer, V2_UserLog, action->a, text, string_id(sim, action->b), stack);
        break;
    case ACT_CPU_SAMPLE:
        add_sample(sim, m, action->stack);
        break;
    }
}

/* MARK: Generations */

/* The sync batch: Frequency alone up to 1.23, with the clocks under Sync from 1.25 on (§5.1). */
static void write_sync(struct sim *sim)
{
    struct v2 *v2 = sim->state;
    struct buffer *buffer = &v2->common;
    buffer_ensure(sim, buffer, MAX_RECORD);
    if (v2->version >= 25)
        buffer->data[buffer->used++] = V2_Sync;
    buffer->data[buffer->used++] = V2_Frequency;
    put(buffer, sim->frequency);
    if (v2->version >= 25) {
        uint64_t mono = buffer->last_ticks * 64;
        buffer->data[buffer->used++] = V2_ClockSnapshot;
        put(buffer, 0);
        put(buffer, mono);
        put(buffer, WALL_START + mono / 1000000000);
        put(buffer, mono % 1000000000);
    }
    buffer_flush(sim, buffer);
}

static void write_samples(struct sim *sim)
{
    struct v2 *v2 = sim->state;
    struct buffer *buffer = &v2->common;
    for (size_t i = 0; i < v2->samples; i++) {
        const struct sample *sample = &v2->sample[i];
        if (buffer_ensure(sim, buffer, MAX_RECORD))
            buffer->data[buffer->used++] = V2_CPUSamples;
        buffer->data[buffer->used++] = V2_CPUSample;
        put(buffer, sample->time);
        put(buffer, sample->thread);
        put(buffer, sample->proc);
        put(buffer, sample->goroutine);
        put(buffer, sample->stack);
    }
    v2->samples = 0;
    buffer_flush(sim, buffer);
}

static void write_stacks(struct sim *sim)
{
    struct v2 *v2 = sim->state;
    struct buffer *buffer = &v2->common;
    for (uint32_t i = 0; i < v2->stacks.count; i++) {
        const struct stack *stack = &sim->program.stack[v2->stacks.order[i]];
        if (buffer_ensure(sim, buffer, 32 + stack->frames * 4 * UVARINT_MAX_SIZE))
            buffer->data[buffer->used++] = V2_Stacks;
        buffer->data[buffer->used++] = V2_Stack;
        put(buffer, i + 1);
        put(buffer, stack->frames);
        for (unsigned f = 0; f < stack->frames; f++) {
            put(buffer, stack->frame[f].pc);
            put(buffer, string_id(sim, stack->frame[f].function));
            put(buffer, string_id(sim, stack->frame[f].file));
            put(buffer, stack->frame[f].line);
        }
    }
    buffer_flush(sim, buffer);
}

static void write_strings(struct sim *sim)
{
    struct v2 *v2 = sim->state;
    struct buffer *buffer = &v2->common;
    for (uint32_t i = 0; i < v2->strings.count; i++) {
        const struct text_value *value = &sim->program.text[v2->strings.order[i]];
        if (buffer_ensure(sim, buffer, 32 + value->size))
            buffer->data[buffer->used++] = V2_Strings;
        buffer->data[buffer->used++] = V2_String;
        put(buffer, i + 1);
        put(buffer, value->size);
        memcpy(buffer->data + buffer->used, value->data, value->size);
        buffer->used += value->size;
    }
    buffer_flush(sim, buffer);
}

/* Goroutines without an event in the generation get a status. Those on a P get it on their own thread. */
static void write_statuses(struct sim *sim)
{
    struct v2 *v2 = sim->state;
    for (unsigned i = 0; i < sim->options.procs; i++)
        if (sim->proc[i].m)
            prepare(sim, sim->proc[i].m);
    for (unsigned i = 0; i < sim->options.procs; i++)
        proc_status(sim, &v2->common, &sim->proc[i], V2_PROC_IDLE);
    for (size_t i = 0; i < sim->alive_count; i++)
        go_status(sim, &v2->common, sim->alive[i]);
    buffer_flush(sim, &v2->common);
}

static void end_generation(struct sim *sim)
{
    struct v2 *v2 = sim->state;
    write_statuses(sim);
    for (size_t i = 0; i < sim->machines; i++)
        if (sim->machine[i]->buffer)
            buffer_flush(sim, sim->machine[i]->buffer);
    write_samples(sim);
    write_stacks(sim);
    write_strings(sim);
    ids_reset(&v2->stacks);
    ids_reset(&v2->strings);
    static const uint8_t end = V2_EndOfGeneration;
    if (v2->version >= 26)
        sim_write(sim, &end, 1);
}

static void v2_advance(struct sim *sim)
{
    struct v2 *v2 = sim->state;
    end_generation(sim);
    v2->generation++;
    v2->gc_active = sim->marking;
    write_sync(sim);
}

static void v2_begin(struct sim *sim)
{
    struct v2 *v2 = must_alloc(sizeof *v2);
    sim->state = v2;
    v2->version = sim->options.version;
    v2->generation = 1;
    v2->gc_seq = 1;
    v2->common.thread = V2_NO_THREAD;
    ids_init(&v2->strings, sim->program.texts);
    ids_init(&v2->stacks, sim->program.stacks);
    sim_write(sim, wire_header(v2->version), WIRE_HEADER_SIZE);
    write_sync(sim);
    struct action action = {.a = sim->options.procs,
                            .stack = (uint32_t)sim->program.first[SITE_USER]};
    v2_act(sim, sim->proc[0].m, ACT_PROCS_CHANGE, &action);
}

static void v2_end(struct sim *sim)
{
    struct v2 *v2 = sim->state;
    end_generation(sim);
    for (size_t i = 0; i < sim->machines; i++)
        free(sim->machine[i]->buffer);
    ids_free(&v2->strings);
    ids_free(&v2->stacks);
    free(v2->sample);
    free(v2);
}

const struct writer v2_writer = {v2_begin, v2_act, v2_advance, v2_end};
