/*
 * The v1 writer (§1, §2): Go 1.5 to 1.21. One buffer a P (and one for "no P"), each a run of
 * records behind a Batch; goroutines carry a sequence number and the P that wrote about them last,
 * so that most starts and wake-ups take the short Local form; strings and stacks come after the
 * last batch.
 */
#include "base/varint.h"
#include "generate.h"
#include "wire/wire.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_SIZE 64488 /* §2.1 */
#define MAX_RECORD  128

struct buffer {
    uint64_t proc;
    uint64_t last_ticks, last_seq;
    size_t used;
    bool started; /* its Batch is written */
    uint8_t data[BUFFER_SIZE];
};

struct v1 {
    int version;
    struct ids strings, stacks;
    struct buffer no_proc, samples, tables;
    uint64_t seq;    /* 1.5: of the last event */
    uint64_t gc_seq; /* of the next collection */
    uint64_t start_ticks;
};

static uint64_t no_thread_buffer(const struct machine *m)
{
    return m->p ? (uint64_t)m->p->id : V1_NO_PROC;
}

static struct buffer *buffer_of(struct v1 *v1, struct machine *m)
{
    if (!m->p)
        return &v1->no_proc;
    if (!m->p->buffer) {
        m->p->buffer = must_alloc(sizeof(struct buffer));
        ((struct buffer *)m->p->buffer)->proc = no_thread_buffer(m);
    }
    return m->p->buffer;
}

static void buffer_flush(struct sim *sim, struct buffer *buffer)
{
    sim_write(sim, buffer->data, buffer->used);
    buffer->used = 0;
    buffer->started = false;
}

static void put(struct buffer *buffer, uint64_t number)
{
    buffer->used += uvarint_put(buffer->data + buffer->used, number);
}

/* Writes the Batch. Up to 1.10 that is the first event's time, after it the time of the fresh
 * buffer. */
static void buffer_start(struct sim *sim, struct buffer *buffer)
{
    struct v1 *v1 = sim->state;
    if (sim->now <= buffer->last_ticks)
        sim->now = buffer->last_ticks + 1;
    buffer->last_ticks = sim->now;
    buffer->last_seq = v1->seq;
    buffer->data[buffer->used++] = V1_Batch | 1 << V1_COUNT_SHIFT;
    put(buffer, buffer->proc);
    if (v1->version < 7)
        put(buffer, v1->seq);
    put(buffer, sim->now);
    buffer->started = true;
}

/* Room for a record, behind a Batch. Returns whether the Batch is new. */
static bool buffer_ensure(struct sim *sim, struct buffer *buffer, size_t size)
{
    if (buffer->used + size > BUFFER_SIZE)
        buffer_flush(sim, buffer);
    if (buffer->started)
        return false;
    buffer_start(sim, buffer);
    return true;
}

/* A timed record whose `args` numbers are those of this version, the stack among them. */
static void record(struct sim *sim, struct buffer *buffer, unsigned type, unsigned args,
                   const uint64_t *arg)
{
    struct v1 *v1 = sim->state;
    v1->seq++;
    bool fresh = buffer_ensure(sim, buffer, MAX_RECORD);
    uint64_t delta = 0;
    if (!fresh || v1->version >= 11) {
        if (sim->now <= buffer->last_ticks)
            sim->now = buffer->last_ticks + 1;
        delta = sim->now - buffer->last_ticks;
        buffer->last_ticks = sim->now;
    }
    unsigned code = args < V1_COUNT_LENGTH ? args : V1_COUNT_LENGTH;
    buffer->data[buffer->used++] = (uint8_t)(type | code << V1_COUNT_SHIFT);
    size_t length_at = buffer->used;
    if (code == V1_COUNT_LENGTH)
        buffer->used++;
    if (v1->version < 7) {
        put(buffer, v1->seq - buffer->last_seq);
        buffer->last_seq = v1->seq;
    }
    put(buffer, delta);
    for (unsigned i = 0; i < args; i++)
        put(buffer, arg[i]);
    if (code == V1_COUNT_LENGTH)
        buffer->data[length_at] = (uint8_t)(buffer->used - length_at - 1);
}

/*
 * A timed record from the newest form of its arguments: what an older version does not have is left
 * out, from the end, in front of the stack (§1.3). Types that the version does not have are not
 * written.
 */
static void event(struct sim *sim, struct buffer *buffer, unsigned type, unsigned args,
                  const uint64_t *arg)
{
    struct v1 *v1 = sim->state;
    if (v1_types[type].since > v1->version)
        return;
    uint64_t kept[5];
    unsigned count = v1_arg_count(type, v1->version), stack = v1_types[type].stack;
    assert(count <= args && count >= stack);
    for (unsigned i = 0; i < count; i++)
        kept[i] = arg[i];
    if (stack)
        kept[count - 1] = arg[args - 1];
    record(sim, buffer, type, count, kept);
}

#define EVENT(buffer, type, ...)                                                                   \
    do {                                                                                           \
        const uint64_t arg_[] = {__VA_ARGS__};                                                     \
        event(sim, buffer, type, sizeof arg_ / sizeof arg_[0], arg_);                              \
    } while (0)
#define EVENT0(buffer, type) event(sim, buffer, type, 0, NULL)

/* MARK: Strings */

static void string_record(struct sim *sim, struct buffer *buffer, uint32_t id, uint32_t text)
{
    const struct text_value *value = &sim->program.text[text];
    if (buffer->started || buffer != &((struct v1 *)sim->state)->tables)
        buffer_ensure(sim, buffer, value->size + 32);
    else if (buffer->used + value->size + 32 > BUFFER_SIZE)
        buffer_flush(sim, buffer);
    buffer->data[buffer->used++] = V1_String;
    put(buffer, id);
    put(buffer, value->size);
    memcpy(buffer->data + buffer->used, value->data, value->size);
    buffer->used += value->size;
}

/* The ID of a text; its String record goes in front of the event that uses it first. */
static uint32_t string_id(struct sim *sim, struct buffer *buffer, uint32_t text)
{
    struct v1 *v1 = sim->state;
    uint32_t known = v1->strings.count, id = ids_get(&v1->strings, text);
    if (id > known)
        string_record(sim, buffer, id, text);
    return id;
}

static uint64_t stack_id(struct sim *sim, uint32_t stack)
{
    return ids_get(&((struct v1 *)sim->state)->stacks, stack);
}

/* MARK: Goroutines (§2.10) */

static void go_create(struct sim *sim, struct machine *m, struct goroutine *g, uint32_t stack)
{
    struct v1 *v1 = sim->state;
    g->seq = 0;
    g->last_proc = m->p->id;
    const struct frame *start = sim->program.stack[g->start_stack].frame;
    uint64_t entry = v1->version < 7 ? start->pc - 1 : stack_id(sim, g->start_stack);
    EVENT(buffer_of(v1, m), V1_GoCreate, g->id, entry, stack_id(sim, stack));
}

static void go_start(struct sim *sim, struct machine *m, struct goroutine *g, uint32_t label)
{
    struct v1 *v1 = sim->state;
    struct buffer *buffer = buffer_of(v1, m);
    if (g->exit_pending) {
        g->exit_pending = false;
        g->seq++;
        uint64_t seq = v1->version < 7 ? g->exit_seq : g->seq;
        EVENT(buffer, V1_GoSysExit, g->id, seq, g->exit_ticks);
        g->last_proc = m->p->id;
    }
    g->seq++;
    if (label && v1->version >= 8) {
        EVENT(buffer, V1_GoStartLabel, g->id, g->seq, string_id(sim, buffer, label));
    } else if (v1->version >= 7 && g->last_proc == m->p->id) {
        EVENT(buffer, V1_GoStartLocal, g->id);
    } else {
        g->last_proc = m->p->id;
        EVENT(buffer, V1_GoStart, g->id, g->seq);
    }
}

static void go_unblock(struct sim *sim, struct machine *m, struct goroutine *g, uint32_t stack)
{
    struct v1 *v1 = sim->state;
    int64_t proc = m->p ? m->p->id : -1;
    g->seq++;
    if (v1->version >= 7 && g->last_proc == proc) {
        EVENT(buffer_of(v1, m), V1_GoUnblockLocal, g->id, stack_id(sim, stack));
    } else {
        g->last_proc = proc;
        EVENT(buffer_of(v1, m), V1_GoUnblock, g->id, g->seq, stack_id(sim, stack));
    }
}

static unsigned block_type(const struct v1 *v1, uint32_t reason)
{
    switch (reason) {
    case TEXT_CHAN_SEND:
        return V1_GoBlockSend;
    case TEXT_CHAN_RECEIVE:
        return V1_GoBlockRecv;
    case TEXT_SELECT:
        return V1_GoBlockSelect;
    case TEXT_SYNC:
        return V1_GoBlockSync;
    case TEXT_COND:
        return V1_GoBlockCond;
    case TEXT_NETWORK:
        return V1_GoBlockNet;
    case TEXT_SLEEP:
        return V1_GoSleep;
    case TEXT_ASSIST_WAIT:
        return v1->version >= 8 ? V1_GoBlockGC : V1_GoBlock;
    default:
        return V1_GoBlock;
    }
}

/* GoSysBlock and ProcStop go into the buffer of the P that is taken, whoever takes it (§2.11). */
static void retake(struct sim *sim, struct machine *victim)
{
    EVENT0(buffer_of(sim->state, victim), V1_GoSysBlock);
    EVENT0(buffer_of(sim->state, victim), V1_ProcStop);
}

static uint64_t stw_kind(const struct v1 *v1, uint32_t text)
{
    if (v1->version >= 21)
        return text == TEXT_STW_MARK ? 1 : 2;
    return text == TEXT_STW_MARK ? 0 : 1;
}

static void user_region(struct sim *sim, struct buffer *buffer, const struct action *action,
                        uint64_t mode)
{
    if (((struct v1 *)sim->state)->version < 11)
        return;
    EVENT(buffer, V1_UserRegion, action->a, mode, string_id(sim, buffer, action->text),
          stack_id(sim, action->stack));
}

static void user_task(struct sim *sim, struct buffer *buffer, const struct action *action)
{
    if (((struct v1 *)sim->state)->version < 11)
        return;
    EVENT(buffer, V1_UserTaskCreate, action->a, action->b, string_id(sim, buffer, action->text),
          stack_id(sim, action->stack));
}

/* The message follows the record and is not counted in its length. */
static void user_log(struct sim *sim, struct buffer *buffer, const struct action *action)
{
    if (((struct v1 *)sim->state)->version < 11)
        return;
    const struct text_value *message = &sim->program.text[action->b];
    uint64_t key = string_id(sim, buffer, action->text);
    buffer_ensure(sim, buffer, MAX_RECORD + message->size + UVARINT_MAX_SIZE);
    EVENT(buffer, V1_UserLog, action->a, key, stack_id(sim, action->stack));
    put(buffer, message->size);
    memcpy(buffer->data + buffer->used, message->data, message->size);
    buffer->used += message->size;
}

static void cpu_sample(struct sim *sim, struct machine *m, uint32_t stack)
{
    struct v1 *v1 = sim->state;
    uint64_t now = sim->now;
    EVENT(&v1->samples, V1_CPUSample, now, no_thread_buffer(m), m->g ? m->g->id : 0,
          stack_id(sim, stack));
}

static void v1_act(struct sim *sim, struct machine *m, enum act act, const struct action *action)
{
    struct v1 *v1 = sim->state;
    struct buffer *buffer = buffer_of(v1, m);
    switch (act) {
    case ACT_PROC_START:
        m->p = action->p; /* the event goes into the buffer of the P that starts */
        buffer = buffer_of(v1, m);
        m->p = NULL;
        EVENT(buffer, V1_ProcStart, m->id);
        break;
    case ACT_PROC_STOP:
        EVENT0(buffer, V1_ProcStop);
        break;
    case ACT_PROC_RETAKE:
        retake(sim, action->victim);
        break;
    case ACT_GO_CREATE:
        go_create(sim, m, action->g, action->stack);
        break;
    case ACT_GO_START:
        go_start(sim, m, action->g, action->text);
        break;
    case ACT_GO_END:
        EVENT0(buffer, V1_GoEnd);
        break;
    case ACT_GO_BLOCK:
        EVENT(buffer, block_type(v1, action->text), stack_id(sim, action->stack));
        break;
    case ACT_GO_STOP:
        m->g->last_proc = m->p->id;
        EVENT(buffer, action->text == TEXT_PREEMPTED ? V1_GoPreempt : V1_GoSched,
              stack_id(sim, action->stack));
        break;
    case ACT_GO_UNBLOCK:
        go_unblock(sim, m, action->g, action->stack);
        break;
    case ACT_SYSCALL_BEGIN:
        EVENT(buffer, V1_GoSysCall, stack_id(sim, action->stack));
        break;
    case ACT_SYSCALL_EXIT:
        action->g->exit_pending = true;
        action->g->exit_ticks = sim->now;
        action->g->exit_seq = ++v1->seq;
        break;
    case ACT_STW_BEGIN:
        EVENT(buffer, V1_STWStart, stw_kind(v1, action->text));
        break;
    case ACT_STW_END:
        EVENT0(buffer, V1_STWDone);
        break;
    case ACT_GC_BEGIN:
        EVENT(buffer, V1_GCStart, v1->gc_seq++, stack_id(sim, action->stack));
        break;
    case ACT_GC_END:
        EVENT0(buffer, V1_GCDone);
        break;
    case ACT_SWEEP_BEGIN:
        EVENT(buffer, V1_GCSweepStart, stack_id(sim, action->stack));
        break;
    case ACT_SWEEP_END:
        EVENT(buffer, V1_GCSweepDone, action->a, action->b);
        break;
    case ACT_ASSIST_BEGIN:
        EVENT(buffer, V1_GCMarkAssistStart, stack_id(sim, action->stack));
        break;
    case ACT_ASSIST_END:
        EVENT0(buffer, V1_GCMarkAssistDone);
        break;
    case ACT_HEAP_ALLOC:
        EVENT(buffer, V1_HeapAlloc, action->a);
        break;
    case ACT_HEAP_GOAL:
        EVENT(buffer, V1_HeapGoal, action->a);
        break;
    case ACT_PROCS_CHANGE:
        EVENT(buffer, V1_Gomaxprocs, action->a, stack_id(sim, action->stack));
        break;
    case ACT_TASK_BEGIN:
        user_task(sim, buffer, action);
        break;
    case ACT_TASK_END:
        EVENT(buffer, V1_UserTaskEnd, action->a, stack_id(sim, action->stack));
        break;
    case ACT_REGION_BEGIN:
        user_region(sim, buffer, action, 0);
        break;
    case ACT_REGION_END:
        user_region(sim, buffer, action, 1);
        break;
    case ACT_LOG:
        user_log(sim, buffer, action);
        break;
    case ACT_CPU_SAMPLE:
        cpu_sample(sim, m, action->stack);
        break;
    case ACT_SYSCALL_END: /* a call that keeps its P leaves no trace of its end */
    case ACT_GO_SWITCH:
    case ACT_FOREIGN_BEGIN:
    case ACT_FOREIGN_END:
        break;
    }
}

/* MARK: Begin and end (§2.7, §2.8) */

static void v1_begin(struct sim *sim)
{
    struct v1 *v1 = must_alloc(sizeof *v1);
    sim->state = v1;
    v1->version = sim->options.version;
    v1->no_proc.proc = V1_NO_PROC;
    v1->start_ticks = sim->now;
    ids_init(&v1->strings, sim->program.texts);
    ids_init(&v1->stacks, sim->program.stacks);

    sim_write(sim, wire_header(v1->version), WIRE_HEADER_SIZE);

    struct machine *m = sim->proc[0].m;
    struct buffer *buffer = buffer_of(v1, m);
    uint32_t stack = (uint32_t)sim->program.first[SITE_USER];
    for (size_t i = 0; i < sim->alive_count; i++) {
        struct goroutine *g = sim->alive[i];
        go_create(sim, m, g, stack);
        if (g->state == G_WAITING) {
            g->seq++;
            EVENT(buffer, V1_GoWaiting, g->id);
        }
    }
    EVENT(buffer, V1_ProcStart, m->id);
    go_start(sim, m, m->g, 0);
    for (uint32_t label = TEXT_NOT_WORKER; v1->version >= 8 && label <= TEXT_IDLE; label++)
        string_id(sim, buffer, label);
    if (v1->version >= 21)
        EVENT(buffer, V1_HeapGoal, sim->heap_goal);
    EVENT(buffer, V1_Gomaxprocs, sim->options.procs, stack_id(sim, stack));
}

static void put_frequency(const struct sim *sim, struct buffer *buffer)
{
    const struct v1 *v1 = sim->state;
    buffer->data[buffer->used++] = V1_Frequency;
    put(buffer, sim->frequency);
    if (v1->version < 7)
        put(buffer, 0);
}

static void stack_record(struct sim *sim, uint32_t id, const struct stack *stack)
{
    struct v1 *v1 = sim->state;
    struct buffer *buffer = &v1->tables;
    uint8_t body[4096];
    size_t size = uvarint_put(body, id);
    size += uvarint_put(body + size, stack->frames);
    for (unsigned i = 0; i < stack->frames; i++) {
        const struct frame *frame = &stack->frame[i];
        size += uvarint_put(body + size, frame->pc);
        if (v1->version < 7)
            continue;
        size += uvarint_put(body + size, string_id(sim, buffer, frame->function));
        size += uvarint_put(body + size, string_id(sim, buffer, frame->file));
        size += uvarint_put(body + size, frame->line);
    }
    if (v1->version >= 11)
        buffer_ensure(sim, buffer, size + 16);
    else if (buffer->used + size + 16 > BUFFER_SIZE)
        buffer_flush(sim, buffer);
    buffer->data[buffer->used++] = V1_Stack | V1_COUNT_LENGTH << V1_COUNT_SHIFT;
    put(buffer, size);
    memcpy(buffer->data + buffer->used, body, size);
    buffer->used += size;
}

/* Strings and stacks; from 1.11 on behind a Batch (§1.5). */
static void dump_tables(struct sim *sim)
{
    struct v1 *v1 = sim->state;
    for (uint32_t i = 0; i < v1->stacks.count; i++)
        stack_record(sim, i + 1, &sim->program.stack[v1->stacks.order[i]]);
    buffer_flush(sim, &v1->tables);
}

static void v1_end(struct sim *sim)
{
    struct v1 *v1 = sim->state;
    for (unsigned i = 0; i < sim->options.procs; i++) {
        struct buffer *buffer = sim->proc[i].buffer;
        if (buffer)
            buffer_flush(sim, buffer);
        free(buffer);
    }
    buffer_flush(sim, &v1->samples);
    buffer_flush(sim, &v1->no_proc);
    if (v1->version >= 21) {
        buffer_ensure(sim, &v1->tables, 32);
        put_frequency(sim, &v1->tables);
    } else if (v1->version >= 7) {
        put_frequency(sim, &v1->no_proc);
        buffer_flush(sim, &v1->no_proc);
    }
    if (v1->version >= 11)
        buffer_ensure(sim, &v1->tables, 32);
    dump_tables(sim);
    if (v1->version < 7) {
        put_frequency(sim, &v1->no_proc);
        buffer_flush(sim, &v1->no_proc);
    }
    ids_free(&v1->strings);
    ids_free(&v1->stacks);
    free(v1);
}

const struct writer v1_writer = {v1_begin, v1_act, NULL, v1_end};
