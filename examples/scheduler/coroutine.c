/*
 * Coroutines: they are created, wait, are woken, yield, switch to each other and end.
 *
 * An event about a coroutine that leaves its thread is emitted on its own stack, while no other
 * thread can reach it; `after`, which makes it reachable, runs when its stack is left. A waker
 * emits the event before it puts the coroutine where a thread can start it.
 */
#include "scheduler.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* MARK: The list of all, which the tracer walks */

void all_add(struct g *g)
{
    lock(&sched.all_lock);
    g->all_prev = NULL;
    g->all_next = sched.all;
    if (sched.all)
        sched.all->all_prev = g;
    sched.all = g;
    unlock(&sched.all_lock);
}

static void all_remove(struct g *g)
{
    lock(&sched.all_lock);
    if (g->all_next)
        g->all_next->all_prev = g->all_prev;
    if (g->all_prev)
        g->all_prev->all_next = g->all_next;
    else
        sched.all = g->all_next;
    unlock(&sched.all_lock);
}

/*
 * AllocFree: stacks that exist at the start of the trace, copied under the lock, reported without.
 */
void stacks_snapshot(void)
{
    struct m *m = m_self();
    uintptr_t *stacks;
    size_t n = 0, at = 0;
    lock(&sched.all_lock);
    for (struct g *g = sched.all; g; g = g->all_next)
        n += g->stack != NULL;
    stacks = calloc(n + 1, sizeof(*stacks));
    if (!stacks)
        abort();
    for (struct g *g = sched.all; g; g = g->all_next)
        if (g->stack)
            stacks[at++] = (uintptr_t)g->stack;
    unlock(&sched.all_lock);
    while (at-- > 0)
        trail_stack_exists(&m->trail, stacks[at], STACK_SIZE);
    free(stacks);
}

/* MARK: Coroutines begin and end */

/* A free stack has the address of the next free one in its first bytes. */
static uint8_t *stack_new(void)
{
    uint8_t *stack;
    lock(&sched.all_lock);
    stack = sched.free_stacks;
    if (stack)
        sched.free_stacks = *(uint8_t **)stack;
    unlock(&sched.all_lock);
    if (!stack) {
        size_t guard = (size_t)sysconf(_SC_PAGESIZE);
        stack = mmap(NULL, guard + STACK_SIZE, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (stack == MAP_FAILED || mprotect(stack, guard, PROT_NONE) != 0)
            abort();
        stack += guard;
    }
    return stack;
}

static void stack_free(uint8_t *stack)
{
    lock(&sched.all_lock);
    *(uint8_t **)stack = sched.free_stacks;
    sched.free_stacks = stack;
    unlock(&sched.all_lock);
}

/* After the coroutine's last event, so that the tracer's walk visits every live one. */
void g_free(struct g *g)
{
    all_remove(g);
    if (g->stack) {
        context_fini(&g->context);
        if (sched.alloc_free)
            trail_stack_free(&m_self()->trail, (uintptr_t)g->stack);
        stack_free(g->stack);
    }
    free(g);
}

/* Completes a direct switch on the thread where `g` now continues. */
void bury_ended(void)
{
    struct m *m = m_self();
    if (m->ended) {
        g_free(m->ended);
        m->ended = NULL;
    }
}

/* Where every coroutine begins and ends. */
static void g_main(void)
{
    struct g *g = m_self()->g;
    struct m *m;
    context_entered(&g->context);
    bury_ended();
    g->function(g->argument);
    m = m_self();
    note(g, "end");
    trail_go_end(&m->trail);
    m->ended = g;
    m->g = NULL;
    context_switch_for_good(&g->context, &m->context);
}

struct g *g_new(void (*function)(void *), void *argument, bool with_stack)
{
    struct g *g = calloc(1, sizeof(*g));
    if (!g)
        abort();
    trail_g_init(&g->trail);
    g->function = function;
    g->argument = argument;
    if (!with_stack)
        return g;
    g->stack = stack_new();
    g->trail.stack_low = g->stack;
    g->trail.stack_high = g->stack + STACK_SIZE;
    context_init(&g->context, g->stack, STACK_SIZE, g_main);
    return g;
}

static struct g *create(void (*function)(void *), void *argument, const char *label, bool blocked)
{
    struct m *m = m_self();
    struct g *g = g_new(function, argument, true);
    g->label = label;
    note(g, blocked ? "create-blocked" : "create");
    if (sched.alloc_free)
        trail_stack_alloc(&m->trail, (uintptr_t)g->stack, STACK_SIZE);
    all_add(g);
    if (blocked)
        trail_go_create_blocked(&m->trail, &g->trail, (uintptr_t)function, 2);
    else
        trail_go_create(&m->trail, &g->trail, (uintptr_t)function, 2);
    return g;
}

struct g *go_labelled(void (*function)(void *), void *argument, const char *label)
{
    struct g *g = create(function, argument, label, false);
    put_local(g);
    return g;
}

struct g *go(void (*function)(void *), void *argument)
{
    struct g *g = create(function, argument, NULL, false);
    put_local(g);
    return g;
}

struct g *go_blocked(void (*function)(void *), void *argument)
{
    return create(function, argument, NULL, true);
}

/* MARK: Coroutines leave their stacks and come back */

/* From the coroutine's stack to the thread's own, where after(argument) is called. */
void leave(struct m *m, struct g *g, void (*after)(void *), void *argument)
{
    m->after = after;
    m->after_argument = argument;
    m->g = NULL;
    context_switch(&g->context, &m->context);
}

static void do_nothing(void *argument)
{
    (void)argument;
}

void unlock_after(void *l)
{
    unlock(l);
}

static const char *reason_name(trail_block_reason reason)
{
    static const char *const names[] = {
#define TEXT(name, text) text,
        TRAIL_BLOCK_REASONS(TEXT)
#undef TEXT
    };
    return names[reason];
}

void park(trail_block_reason reason, bool in_vain, void (*after)(void *), void *argument)
{
    struct m *m = m_self();
    struct g *g = m->g;
    note(g, in_vain ? "block-in-vain %s" : "block %s", reason_name(reason));
    if (in_vain)
        trail_go_block_futile(&m->trail, reason, 1);
    else
        trail_go_block(&m->trail, reason, 1);
    leave(m, g, after ? after : do_nothing, argument);
}

/* The waker has taken `g` out of wherever it waited, under the lock that its park() released. */
void ready(struct g *g)
{
    struct m *m = m_self();
    if (m->p) {
        note(g, "unblock");
        trail_go_unblock(&m->trail, &g->trail, 1);
        put_local(g);
        return;
    }
    outside_begin();
    note(g, "unblock");
    trail_go_unblock(&m->trail, &g->trail, 1);
    put_runnable_locked(g);
}

void yield(void)
{
    struct m *m = m_self();
    struct g *g = m->g;
    note(g, "yield");
    trail_go_sched(&m->trail, 1);
    leave(m, g, put_runnable, g);
}

bool safe_point(void)
{
    struct m *m = m_self();
    struct g *g = m->g;
    if (!atomic_load_explicit(&m->p->preempt, memory_order_relaxed) || !g->stack)
        return false;
    note(g, "preempt");
    trail_go_preempt(&m->trail, 1);
    leave(m, g, put_runnable, g);
    return true;
}

/* Both sides of a pair agree which one resumes the other: the stack left here needs no lock. */
void switch_to(struct g *g)
{
    struct m *m = m_self();
    struct g *from = m->g;
    note(from, "switch");
    note(g, "unblock");
    note(g, "start");
    trail_go_switch(&m->trail, &g->trail);
    m->g = g;
    context_switch(&from->context, &g->context);
    bury_ended();
}

void switch_to_and_end(struct g *g)
{
    struct m *m = m_self();
    struct g *from = m->g;
    note(from, "end");
    note(g, "unblock");
    note(g, "start");
    trail_go_switch_end(&m->trail, &g->trail);
    m->ended = from;
    m->g = g;
    context_switch_for_good(&from->context, &g->context);
}

/* Coroutines that wait for ever are freed as they are. */
void coroutines_free(void)
{
    while (sched.all)
        g_free(sched.all);
    while (sched.free_stacks) {
        uint8_t *stack = sched.free_stacks;
        size_t guard = (size_t)sysconf(_SC_PAGESIZE);
        sched.free_stacks = *(uint8_t **)stack;
        munmap(stack - guard, guard + STACK_SIZE);
    }
}
