/* What goroutines and Ps are, each change with its event: see model.h. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "collect/model.h"

/* MARK: Words for waits */

const struct wait_kind wait_kinds[SHM_WAITS] = {
#define WAIT(name, group, words, reason) [SHM_##name] = {SHM_GROUP_##group, words, reason},
#include "shm/waits.def"
#undef WAIT
};

bool wait_is_syscall(uint8_t wait)
{
    return strcmp(wait_kinds[wait].reason, "syscall") == 0;
}

bool wait_is_spinning(uint8_t wait)
{
    return wait == SHM_SPIN || wait_kinds[wait].group == SHM_GROUP_OPENMP;
}

/* MARK: Events */

uint64_t state_m(struct collect *c, struct thread *thread)
{
    if (thread->m)
        return thread->m;
    /* No two that live have the same: the kernel may have given the number again before the former's end is known. */
    thread->m = thread->tid && !idmap_find(&c->ms, thread->tid)
                    ? thread->tid
                    : (UINT64_C(1) << 32) + thread->serial;
    if (!idmap_put(&c->ms, thread->m, thread))
        collect_no_memory(c);
    return thread->m;
}

void state_event(struct collect *c, struct thread *thread, int64_t ns, unsigned type,
                 unsigned count, const uint64_t *args)
{
    c->summary.events++;
    (void)v2_writer_event(c->writer, state_m(c, thread), ns, type, count, args);
}

/* MARK: States */

void state_end_moment(struct oncpu *o, int64_t ns)
{
    if (o->on_since >= 0)
        o->on_ns += ns - o->on_since;
    o->on_since = -1;
}

/* Time in the state before goes to the summary. */
void state_enter(struct collect *c, struct thread *thread, enum g_state state, int64_t ns)
{
    int64_t spent = ns - thread->since_ns;
    state_end_moment(&thread->oncpu, ns);
    /* OpenMP's waits spin: that is not what the program wants of the CPU. */
    if ((thread->state == G_WAITING || thread->state == G_SYSCALL) &&
        wait_kinds[thread->wait].group == SHM_GROUP_OPENMP)
        thread->oncpu.on_ns = 0;
    c->summary.running_ns += thread->oncpu.on_ns;
    switch (thread->state) {
    case G_RUNNING:
        c->summary.running_ns += spent;
        break;
    case G_RUNNABLE:
        c->summary.ready_ns += spent - thread->oncpu.on_ns;
        break;
    case G_WAITING:
    case G_SYSCALL:
        c->summary.wait_ns[thread->wait] += spent - thread->oncpu.on_ns;
        if (thread->site) {
            thread->site->count++;
            thread->site->total_ns += spent;
            if (spent > thread->site->longest_ns) {
                thread->site->longest_ns = spent;
                thread->site->waker_stack = thread->waker_stack;
            }
        }
        break;
    case G_NONE:
    case G_DEAD:
        break;
    }
    thread->state = state;
    thread->since_ns = ns;
    thread->oncpu.on_ns = 0;
    thread->oncpu.on_since = thread->oncpu.off_since = -1;
}

void state_take_proc(struct collect *c, struct thread *thread, int64_t ns)
{
    struct proc *proc;
    size_t i = 0;
    while (i < c->proc_count && c->procs[i].running)
        i++;
    if (i == c->proc_count) {
        if (!GROW(c->procs, c->proc_room, c->proc_count + 1)) {
            collect_no_memory(c);
            return;
        }
        c->procs[c->proc_count++] = (struct proc){0};
    }
    proc = &c->procs[i];
    if (!proc->known)
        EVENT(c, thread, ns, V2_ProcStatus, i, V2_PROC_IDLE);
    proc->known = true;
    proc->running = thread;
    thread->proc = (int64_t)i;
    EVENT(c, thread, ns, V2_ProcStart, i, ++proc->seq);
}

void state_give_proc(struct collect *c, struct thread *thread, int64_t ns)
{
    if (thread->proc < 0)
        return;
    state_event(c, thread, ns, V2_ProcStop, 0, NULL);
    c->procs[thread->proc].running = NULL;
    thread->proc = -1;
}

/* A goroutine that nobody knows yet, created where it runs. */
static void appear(struct collect *c, struct thread *thread, int64_t ns)
{
    if (thread->proc < 0)
        state_take_proc(c, thread, ns);
    EVENT(c, thread, ns, V2_GoCreate, thread->serial, names_thread(c, thread), 0);
    state_enter(c, thread, G_RUNNABLE, ns);
}

/*
 * Each has a stack, for without one Go's profiles let the wait go on: of who goes on by itself that of its wait;
 * of a thread that ended the function that it began with.
 */
static uint64_t unblock_stack(struct collect *c, const struct thread *waker,
                              const struct thread *thread, uint64_t stack)
{
    /* With a stack a thread's own signal handler did it. */
    if (waker != thread || stack)
        return stack ? names_stack(c, stack, 0) : names_routine(c, waker);
    return names_stack(c, thread->site ? thread->site->stack : 0, thread->wait_pc);
}

void state_unblock(struct collect *c, struct thread *waker, struct thread *thread, int64_t ns,
                   uint64_t stack)
{
    EVENT(c, waker, ns, V2_GoUnblock, thread->serial, ++thread->g_seq,
          unblock_stack(c, waker, thread, stack));
    thread->waker_stack = stack;
    c->summary.waits_with_waker += waker != thread || stack;
    state_enter(c, thread, G_RUNNABLE, ns);
}

void state_run(struct collect *c, struct thread *thread, int64_t ns)
{
    if (thread->state == G_RUNNING || thread->state == G_DEAD)
        return;
    if (thread->state == G_NONE)
        appear(c, thread, ns);
    if (thread->state == G_WAITING)
        state_unblock(c, thread, thread, ns, 0);
    if (thread->state == G_SYSCALL) {
        state_event(c, thread, ns, V2_GoSyscallEndBlocked, 0, NULL);
        state_enter(c, thread, G_RUNNABLE, ns);
    }
    if (thread->proc < 0)
        state_take_proc(c, thread, ns);
    EVENT(c, thread, ns, V2_GoStart, thread->serial, ++thread->g_seq);
    state_enter(c, thread, G_RUNNING, ns);
}
