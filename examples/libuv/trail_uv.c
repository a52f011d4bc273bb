/* See trail_uv.h. */
#include <pthread.h>
#include <stdlib.h>

#include "trail_uv.h"

/* MARK: All goroutines, for the tracer */

/* Guards the list; the tracer takes it and is not called under it. */
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static trail_uv_task all = {.next = &all, .prev = &all};

/* Guards the state of all tasks, so that a waker's event and the task's own come in order. */
static pthread_mutex_t state_lock = PTHREAD_MUTEX_INITIALIZER;

static void list_add(trail_uv_task *task)
{
    trail_g_init(&task->g);
    pthread_mutex_lock(&list_lock);
    task->next = &all;
    task->prev = all.prev;
    all.prev->next = task;
    all.prev = task;
    pthread_mutex_unlock(&list_lock);
}

static void list_remove(trail_uv_task *task)
{
    pthread_mutex_lock(&list_lock);
    task->prev->next = task->next;
    task->next->prev = task->prev;
    pthread_mutex_unlock(&list_lock);
}

static void each_task(void *context, void (*visit)(trail_g *g, void *arg), void *arg)
{
    (void)context;
    pthread_mutex_lock(&list_lock);
    for (trail_uv_task *task = all.next; task != &all; task = task->next)
        visit(&task->g, arg);
    pthread_mutex_unlock(&list_lock);
}

void trail_uv_set_host(void)
{
    static const trail_host host = {.each_goroutine = each_task};
    trail_host_set(&host);
}

/* MARK: Threads */

static void thread_announce(trail_uv_thread *thread)
{
    static int32_t slots;
    trail_m_start(&thread->m);
    trail_p_init(&thread->p, __atomic_fetch_add(&slots, 1, __ATOMIC_RELAXED));
}

static void thread_leave(trail_uv_thread *thread)
{
    trail_p_fini(&thread->p);
    trail_m_exit(&thread->m);
}

static void begin(trail_uv_thread *thread, uintptr_t function)
{
    thread_announce(thread);
    trail_proc_start(&thread->m, &thread->p);
    list_add(&thread->task);
    trail_go_create(&thread->m, &thread->task.g, function, TRAIL_NO_STACK);
    trail_go_start(&thread->m, &thread->task.g);
}

void trail_uv_thread_begin(trail_uv_thread *thread, void (*function)(void *))
{
    begin(thread, (uintptr_t)function);
}

void trail_uv_thread_end(trail_uv_thread *thread)
{
    trail_go_end(&thread->m);
    list_remove(&thread->task);
    trail_proc_stop(&thread->m);
    thread_leave(thread);
}

/* MARK: The loop */

static trail_uv_loop *traced_loop(uv_loop_t *loop)
{
    return loop->data;
}

/* The last callback of the phase before the poll, as it was the first to be started. */
static void poll_begins(uv_prepare_t *prepare)
{
    trail_uv_loop *traced = traced_loop(prepare->loop);
    trail_go_block(&traced->thread.m, TRAIL_BLOCK_NETWORK, TRAIL_NO_STACK);
    trail_proc_stop(&traced->thread.m);
    traced->polls = true;
}

static void poll_ends(trail_uv_loop *traced)
{
    trail_m *m = &traced->thread.m;
    if (!traced->polls)
        return;
    traced->polls = false;
    trail_proc_start(m, &traced->thread.p);
    trail_go_unblock(m, &traced->thread.task.g, TRAIL_NO_STACK);
    trail_go_start(m, &traced->thread.task.g);
}

static void check(uv_check_t *handle)
{
    poll_ends(traced_loop(handle->loop));
}

int trail_uv_loop_begin(trail_uv_loop *traced, uv_loop_t *loop)
{
    *traced = (trail_uv_loop){.polls = false};
    loop->data = traced;
    begin(&traced->thread, (uintptr_t)uv_run);
    uv_prepare_init(loop, &traced->prepare);
    uv_check_init(loop, &traced->check);
    uv_prepare_start(&traced->prepare, poll_begins);
    uv_check_start(&traced->check, check);
    uv_unref((uv_handle_t *)&traced->prepare);
    uv_unref((uv_handle_t *)&traced->check);
    return 0;
}

void trail_uv_loop_end(trail_uv_loop *traced)
{
    uv_loop_t *loop = traced->prepare.loop;
    uv_close((uv_handle_t *)&traced->prepare, NULL);
    uv_close((uv_handle_t *)&traced->check, NULL);
    uv_run(loop, UV_RUN_DEFAULT);
    trail_uv_thread_end(&traced->thread);
}

/* MARK: Handles */

void trail_uv_task_begin(uv_loop_t *loop, trail_uv_task *task, uintptr_t function)
{
    task->state = TRAIL_UV_WAITS;
    list_add(task);
    trail_go_create_blocked(&traced_loop(loop)->thread.m, &task->g, function, 0);
}

/* The loop is ready while a callback runs: no goroutine runs here that could be the waker. */
void trail_uv_enter(uv_loop_t *loop, trail_uv_task *task)
{
    trail_uv_loop *traced = traced_loop(loop);
    trail_m *m = &traced->thread.m;
    poll_ends(traced);
    trail_go_sched(m, TRAIL_NO_STACK);
    pthread_mutex_lock(&state_lock);
    if (task->state == TRAIL_UV_WAITS)
        trail_go_unblock(m, &task->g, TRAIL_NO_STACK);
    task->state = TRAIL_UV_RUNS;
    pthread_mutex_unlock(&state_lock);
    trail_go_start(m, &task->g);
}

static void back_to_loop(trail_uv_loop *traced)
{
    trail_go_start(&traced->thread.m, &traced->thread.task.g);
}

void trail_uv_leave(uv_loop_t *loop, trail_uv_task *task)
{
    trail_uv_loop *traced = traced_loop(loop);
    pthread_mutex_lock(&state_lock);
    if (task->state == TRAIL_UV_AGAIN) {
        task->state = TRAIL_UV_READY;
        trail_go_sched(&traced->thread.m, TRAIL_NO_STACK);
    } else {
        task->state = TRAIL_UV_WAITS;
        trail_go_block(&traced->thread.m, TRAIL_BLOCK_UNSPECIFIED, TRAIL_NO_STACK);
    }
    pthread_mutex_unlock(&state_lock);
    back_to_loop(traced);
}

void trail_uv_leave_and_end(uv_loop_t *loop, trail_uv_task *task)
{
    trail_go_end(&traced_loop(loop)->thread.m);
    list_remove(task);
    back_to_loop(traced_loop(loop));
}

static void timer_fires(uv_timer_t *handle)
{
    trail_uv_timer *timer = (trail_uv_timer *)handle;
    trail_uv_enter(handle->loop, &timer->task);
    timer->callback(handle);
    trail_uv_leave(handle->loop, &timer->task);
}

static void timer_closed(uv_handle_t *handle)
{
    trail_uv_timer *timer = (trail_uv_timer *)handle;
    uv_loop_t *loop = handle->loop;
    trail_uv_enter(loop, &timer->task);
    trail_uv_leave_and_end(loop, &timer->task);
    if (timer->closed)
        timer->closed(handle);
}

int trail_uv_timer_init(uv_loop_t *loop, trail_uv_timer *timer, uv_timer_cb callback)
{
    timer->callback = callback;
    trail_uv_task_begin(loop, &timer->task, (uintptr_t)callback);
    return uv_timer_init(loop, &timer->handle);
}

int trail_uv_timer_start(trail_uv_timer *timer, uint64_t timeout_ms, uint64_t repeat_ms)
{
    return uv_timer_start(&timer->handle, timer_fires, timeout_ms, repeat_ms);
}

void trail_uv_timer_close(trail_uv_timer *timer, uv_close_cb closed)
{
    timer->closed = closed;
    uv_close((uv_handle_t *)&timer->handle, timer_closed);
}

static void async_received(uv_async_t *handle)
{
    trail_uv_async *async = (trail_uv_async *)handle;
    trail_uv_enter(handle->loop, &async->task);
    async->callback(handle);
    trail_uv_leave(handle->loop, &async->task);
}

static void async_closed(uv_handle_t *handle)
{
    trail_uv_async *async = (trail_uv_async *)handle;
    uv_loop_t *loop = handle->loop;
    trail_uv_enter(loop, &async->task);
    trail_uv_leave_and_end(loop, &async->task);
    if (async->closed)
        async->closed(handle);
}

int trail_uv_async_init(uv_loop_t *loop, trail_uv_async *async, uv_async_cb callback)
{
    async->callback = callback;
    trail_uv_task_begin(loop, &async->task, (uintptr_t)callback);
    return uv_async_init(loop, &async->handle, async_received);
}

/* libuv merges all sends before the callback runs; the first one wakes the handle. */
int trail_uv_async_send(trail_uv_async *async)
{
    trail_uv_task *task = &async->task;
    trail_m *m = trail_m_current();
    pthread_mutex_lock(&state_lock);
    if (task->state == TRAIL_UV_RUNS) {
        task->state = TRAIL_UV_AGAIN;
    } else if (task->state == TRAIL_UV_WAITS && m) {
        task->state = TRAIL_UV_READY;
        trail_go_unblock(m, &task->g, 1);
    }
    pthread_mutex_unlock(&state_lock);
    return uv_async_send(&async->handle);
}

void trail_uv_async_close(trail_uv_async *async, uv_close_cb closed)
{
    async->closed = closed;
    uv_close((uv_handle_t *)&async->handle, async_closed);
}

/* MARK: Work */

/* A thread of libuv's pool, which ends without notice to the program. */
static pthread_key_t pool_thread;
static pthread_once_t pool_once = PTHREAD_ONCE_INIT;

static void pool_thread_ends(void *thread)
{
    thread_leave(thread);
    free(thread);
}

static void pool_begin(void)
{
    if (pthread_key_create(&pool_thread, pool_thread_ends) != 0)
        abort();
}

static trail_uv_thread *pool_thread_get(void)
{
    trail_uv_thread *thread;
    pthread_once(&pool_once, pool_begin);
    thread = pthread_getspecific(pool_thread);
    if (!thread) {
        thread = calloc(1, sizeof *thread);
        if (!thread || pthread_setspecific(pool_thread, thread) != 0)
            abort();
        thread_announce(thread);
    }
    return thread;
}

/* After it, the work is ready for the loop. */
static void work_runs(uv_work_t *request)
{
    trail_uv_work *work = (trail_uv_work *)request;
    trail_uv_thread *thread = pool_thread_get();
    trail_proc_start(&thread->m, &thread->p);
    trail_go_start(&thread->m, &work->task->g);
    work->work(request);
    trail_go_sched(&thread->m, TRAIL_NO_STACK);
    trail_proc_stop(&thread->m);
}

/* Also called for cancelled work, which is ready. `after` may free the request. */
static void work_done(uv_work_t *request, int status)
{
    trail_uv_work *work = (trail_uv_work *)request;
    trail_uv_task *task = work->task;
    uv_loop_t *loop = request->loop;
    trail_uv_enter(loop, task);
    if (work->after)
        work->after(request, status);
    trail_uv_leave_and_end(loop, task);
    free(task);
}

int trail_uv_queue_work(uv_loop_t *loop, trail_uv_work *work, uv_work_cb function,
                        uv_after_work_cb after)
{
    work->task = function ? calloc(1, sizeof *work->task) : NULL;
    if (!work->task)
        return function ? UV_ENOMEM : UV_EINVAL;
    work->work = function;
    work->after = after;
    work->task->state = TRAIL_UV_READY;
    list_add(work->task);
    trail_go_create(&traced_loop(loop)->thread.m, &work->task->g, (uintptr_t)function, 1);
    return uv_queue_work(loop, &work->request, work_runs, work_done);
}
