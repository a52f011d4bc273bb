/* Threads that take turns: see world.h. */
#include "world.h"

#include <stdlib.h>

/* MARK: Calls */

static void make_call(trail_m *m, struct op *op)
{
    static const uintptr_t pcs[] = {0x1001, 0x2002};
    uintptr_t address = (uintptr_t)op->value;
    switch (op->call) {
    case GO_CREATE:
        trail_go_create(m, op->g, (uintptr_t)make_call, op->skip);
        break;
    case GO_CREATE_BLOCKED:
        trail_go_create_blocked(m, op->g, 0, op->skip);
        break;
    case GO_START:
        trail_go_start(m, op->g);
        break;
    case GO_START_LABELLED:
        trail_go_start_labelled(m, op->g, op->name);
        break;
    case GO_END:
        trail_go_end(m);
        break;
    case GO_SCHED:
        trail_go_sched(m, op->skip);
        break;
    case GO_PREEMPT:
        trail_go_preempt(m, op->skip);
        break;
    case GO_BLOCK:
        trail_go_block(m, (trail_block_reason)op->kind, op->skip);
        break;
    case GO_BLOCK_FUTILE:
        trail_go_block_futile(m, (trail_block_reason)op->kind, op->skip);
        break;
    case GO_UNBLOCK:
        trail_go_unblock(m, op->g, op->skip);
        break;
    case GO_SWITCH:
        trail_go_switch(m, op->g);
        break;
    case GO_SWITCH_END:
        trail_go_switch_end(m, op->g);
        break;
    case GO_LABEL:
        trail_go_label(m, op->name);
        break;
    case SYSCALL_ENTER:
        trail_syscall_enter(m, op->skip);
        break;
    case SYSCALL_EXIT:
        trail_syscall_exit(m);
        break;
    case SYSCALL_EXIT_BLOCKED:
        trail_syscall_exit_blocked(m);
        break;
    case SYSCALL_RETURNED:
        trail_syscall_returned(op->g);
        break;
    case GO_CREATE_SYSCALL:
        trail_go_create_syscall(m, op->g);
        break;
    case GO_DESTROY_SYSCALL:
        trail_go_destroy_syscall(m);
        break;
    case PROC_START:
        trail_proc_start(m, op->p);
        break;
    case PROC_STOP:
        trail_proc_stop(m);
        break;
    case PROC_STEAL:
        trail_proc_steal(m, op->p);
        break;
    case PROCS_CHANGE:
        trail_procs_change(m, op->kind, op->skip);
        break;
    case GC_BEGIN:
        trail_gc_begin(m, op->skip);
        break;
    case GC_END:
        trail_gc_end(m);
        break;
    case ASSIST_BEGIN:
        trail_gc_assist_begin(m, op->skip);
        break;
    case ASSIST_END:
        trail_gc_assist_end(m);
        break;
    case SWEEP_BEGIN:
        trail_gc_sweep_begin(m);
        break;
    case SWEEP_SPAN:
        trail_gc_sweep_span(m, op->value, op->value / 2, op->skip);
        break;
    case SWEEP_END:
        trail_gc_sweep_end(m);
        break;
    case STW_BEGIN:
        trail_stw_begin(m, (trail_stw_kind)op->kind, op->skip);
        break;
    case STW_END:
        trail_stw_end(m);
        break;
    case HEAP_ALLOC:
        trail_heap_alloc(m, op->value);
        break;
    case HEAP_GOAL:
        trail_heap_goal(m, op->value);
        break;
    case TASK_BEGIN:
        op->result = trail_task_begin(op->task, op->name);
        break;
    case TASK_END:
        trail_task_end(op->task);
        break;
    case REGION_BEGIN:
        trail_region_begin(op->task, op->name);
        break;
    case REGION_END:
        trail_region_end(op->task, op->name);
        break;
    case LOG:
        trail_log(op->task, op->name, op->text);
        break;
    case LOGF:
        trail_logf(op->task, op->name, "%s", op->text);
        break;
    case CPU_SAMPLE:
        trail_cpu_sample(pcs, 2);
        break;
    case ALLOC_OBJECT:
        trail_object_alloc(m, address, 7);
        break;
    case ALLOC_SPAN:
        trail_span_free(m, address);
        break;
    case ALLOC_STACK:
        trail_stack_alloc(m, address, 4096);
        break;
    case CALLS:
        break;
    }
}

/* MARK: Turns */

static void *work(void *argument)
{
    struct worker *worker = argument;
    struct world *world = worker->world;
    trail_m_start(&worker->m);
    pthread_mutex_lock(&world->lock);
    while (!worker->quit) {
        if (worker->op)
            make_call(&worker->m, worker->op);
        if (worker->job)
            worker->job(worker->context);
        worker->op = NULL;
        worker->job = NULL;
        pthread_cond_broadcast(&world->turn);
        while (!worker->op && !worker->job && !worker->quit)
            pthread_cond_wait(&world->turn, &world->lock);
    }
    pthread_mutex_unlock(&world->lock);
    trail_m_exit(&worker->m);
    return NULL;
}

static void wait_for(struct world *world, const struct worker *worker)
{
    pthread_cond_broadcast(&world->turn);
    while (worker->op || worker->job)
        pthread_cond_wait(&world->turn, &world->lock);
    pthread_mutex_unlock(&world->lock);
}

void world_do(struct world *world, unsigned thread, struct op *op)
{
    pthread_mutex_lock(&world->lock);
    world->workers[thread].op = op;
    wait_for(world, &world->workers[thread]);
}

static void nothing(void *context)
{
    (void)context;
}

void world_run(struct world *world, unsigned thread, void (*job)(void *context), void *context)
{
    pthread_mutex_lock(&world->lock);
    world->workers[thread].job = job ? job : nothing;
    world->workers[thread].context = context;
    wait_for(world, &world->workers[thread]);
}

/* MARK: The host */

static struct world *current;
static void each_goroutine(void *context, void (*visit)(trail_g *g, void *arg), void *arg)
{
    (void)context;
    for (size_t i = 0; current && i < current->goroutine_count; i++)
        visit(current->goroutines[i], arg);
}

/* Only the starter has a turn: the world is stopped. */
static const trail_host host = {
    .each_goroutine = each_goroutine, .stop_world = nothing, .start_world = nothing};

void world_begin(struct world *world)
{
    *world = (struct world){.goroutine_count = 0};
    pthread_mutex_init(&world->lock, NULL);
    pthread_cond_init(&world->turn, NULL);
    current = world;
    trail_host_set(&host);
    for (int i = 0; i < PROCS; i++)
        trail_p_init(&world->procs[i], i);
    for (unsigned i = 0; i < THREADS; i++) {
        world->workers[i].world = world;
        if (pthread_create(&world->workers[i].thread, NULL, work, &world->workers[i]) != 0)
            abort();
        /* Threads are made one after the other, so that the first run of each is over. */
        world_run(world, i, NULL, NULL);
    }
}

void world_end(struct world *world)
{
    pthread_mutex_lock(&world->lock);
    for (unsigned i = 0; i < THREADS; i++)
        world->workers[i].quit = true;
    pthread_cond_broadcast(&world->turn);
    pthread_mutex_unlock(&world->lock);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(world->workers[i].thread, NULL);
    for (int i = 0; i < PROCS; i++)
        trail_p_fini(&world->procs[i]);
    current = NULL;
}
