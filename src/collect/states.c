/* Changes the states of goroutines and Ps, each with its event: see states.h. */
#include "collect/states.h"

#include <string.h>

#include "collect/ops.h"
#include "collect/parts.h"

/* MARK: Words for waits */

const struct wait_kind wait_kinds[SHM_WAITS] = {
#define WAIT(name, group, kind, words, reason) [SHM_##name] = {SHM_GROUP_##group, words, reason},
#include "wire/waits.def"
};

static bool is_called_syscall(uint8_t wait)
{
    return strcmp(wait_kinds[wait].reason, "syscall") == 0;
}

/* A child's end ends the wait for it if both are in the trace. */
bool wait_is_syscall(const struct collect *c, uint8_t wait)
{
    return is_called_syscall(wait) && !(wait == SHM_CHILD && c->options.label);
}

const char *wait_reason(uint8_t wait)
{
    return is_called_syscall(wait) ? "sync" : wait_kinds[wait].reason;
}

bool wait_is_spinning(uint8_t wait)
{
    return wait == SHM_SPIN || wait_kinds[wait].group == SHM_GROUP_OPENMP;
}

/* MARK: Events */

uint64_t state_m(struct collect *c, struct thread *thread)
{
    if (thread->written.m)
        return thread->written.m;
    /* Live Ms must not share an ID: the kernel may reuse a TID before the former thread's end is
     * known. */
    thread->written.m = thread->tid && !idmap_find(&c->trace->ms, thread->tid)
                            ? thread->tid
                            : (UINT64_C(1) << 32) + thread->serial;
    if (!idmap_put(&c->trace->ms, thread->written.m, thread))
        collect_no_memory(c);
    return thread->written.m;
}

/* Counts events of the thread, and makes sure that it has an M. */
static struct thread_writer *count_events(struct collect *c, struct thread *thread, int64_t ns,
                                          unsigned count)
{
    (void)state_m(c, thread);
    c->summary.events += count;
    if (c->first_ns == 0)
        c->first_ns = ns;
    c->last_ns = ns;
    return &c->trace->out;
}

void state_event(struct collect *c, struct thread *thread, int64_t ns, unsigned type,
                 unsigned count, const uint64_t *args)
{
    struct thread_writer *out = count_events(c, thread, ns, 1);
    (void)v2_writer_event(out->out, thread->written.m, ns, type, count, args);
}

static void write_status(struct thread *thread, int64_t ns)
{
    static const uint8_t statuses[] = {
        [G_RUNNABLE] = V2_GO_RUNNABLE,
        [G_RUNNING] = V2_GO_RUNNING,
        [G_WAITING] = V2_GO_WAITING,
        [G_SYSCALL] = V2_GO_SYSCALL,
    };
    bool bound = thread->g.state == G_RUNNING || thread->g.state == G_SYSCALL;
    struct thread_writer *out = count_events(thread->of, thread, ns, 1);
    thread_writer_status(out, bound ? thread->written.m : V2_NO_THREAD, &thread->written, ns,
                         statuses[thread->g.state], 0);
}

void state_write_statuses(struct trace *t)
{
    struct thread *thread;
    thread_writer_ps(&t->out);
    for (struct collect *c = t->programs; c; c = c->next_in_trace) {
        for (size_t at = 0; (thread = threads_next(c, &at)) != NULL;) {
            if (thread->g.state != G_NONE && thread->g.state != G_DEAD)
                write_status(thread, t->out.now_ns);
        }
    }
}

/* MARK: States */

void state_end_moment(struct oncpu *o, int64_t ns)
{
    if (o->on_since >= 0)
        o->on_ns += ns - o->on_since;
    o->on_since = -1;
}

/* Counts a wait, or the rest of one that continued after the thread was woken in vain. */
static void count_at_site(struct thread *thread, int64_t spent)
{
    struct wait_site *site = thread->g.site;
    site->count += thread->g.waited_ns == 0;
    site->total_ns += spent;
    thread->g.waited_ns += spent;
    if (thread->g.waited_ns > site->longest_ns) {
        site->longest_ns = thread->g.waited_ns;
        site->holder_pc = thread->g.holder_pc;
        site->waker_stack = thread->g.waker_stack;
    }
}

void state_enter(struct collect *c, struct thread *thread, enum g_state state, int64_t ns)
{
    int64_t spent = ns - thread->g.since_ns;
    state_end_moment(&thread->oncpu, ns);
    /* A thread that spins waits, although it uses its CPU. */
    if ((thread->g.state == G_WAITING || thread->g.state == G_SYSCALL) &&
        wait_is_spinning(thread->g.wait)) {
        c->summary.spun_ns += thread->oncpu.on_ns;
        thread->oncpu.on_ns = 0;
    }
    c->summary.running_ns += thread->oncpu.on_ns;
    switch (thread->g.state) {
    case G_RUNNING:
        c->summary.running_ns += spent;
        break;
    case G_RUNNABLE:
        c->summary.ready_ns += spent - thread->oncpu.on_ns;
        break;
    case G_WAITING:
    case G_SYSCALL:
        c->summary.wait_ns[thread->g.wait] += spent - thread->oncpu.on_ns;
        if (thread->g.site)
            count_at_site(thread, spent);
        op_look_at_wait(c, thread, thread->g.waited_ns, true);
        break;
    case G_NONE:
    case G_DEAD:
        break;
    }
    thread->g.state = state;
    thread->g.since_ns = ns;
    thread->oncpu.on_ns = 0;
    thread->oncpu.on_since = thread->oncpu.off_since = -1;
}

void state_take_proc(struct collect *c, struct thread *thread, int64_t ns)
{
    struct thread_writer *out = &c->trace->out;
    size_t p = thread_writer_free_p(out);
    if (p == out->p_count && !thread_writer_add_ps(out, p + 1)) {
        collect_no_memory(c);
        return;
    }
    (void)count_events(c, thread, ns, out->ps[p].known ? 1 : 2);
    thread_writer_take_p(out, &thread->written, p, ns);
}

void state_give_proc(struct collect *c, struct thread *thread, int64_t ns)
{
    if (thread->written.p >= 0)
        thread_writer_give_p(count_events(c, thread, ns, 1), &thread->written, ns);
}

struct thread *state_any_running(const struct trace *t)
{
    for (size_t i = 0; i < t->out.p_count; i++) {
        if (t->out.ps[i].running)
            return (struct thread *)(void *)t->out.ps[i].running; /* its first member */
    }
    return NULL;
}

/* Creates the goroutine of a thread that is not in the trace yet, on its own M. */
static void appear(struct collect *c, struct thread *thread, int64_t ns)
{
    if (thread->written.p < 0)
        state_take_proc(c, thread, ns);
    EVENT(c, thread, ns, V2_GoCreate, thread->serial, thread_name_stack(c, thread), 0);
    state_enter(c, thread, G_RUNNABLE, ns);
}

/*
 * Returns the stack of an unblock event. Every such event has one, because without it Go's profiles
 * extend the wait: a goroutine that continues by itself has the stack of its wait; for a thread
 * that ended it is its start function.
 */
static uint64_t unblock_stack(struct collect *c, const struct thread *waker,
                              const struct thread *thread, uint64_t stack)
{
    /* With a stack, the thread was woken by its own signal handler. */
    if (waker != thread || stack)
        return stack ? code_stack(c, stack, 0) : thread_name_routine(c, waker);
    return code_stack(c, thread->g.site ? thread->g.site->stack : 0, thread->g.wait_pc);
}

void state_unblock(struct collect *c, struct thread *waker, struct thread *thread, int64_t ns,
                   uint64_t stack)
{
    struct thread_writer *out = count_events(c, waker, ns, 1);
    thread_writer_unblock(out, waker->written.m, &thread->written, ns,
                          unblock_stack(c, waker, thread, stack));
    thread->g.waker_stack = waker->of == thread->of ? stack : 0;
    thread->of->summary.waits_with_waker += waker != thread || stack;
    state_enter(thread->of, thread, G_RUNNABLE, ns);
}

void state_run(struct collect *c, struct thread *thread, int64_t ns)
{
    if (thread->g.state == G_RUNNING || thread->g.state == G_DEAD)
        return;
    if (thread->g.state == G_NONE)
        appear(c, thread, ns);
    if (thread->g.state == G_WAITING)
        state_unblock(c, thread, thread, ns, 0);
    if (thread->g.state == G_SYSCALL) {
        state_event(c, thread, ns, V2_GoSyscallEndBlocked, 0, NULL);
        state_enter(c, thread, G_RUNNABLE, ns);
    }
    if (thread->written.p < 0)
        state_take_proc(c, thread, ns);
    thread_writer_start(count_events(c, thread, ns, 1), &thread->written, ns);
    state_enter(c, thread, G_RUNNING, ns);
}

void state_begin(struct collect *c, struct thread *thread)
{
    struct trace *t = c->trace;
    thread->g.counted = true;
    if (++c->states.alive > c->summary.most_threads)
        c->summary.most_threads = c->states.alive;
    if (++t->alive > t->most_alive)
        t->most_alive = t->alive;
}

void state_end(struct collect *c, struct thread *thread, int64_t ns)
{
    if (thread->g.state != G_NONE) {
        state_event(c, thread, ns, V2_GoDestroy, 0, NULL);
        state_give_proc(c, thread, ns);
        (void)idmap_remove(&c->trace->ms, thread->written.m);
    }
    state_enter(c, thread, G_DEAD, ns);
    c->states.alive -= thread->g.counted;
    c->trace->alive -= thread->g.counted;
    thread_is_dead(c, thread);
}

/* MARK: Places */

struct wait_site *state_wait_site(struct collect *c, uint64_t stack, uint8_t wait)
{
    uint64_t key = (uint64_t)wait << 56 ^ stack;
    struct wait_site *site = idmap_find(&c->states.sites, key);
    if (site)
        return site;
    site = arena_alloc(&c->arena, sizeof *site);
    if (!site || !idmap_put(&c->states.sites, key, site)) {
        collect_no_memory(c);
        return NULL;
    }
    *site = (struct wait_site){.stack = stack, .wait = wait};
    return site;
}

static void insert_worst(const struct wait_site *worst[3], const struct wait_site *site)
{
    for (size_t i = 0; i < 3; i++) {
        if (!worst[i] || site->total_ns > worst[i]->total_ns) {
            for (size_t k = 2; k > i; k--)
                worst[k] = worst[k - 1];
            worst[i] = site;
            return;
        }
    }
}

void state_worst_sites(const struct collect *c, const struct wait_site *worst[3])
{
    IDMAP_VALUES(const struct wait_site, site, &c->states.sites) {
        if (site->stack && site->count)
            insert_worst(worst, site);
    }
}

void states_dispose(struct collect *c)
{
    idmap_free(&c->states.sites);
}
