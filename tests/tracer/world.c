/* Threads that take turns: see world.h. */
#include "world.h"

#include <stdlib.h>

/* MARK: Calls */

void world_call(trail_m *m, struct op *op)
{
    static const uintptr_t pcs[] = {0x1001, 0x2002, 0};
    uintptr_t address = (uintptr_t)op->value;
    op->ok = true;
    switch (op->call) {
    case GO_CREATE:
        op->ok = trail_go_create(m, op->g, (uintptr_t)world_call, op->skip);
        break;
    case GO_CREATE_BLOCKED:
        op->ok = trail_go_create_blocked(m, op->g, 0, op->skip);
        break;
    case GO_START:
        op->ok = trail_go_start(m, op->g);
        break;
    case GO_START_LABELLED:
        op->ok = trail_go_start_labelled(m, op->g, op->name);
        break;
    case GO_END:
        op->ok = trail_go_end(m);
        break;
    case GO_SCHED:
        op->ok = trail_go_sched(m, op->skip);
        break;
    case GO_PREEMPT:
        op->ok = trail_go_preempt(m, op->skip);
        break;
    case GO_BLOCK:
        op->ok = trail_go_block(m, (trail_block_reason)op->kind, op->skip);
        break;
    case GO_BLOCK_FUTILE:
        op->ok = trail_go_block_futile(m, (trail_block_reason)op->kind, op->skip);
        break;
    case GO_UNBLOCK:
        op->ok = trail_go_unblock(m, op->g, op->skip);
        break;
    case GO_SWITCH:
        op->ok = trail_go_switch(m, op->g);
        break;
    case GO_SWITCH_END:
        op->ok = trail_go_switch_end(m, op->g);
        break;
    case GO_DESTROY:
        op->ok = trail_go_destroy(m, op->g);
        break;
    case GO_LABEL:
        op->ok = trail_go_label(m, op->name);
        break;
    case SYSCALL_ENTER:
        op->ok = trail_syscall_enter(m, op->skip);
        break;
    case SYSCALL_EXIT:
        op->ok = trail_syscall_exit(m);
        break;
    case SYSCALL_EXIT_BLOCKED:
        op->ok = trail_syscall_exit_blocked(m);
        break;
    case SYSCALL_RETURNED:
        trail_syscall_returned(op->g);
        break;
    case GO_CREATE_SYSCALL:
        op->ok = trail_go_create_syscall(m, op->g);
        break;
    case GO_DESTROY_SYSCALL:
        op->ok = trail_go_destroy_syscall(m);
        break;
    case PROC_START:
        op->ok = trail_proc_start(m, op->p);
        break;
    case PROC_STOP:
        op->ok = trail_proc_stop(m);
        break;
    case PROC_STEAL:
        op->ok = trail_proc_steal(m, op->p);
        break;
    case PROCS_CHANGE:
        op->ok = trail_procs_change(m, op->kind, op->skip);
        break;
    case GC_BEGIN:
        op->ok = trail_gc_begin(m, op->skip);
        break;
    case GC_END:
        op->ok = trail_gc_end(m);
        break;
    case ASSIST_BEGIN:
        op->ok = trail_gc_assist_begin(m, op->skip);
        break;
    case ASSIST_END:
        op->ok = trail_gc_assist_end(m);
        break;
    case SWEEP_BEGIN:
        op->ok = trail_gc_sweep_begin(m);
        break;
    case SWEEP_SPAN:
        op->ok = trail_gc_sweep_span(m, op->value, op->value / 2, op->skip);
        break;
    case SWEEP_END:
        op->ok = trail_gc_sweep_end(m);
        break;
    case STW_BEGIN:
        op->ok = trail_stw_begin(m, (trail_stw_kind)op->kind, op->skip);
        break;
    case STW_END:
        op->ok = trail_stw_end(m);
        break;
    case HEAP_ALLOC:
        op->ok = trail_heap_alloc(m, op->value);
        break;
    case HEAP_GOAL:
        op->ok = trail_heap_goal(m, op->value);
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
    case LOG_FIELDS:
        trail_log_fields(op->task, op->name, trail_field_text("text", op->text),
                         trail_field_int("value", (int64_t)op->value));
        break;
    case CPU_SAMPLE:
        op->ok = trail_cpu_sample(pcs, 3);
        break;
    case ALLOC_OBJECT:
        op->ok = op->kind % 3 == 0   ? trail_object_alloc(m, address, 7)
                 : op->kind % 3 == 1 ? trail_object_free(m, address)
                                     : trail_object_exists(m, address, 0);
        break;
    case ALLOC_SPAN:
        op->ok = op->kind % 3 == 0   ? trail_span_free(m, address)
                 : op->kind % 3 == 1 ? trail_span_alloc(m, address, op->value, 1)
                                     : trail_span_exists(m, address, 1, 2);
        break;
    case ALLOC_STACK:
        op->ok = op->kind % 3 == 0   ? trail_stack_alloc(m, address, 4096)
                 : op->kind % 3 == 1 ? trail_stack_free(m, address)
                                     : trail_stack_exists(m, address, 8192);
        break;
    case ALLOC_TYPE:
        op->ok = trail_alloc_type(m, address, op->value, 8, op->name);
        break;
    case SCOPE_BEGIN:
        *op->scope = trail_scope_enter_(op->task, op->name);
        break;
    case SCOPE_BEGIN_IN:
        *op->scope = trail_scope_enter_in_(op->category, op->task, op->name);
        break;
    case SCOPE_END:
        trail_scope_leave_(op->scope);
        break;
    case SET_NAME:
        trail_g_set_name(op->g, op->name);
        break;
    case SET_KIND:
        trail_g_set_kind(op->g, op->name);
        break;
    case SET_CATEGORIES:
        op->ok = trail_categories_set(op->categories, NULL);
        break;
    case TIMER_GOROUTINE:
        trail_timer_goroutine(op->g);
        break;
    case G_INIT:
        trail_g_init(op->g);
        break;
    case P_INIT:
        trail_p_init(op->p, (int32_t)op->kind);
        break;
    case P_FINI:
        trail_p_fini(op->p);
        break;
    case M_START:
        trail_m_start(m);
        break;
    case M_EXIT:
        trail_m_exit(m);
        break;
    case ADVANCE:
        trail_advance();
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
            world_call(worker->op->m ? worker->op->m : &worker->m, worker->op);
        if (worker->job)
            worker->job(worker->context);
        worker->op = NULL;
        worker->job = NULL;
        pthread_cond_broadcast(&world->turn);
        while (!worker->op && !worker->job && !worker->quit)
            pthread_cond_wait(&world->turn, &world->lock);
    }
    pthread_mutex_unlock(&world->lock);
    if (!worker->abandons)
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

static void start_thread(struct world *world, unsigned thread)
{
    struct worker *worker = &world->workers[thread];
    *worker = (struct worker){.world = world};
    if (pthread_create(&worker->thread, NULL, work, worker) != 0)
        abort();
    /* Threads are created one after the other, so that the first run of each is over. */
    world_run(world, thread, NULL, NULL);
}

void world_replace(struct world *world, unsigned thread)
{
    struct worker *worker = &world->workers[thread];
    pthread_mutex_lock(&world->lock);
    worker->quit = worker->abandons = true;
    pthread_cond_broadcast(&world->turn);
    pthread_mutex_unlock(&world->lock);
    pthread_join(worker->thread, NULL);
    start_thread(world, thread);
}

/* MARK: The host */

static struct world *current;
static void each_goroutine(void *context, void (*visit)(trail_g *g, void *arg), void *arg)
{
    (void)context;
    for (size_t i = 0; current && i < current->goroutine_count; i++)
        visit(current->goroutines[i], arg);
}

/* Only the starting thread has a turn: the world is stopped. */
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
    for (unsigned i = 0; i < THREADS; i++)
        start_thread(world, i);
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
