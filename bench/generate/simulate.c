/*
 * The simulated scheduler. Always the P whose clock is behind acts next, and does one thing; so
 * actions come in global time order and each finds the world as the one before left it. What a
 * running goroutine does is drawn from the table `mix`, whose weights are those seen in traces of
 * real servers; the number of runnable goroutines and of goroutines alive is kept near its target
 * by refusing actions.
 */
#include "generate.h"
#include <stdlib.h>
#include <string.h>

#define MAX_BLOCKED 64 /* system calls without a P, at most */

void sim_write(struct sim *sim, const void *data, size_t size)
{
    if (fwrite(data, 1, size, sim->file) != size)
        sim->failed = true;
    sim->written += size;
}

/* MARK: Sets of goroutines */

static void pool_add(struct pool *pool, struct goroutine *g)
{
    if (pool->count == pool->capacity) {
        pool->capacity = pool->capacity ? pool->capacity * 2 : 64;
        pool->g = must_grow(pool->g, pool->capacity * sizeof(struct goroutine *));
    }
    g->pool = pool;
    g->pool_index = pool->count;
    pool->g[pool->count++] = g;
}

static void pool_leave(struct goroutine *g)
{
    struct pool *pool = g->pool;
    if (!pool)
        return;
    struct goroutine *last = pool->g[--pool->count];
    pool->g[g->pool_index] = last;
    last->pool_index = g->pool_index;
    g->pool = NULL;
}

static void queue_put(struct sim *sim, struct queue *queue, struct goroutine *g)
{
    g->next = NULL;
    if (queue->tail)
        queue->tail->next = g;
    else
        queue->head = g;
    queue->tail = g;
    queue->count++;
    sim->runnable++;
}

static struct goroutine *queue_take(struct sim *sim, struct queue *queue)
{
    struct goroutine *g = queue->head;
    if (!g)
        return NULL;
    queue->head = g->next;
    if (!queue->head)
        queue->tail = NULL;
    queue->count--;
    sim->runnable--;
    return g;
}

/* A product of six fractions: few stacks are hot, most are rare. */
static uint32_t pick_stack(struct sim *sim, enum site site)
{
    size_t first = sim->program.first[site], n = sim->program.first[site + 1] - first;
    uint64_t r = rng_next(&sim->rng), fraction = r & 0xffff;
    for (unsigned i = 1; i < 6; i++)
        fraction = fraction * (r >> i * 9 & 0xffff) >> 16;
    return (uint32_t)(first + (fraction * n >> 16));
}

static struct goroutine *goroutine_new(struct sim *sim)
{
    struct goroutine *g = sim->free;
    if (g)
        sim->free = g->next;
    else
        g = must_alloc(sizeof *g);
    memset(g, 0, sizeof *g);
    g->id = ++sim->last_goroutine;
    g->last_proc = -1;
    g->start_stack = pick_stack(sim, SITE_START);
    if (sim->alive_count == sim->alive_capacity) {
        sim->alive_capacity = sim->alive_capacity ? sim->alive_capacity * 2 : 1024;
        sim->alive = must_grow(sim->alive, sim->alive_capacity * sizeof(struct goroutine *));
    }
    g->alive_index = sim->alive_count;
    sim->alive[sim->alive_count++] = g;
    return g;
}

static void goroutine_free(struct sim *sim, struct goroutine *g)
{
    struct goroutine *last = sim->alive[--sim->alive_count];
    sim->alive[g->alive_index] = last;
    last->alive_index = g->alive_index;
    g->next = sim->free;
    sim->free = g;
}

static struct machine *machine_get(struct sim *sim)
{
    struct machine *m = sim->idle;
    if (m) {
        sim->idle = m->next_idle;
        return m;
    }
    m = must_alloc(sizeof *m);
    if (sim->machines == sim->machine_capacity) {
        sim->machine_capacity = sim->machine_capacity ? sim->machine_capacity * 2 : 64;
        sim->machine = must_grow(sim->machine, sim->machine_capacity * sizeof(struct machine *));
    }
    sim->machine[sim->machines++] = m;
    m->id = 70000 + sim->machines * 3;
    return m;
}

static void machine_put(struct sim *sim, struct machine *m)
{
    m->next_idle = sim->idle;
    sim->idle = m;
}

/* MARK: Actions */

static void act(struct sim *sim, struct machine *m, enum act what, struct action action)
{
    sim->events++;
    sim->writer->act(sim, m, what, &action);
}

static uint64_t pause(struct sim *sim)
{
    uint64_t r = rng_next(&sim->rng);
    uint64_t ticks = ((r & 0xffff) * (r >> 16 & 0xffff) >> 16) * sim->step * 4 >> 16;
    if ((r >> 40 & 0x3ff) == 0)
        ticks *= 50;
    return ticks + 1;
}

/* The goroutine leaves its P; the caller says what becomes of it. */
static void proc_release(struct proc *p)
{
    p->m->g->m = NULL;
    p->m->g = NULL;
    p->state = P_FREE;
}

static void proc_idle(struct sim *sim, struct proc *p)
{
    act(sim, p->m, ACT_PROC_STOP, (struct action){.p = p});
    struct machine *m = p->m;
    m->p = NULL;
    p->m = NULL;
    p->state = P_IDLE;
    machine_put(sim, m);
    p->clock = sim->now + 1 + rng_below(&sim->rng, sim->step * 20 + 1);
}

static void proc_run(struct sim *sim, struct proc *p, struct goroutine *g, uint32_t label)
{
    act(sim, p->m, ACT_GO_START, (struct action){.g = g, .text = label});
    g->state = G_RUNNING;
    g->m = p->m;
    p->m->g = g;
    p->state = P_RUNNING;
}

static void make_runnable(struct sim *sim, struct queue *queue, struct goroutine *g)
{
    pool_leave(g);
    g->state = G_RUNNABLE;
    queue_put(sim, queue, g);
}

static void block(struct sim *sim, struct proc *p, enum text reason, enum site site,
                  struct pool *pool)
{
    struct goroutine *g = p->m->g;
    act(sim, p->m, ACT_GO_BLOCK, (struct action){.text = reason, .stack = pick_stack(sim, site)});
    proc_release(p);
    g->state = G_WAITING;
    g->block_next = false;
    pool_add(pool, g);
}

/* Takes the P from a thread in a system call; `by` writes it. The P is idle after. */
static void retake(struct sim *sim, struct machine *by, struct proc *p)
{
    struct machine *victim = p->m;
    act(sim, by, ACT_PROC_RETAKE, (struct action){.p = p, .victim = victim});
    victim->p = NULL;
    p->m = NULL;
    p->state = P_IDLE;
    p->clock = sim->now + 1 + rng_below(&sim->rng, 8);
    victim->exit_at = p->syscall_ends;
    sim->blocked[sim->blocked_count++] = victim;
}

static void sweep_end(struct sim *sim, struct proc *p)
{
    uint64_t swept = 8192 * (1 + rng_below(&sim->rng, 32));
    act(sim, p->m, ACT_SWEEP_END,
        (struct action){.a = swept, .b = rng_below(&sim->rng, swept / 8192 + 1) * 8192});
    p->sweeping = false;
}

static void assist_end(struct sim *sim, struct proc *p)
{
    act(sim, p->m, ACT_ASSIST_END, (struct action){0});
    p->m->g->assist = false;
}

/* MARK: Garbage collection */

static void preempt(struct sim *sim, struct proc *p, enum text reason, enum site site)
{
    struct goroutine *g = p->m->g;
    act(sim, p->m, ACT_GO_STOP, (struct action){.text = reason, .stack = pick_stack(sim, site)});
    proc_release(p);
    make_runnable(sim, reason == TEXT_GOSCHED ? &sim->global : &p->runnable, g);
}

static void stop_proc(struct sim *sim, struct machine *by, struct proc *p)
{
    if (p->state == P_SYSCALL) {
        retake(sim, by, p);
        return;
    }
    if (p->sweeping)
        sweep_end(sim, p);
    if (p->state == P_RUNNING)
        preempt(sim, p, TEXT_PREEMPTED, SITE_PREEMPT);
    if (p->state == P_FREE)
        proc_idle(sim, p);
}

/* One of the two pauses of a collection, by the goroutine that runs on p. */
static void collect(struct sim *sim, struct proc *p, bool begin)
{
    struct machine *m = p->m;
    uint32_t stack = pick_stack(sim, SITE_GC);
    act(sim, m, ACT_STW_BEGIN,
        (struct action){.text = begin ? TEXT_STW_SWEEP : TEXT_STW_MARK, .stack = stack});
    for (unsigned i = 0; i < sim->options.procs; i++)
        if (&sim->proc[i] != p)
            stop_proc(sim, m, &sim->proc[i]);
    act(sim, m, begin ? ACT_GC_BEGIN : ACT_GC_END, (struct action){.stack = stack});
    sim->marking = begin;
    if (begin) {
        sim->mark_ends = sim->now + sim->frequency / 1000 * (2 + rng_below(&sim->rng, 8));
    } else {
        sim->heap = sim->heap / 2;
        sim->heap_goal = sim->heap * 2 + (4 << 20);
        sim->sweep_left = 400;
        act(sim, m, ACT_HEAP_GOAL, (struct action){.a = sim->heap_goal});
    }
    act(sim, m, ACT_PROCS_CHANGE, (struct action){.a = sim->options.procs, .stack = stack});
    act(sim, m, ACT_STW_END, (struct action){0});
    for (unsigned i = 0; i < sim->options.procs; i++)
        sim->proc[i].clock = sim->now + 1 + rng_below(&sim->rng, sim->step + 1);
}

/* MARK: What a running goroutine does */

enum deed {
    DO_WAKE,
    DO_BLOCK,
    DO_SYSCALL,
    DO_HEAP,
    DO_GC_WORK,
    DO_CREATE,
    DO_END,
    DO_YIELD,
    DO_ANNOTATE,
    DO_SWITCH,
    DO_FOREIGN
};

static const struct {
    enum deed deed;
    unsigned weight; /* of 10,000 */
} mix[] = {
    {DO_WAKE, 3200},    {DO_BLOCK, 2200}, {DO_SYSCALL, 3100}, {DO_HEAP, 820},
    {DO_GC_WORK, 300},  {DO_CREATE, 50},  {DO_END, 50},       {DO_YIELD, 59},
    {DO_ANNOTATE, 200}, {DO_SWITCH, 20},  {DO_FOREIGN, 1},
};

static enum deed pick_deed(struct sim *sim)
{
    uint64_t roll = rng_below(&sim->rng, 10000);
    size_t i = 0;
    while (roll >= mix[i].weight)
        roll -= mix[i++].weight;
    return mix[i].deed;
}

static void wake(struct sim *sim, struct proc *p)
{
    struct pool *pool = &p->peers;
    if (rng_chance(&sim->rng, 40))
        pool = &sim->proc[rng_below(&sim->rng, sim->options.procs)].peers;
    if (pool->count == 0)
        return;
    struct goroutine *g = pool->g[rng_below(&sim->rng, pool->count < 16 ? pool->count : 16)];
    act(sim, p->m, ACT_GO_UNBLOCK, (struct action){.g = g, .stack = pick_stack(sim, SITE_UNBLOCK)});
    make_runnable(sim, &p->runnable, g);
    p->m->g->block_next = true;
}

static void block_somehow(struct sim *sim, struct proc *p)
{
    static const struct {
        enum text reason;
        enum site site;
        unsigned weight;
        bool outside;
    } ways[] = {
        {TEXT_SELECT, SITE_SELECT, 500, false}, {TEXT_CHAN_RECEIVE, SITE_RECEIVE, 250, false},
        {TEXT_CHAN_SEND, SITE_SEND, 60, false}, {TEXT_SYNC, SITE_SYNC, 80, false},
        {TEXT_COND, SITE_COND, 30, false},      {TEXT_NETWORK, SITE_NETWORK, 60, true},
        {TEXT_SLEEP, SITE_SLEEP, 20, true},
    };
    if (sim->marking && p->m->g->assist && rng_chance(&sim->rng, 200)) {
        block(sim, p, TEXT_ASSIST_WAIT, SITE_ASSIST, &p->outside);
        return;
    }
    uint64_t roll = rng_below(&sim->rng, 1000);
    size_t i = 0;
    while (roll >= ways[i].weight)
        roll -= ways[i++].weight;
    block(sim, p, ways[i].reason, ways[i].site, ways[i].outside ? &p->outside : &p->peers);
}

static void begin_syscall(struct sim *sim, struct proc *p)
{
    act(sim, p->m, ACT_SYSCALL_BEGIN, (struct action){.stack = pick_stack(sim, SITE_SYSCALL)});
    p->m->g->state = G_SYSCALL;
    p->state = P_SYSCALL;
    uint64_t ticks = pause(sim);
    if (rng_chance(&sim->rng, 3))
        ticks += sim->frequency / 50000 * (5 + rng_below(&sim->rng, 500));
    p->syscall_ends = sim->now + ticks;
}

static void create(struct sim *sim, struct proc *p)
{
    if (sim->alive_count > sim->options.goroutines + sim->options.goroutines / 8)
        return;
    struct goroutine *g = goroutine_new(sim);
    act(sim, p->m, ACT_GO_CREATE, (struct action){.g = g, .stack = pick_stack(sim, SITE_CREATE)});
    make_runnable(sim, &p->runnable, g);
}

/* Workers and assisting goroutines stay: one that dies in a range is an error (§10.4). */
static bool may_end(const struct sim *sim, const struct goroutine *g)
{
    return !g->worker && !g->assist &&
           sim->alive_count > sim->options.goroutines - sim->options.goroutines / 8;
}

static void end(struct sim *sim, struct proc *p)
{
    struct goroutine *g = p->m->g;
    if (!may_end(sim, g) || p->sweeping)
        return;
    act(sim, p->m, ACT_GO_END, (struct action){0});
    proc_release(p);
    goroutine_free(sim, g);
}

static void switch_to_peer(struct sim *sim, struct proc *p)
{
    if (sim->options.version < 23 || p->peers.count == 0)
        return;
    struct goroutine *old = p->m->g, *g = p->peers.g[rng_below(&sim->rng, p->peers.count)];
    bool ends = may_end(sim, old) && rng_chance(&sim->rng, 100);
    act(sim, p->m, ACT_GO_SWITCH, (struct action){.g = g, .a = ends});
    pool_leave(g);
    old->m = NULL;
    if (ends) {
        goroutine_free(sim, old);
    } else {
        old->state = G_WAITING;
        old->block_next = false;
        pool_add(&p->peers, old);
    }
    g->state = G_RUNNING;
    g->m = p->m;
    p->m->g = g;
}

/* A thread that Go did not make calls in, and finds no P (v2 only). */
static void foreign_call(struct sim *sim)
{
    if (sim->options.version < 22 || sim->blocked_count >= MAX_BLOCKED / 2)
        return;
    struct machine *m = machine_get(sim);
    struct goroutine *g = goroutine_new(sim);
    act(sim, m, ACT_FOREIGN_BEGIN, (struct action){.g = g});
    g->state = G_SYSCALL;
    g->m = m;
    m->g = g;
    m->exit_at = sim->now + sim->frequency / 100000 * rng_below(&sim->rng, 100);
    sim->blocked[sim->blocked_count++] = m;
}

static void annotate(struct sim *sim, struct proc *p)
{
    struct goroutine *g = p->m->g;
    struct action action = {.stack = pick_stack(sim, SITE_USER), .a = g->task};
    uint64_t roll = rng_below(&sim->rng, 8);
    if (roll == 0 && g->task == 0) {
        action.a = g->task = ++sim->last_task;
        action.b = rng_chance(&sim->rng, 300) && sim->last_task > 1 ? sim->last_task - 1 : 0;
        action.text = TEXT_TASKS + (uint32_t)rng_below(&sim->rng, 8);
        act(sim, p->m, ACT_TASK_BEGIN, action);
    } else if (roll == 1 && g->task) {
        g->task = 0;
        act(sim, p->m, ACT_TASK_END, action);
    } else if (roll <= 4 && g->regions < MAX_REGIONS) {
        action.text = TEXT_REGIONS + (uint32_t)rng_below(&sim->rng, 16);
        g->region[g->regions++] = (struct region){action.a, action.text};
        act(sim, p->m, ACT_REGION_BEGIN, action);
    } else if (g->regions && roll <= 6) {
        struct region region = g->region[--g->regions];
        action.a = region.task;
        action.text = region.name;
        act(sim, p->m, ACT_REGION_END, action);
    } else {
        action.text = TEXT_KEYS + (uint32_t)rng_below(&sim->rng, 8);
        size_t first = sim->program.first_message;
        action.b = first + rng_below(&sim->rng, sim->program.texts - first);
        act(sim, p->m, ACT_LOG, action);
    }
}

static void gc_work(struct sim *sim, struct proc *p)
{
    if (sim->marking && !p->m->g->assist) {
        act(sim, p->m, ACT_ASSIST_BEGIN, (struct action){.stack = pick_stack(sim, SITE_ASSIST)});
        p->m->g->assist = true;
    } else if (!sim->marking && sim->sweep_left && !p->sweeping) {
        act(sim, p->m, ACT_SWEEP_BEGIN, (struct action){.stack = pick_stack(sim, SITE_SWEEP)});
        p->sweeping = true;
        sim->sweep_left--;
    }
}

static void allocate(struct sim *sim, struct proc *p)
{
    sim->heap += 8192 * (1 + rng_below(&sim->rng, 4));
    act(sim, p->m, ACT_HEAP_ALLOC, (struct action){.a = sim->heap});
}

static void do_deed(struct sim *sim, struct proc *p)
{
    switch (pick_deed(sim)) {
    case DO_WAKE:
        if (sim->runnable < 4UL * sim->options.procs)
            wake(sim, p);
        break;
    case DO_BLOCK:
        if (sim->runnable > 0 || p->peers.count == 0)
            block_somehow(sim, p);
        break;
    case DO_SYSCALL:
        begin_syscall(sim, p);
        break;
    case DO_HEAP:
        allocate(sim, p);
        break;
    case DO_GC_WORK:
        gc_work(sim, p);
        break;
    case DO_CREATE:
        create(sim, p);
        break;
    case DO_END:
        end(sim, p);
        break;
    case DO_YIELD:
        if (rng_chance(&sim->rng, 500))
            preempt(sim, p, TEXT_PREEMPTED, SITE_PREEMPT);
        else
            preempt(sim, p, TEXT_GOSCHED, SITE_GOSCHED);
        break;
    case DO_ANNOTATE:
        annotate(sim, p);
        break;
    case DO_SWITCH:
        switch_to_peer(sim, p);
        break;
    case DO_FOREIGN:
        foreign_call(sim);
        break;
    }
}

static void step_running(struct sim *sim, struct proc *p)
{
    struct goroutine *g = p->m->g;
    if (sim->now >= p->sample_at) {
        act(sim, p->m, ACT_CPU_SAMPLE, (struct action){.stack = pick_stack(sim, SITE_CPU)});
        p->sample_at = sim->now + sim->frequency / 100;
    }
    if (p->sweeping) {
        sweep_end(sim, p);
    } else if (g->worker) {
        if (!sim->marking || rng_chance(&sim->rng, 50))
            block(sim, p, TEXT_SYSTEM, SITE_GC, &p->outside);
        if (!g->m)
            pool_leave(g); /* only a collection wakes a worker */
    } else if (g->assist && rng_chance(&sim->rng, 500)) {
        assist_end(sim, p);
    } else if (!sim->marking && sim->heap >= sim->heap_goal) {
        collect(sim, p, true);
    } else if (sim->marking && sim->now >= sim->mark_ends) {
        collect(sim, p, false);
    } else if (g->block_next && rng_chance(&sim->rng, 700)) {
        block_somehow(sim, p);
    } else {
        do_deed(sim, p);
    }
}

/* MARK: The scheduler */

/* A goroutine wakes by timer or network, on a P that runs none, or on none at all (sysmon). */
static bool poll_outside(struct sim *sim, struct machine *m, struct proc *p)
{
    if (p->outside.count == 0)
        return false;
    struct goroutine *g = p->outside.g[rng_below(&sim->rng, p->outside.count)];
    act(sim, m, ACT_GO_UNBLOCK, (struct action){.g = g});
    make_runnable(sim, m->p ? &p->runnable : &sim->global, g);
    return true;
}

static struct goroutine *find_runnable(struct sim *sim, struct proc *p)
{
    struct goroutine *g = NULL;
    if (sim->global.count && rng_chance(&sim->rng, 200))
        g = queue_take(sim, &sim->global);
    if (!g)
        g = queue_take(sim, &p->runnable);
    if (!g)
        g = queue_take(sim, &sim->global);
    for (unsigned i = 0; !g && i < sim->options.procs; i++)
        g = queue_take(sim, &sim->proc[(p->id + i) % sim->options.procs].runnable);
    return g;
}

static void step_free(struct sim *sim, struct proc *p)
{
    if (sim->marking && p->worker->state == G_WAITING && rng_chance(&sim->rng, 100)) {
        act(sim, p->m, ACT_GO_UNBLOCK, (struct action){.g = p->worker});
        proc_run(sim, p, p->worker, TEXT_DEDICATED + (uint32_t)rng_below(&sim->rng, 3));
        return;
    }
    if (rng_chance(&sim->rng, 60) && poll_outside(sim, p->m, p))
        return;
    struct goroutine *g = find_runnable(sim, p);
    if (g)
        proc_run(sim, p, g, 0);
    else if (!poll_outside(sim, p->m, p))
        proc_idle(sim, p);
}

static void step_idle(struct sim *sim, struct proc *p)
{
    if (sim->runnable == 0 && p->outside.count == 0 && !rng_chance(&sim->rng, 20)) {
        p->clock = sim->now + 1 + rng_below(&sim->rng, sim->step * 20 + 1);
        return;
    }
    struct machine *m = machine_get(sim);
    act(sim, m, ACT_PROC_START, (struct action){.p = p});
    m->p = p;
    p->m = m;
    p->state = P_FREE;
    if (sim->runnable == 0 && p->outside.count == 0 && p->peers.count) {
        /* All wait for each other: something from outside must happen. */
        act(sim, m, ACT_GO_UNBLOCK, (struct action){.g = p->peers.g[0]});
        make_runnable(sim, &p->runnable, p->peers.g[0]);
    }
}

static void step_syscall(struct sim *sim, struct proc *p)
{
    if (sim->now < p->syscall_ends && sim->blocked_count < MAX_BLOCKED) {
        retake(sim, sim->monitor, p);
        return;
    }
    act(sim, p->m, ACT_SYSCALL_END, (struct action){0});
    p->m->g->state = G_RUNNING;
    p->state = P_RUNNING;
}

static void leave_syscall(struct sim *sim, size_t index)
{
    struct machine *m = sim->blocked[index];
    struct goroutine *g = m->g;
    sim->blocked[index] = sim->blocked[--sim->blocked_count];
    bool ends = sim->options.version >= 22 && may_end(sim, g) && rng_chance(&sim->rng, 100);
    act(sim, m, ends ? ACT_FOREIGN_END : ACT_SYSCALL_EXIT, (struct action){.g = g});
    m->g = NULL;
    g->m = NULL;
    machine_put(sim, m);
    if (ends)
        goroutine_free(sim, g);
    else
        make_runnable(sim, &sim->global, g);
}

static void step_proc(struct sim *sim, struct proc *p)
{
    p->clock = sim->now + pause(sim);
    switch (p->state) {
    case P_IDLE:
        step_idle(sim, p);
        break;
    case P_FREE:
        step_free(sim, p);
        break;
    case P_RUNNING:
        step_running(sim, p);
        break;
    default:
        step_syscall(sim, p);
        break;
    }
    if (p->state == P_SYSCALL) {
        /* Looked at again when the call ends, or when sysmon finds that it takes long. */
        uint64_t limit = sim->now + sim->frequency / 50000;
        p->clock = p->syscall_ends < limit ? p->syscall_ends : limit;
    }
}

/* Lets the P or the blocked thread act whose time is first. */
static void step(struct sim *sim)
{
    struct proc *p = &sim->proc[0];
    for (unsigned i = 1; i < sim->options.procs; i++)
        if (sim->proc[i].clock < p->clock)
            p = &sim->proc[i];
    for (size_t i = 0; i < sim->blocked_count; i++) {
        if (sim->blocked[i]->exit_at <= p->clock) {
            if (sim->blocked[i]->exit_at > sim->now)
                sim->now = sim->blocked[i]->exit_at;
            leave_syscall(sim, i);
            return;
        }
    }
    if (p->clock > sim->now)
        sim->now = p->clock;
    else if (!rng_chance(&sim->rng, 10))
        sim->now++;
    if (rng_chance(&sim->rng, 1))
        poll_outside(sim, sim->monitor, p);
    step_proc(sim, p);
}

/* MARK: Begin and end */

/* The world as StartTrace finds it: a main goroutine on P 0, workers and some others waiting. */
static void populate(struct sim *sim)
{
    sim->proc = must_alloc(sim->options.procs * sizeof *sim->proc);
    sim->blocked = must_alloc(MAX_BLOCKED * sizeof(struct machine *));
    sim->monitor = machine_get(sim);
    struct goroutine *main = goroutine_new(sim);
    for (unsigned i = 0; i < sim->options.procs; i++) {
        struct proc *p = &sim->proc[i];
        p->id = i;
        p->clock = sim->now + UINT64_C(3) * i;
        p->sample_at = sim->now + sim->frequency / 100;
        p->worker = goroutine_new(sim);
        p->worker->worker = true;
        p->worker->state = G_WAITING;
    }
    while (sim->alive_count < sim->options.goroutines / 2) {
        struct goroutine *g = goroutine_new(sim);
        struct proc *p = &sim->proc[rng_below(&sim->rng, sim->options.procs)];
        g->state = G_WAITING;
        pool_add(rng_chance(&sim->rng, 200) ? &p->outside : &p->peers, g);
    }
    struct proc *p = &sim->proc[0];
    p->m = machine_get(sim);
    p->m->p = p;
    p->m->g = main;
    p->state = P_RUNNING;
    main->m = p->m;
    main->state = G_RUNNING;
}

static bool done(const struct sim *sim)
{
    return sim->failed || (sim->options.size && sim->written >= sim->options.size) ||
           (sim->options.events && sim->events >= sim->options.events);
}

static void sim_free(struct sim *sim)
{
    for (size_t i = 0; i < sim->alive_count; i++)
        free(sim->alive[i]);
    while (sim->free) {
        struct goroutine *next = sim->free->next;
        free(sim->free);
        sim->free = next;
    }
    for (size_t i = 0; i < sim->machines; i++)
        free(sim->machine[i]);
    for (unsigned i = 0; i < sim->options.procs; i++) {
        free(sim->proc[i].peers.g);
        free(sim->proc[i].outside.g);
    }
    free(sim->alive);
    free(sim->machine);
    free(sim->proc);
    free(sim->blocked);
    program_free(&sim->program);
}

void sim_run(struct sim *sim)
{
    bool v2 = sim->options.version >= 22;
    sim->rng.state = sim->options.seed;
    sim->writer = v2 ? &v2_writer : &v1_writer;
    sim->frequency = v2 ? 15625000 : 46875000;
    if (sim->options.rate == 0)
        sim->options.rate = v2 ? 2000000 : 6000000;
    sim->step = sim->frequency * sim->options.procs / sim->options.rate + 1;
    sim->now = sim->frequency * 3600;
    sim->heap = 4 << 20;
    sim->heap_goal = 8 << 20;
    program_make(&sim->program, sim->options.stacks, &sim->rng);
    populate(sim);
    sim->generation_ends = sim->now + sim->frequency;
    sim->writer->begin(sim);
    while (!done(sim)) {
        step(sim);
        if (v2 && sim->now >= sim->generation_ends) {
            sim->writer->advance(sim);
            sim->generation_ends = sim->now + sim->frequency;
        }
    }
    sim->writer->end(sim);
    sim_free(sim);
}
