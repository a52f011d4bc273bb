/*
 * Traces libuv. libuv has no hook for callbacks, but the program passes each callback to it: the
 * functions here replace libuv's, keep the callback and pass their own.
 *
 *     loop         a goroutine, which waits while libuv polls (from its prepare to its check phase,
 *                  or to the first callback of a poll) and is ready while a callback runs
 *     handle       a goroutine, which waits between its callbacks; an async handle is woken by the
 *                  goroutine that sends, a timer by nothing
 *     work         a goroutine, created by what queued it, which runs in a thread of libuv's pool,
 *                  is ready until the loop has time for it, and runs its second callback there
 *
 * A handle of another kind is traced with a trail_uv_task, and trail_uv_enter and trail_uv_leave
 * around what its callbacks do. Callbacks that are not traced belong to the loop.
 *
 * One loop per thread. All functions are called in the thread of the loop, except
 * trail_uv_async_send and those of trail_uv_thread.
 */
#ifndef TRAIL_UV_H
#define TRAIL_UV_H

#include <trail/record.h>
#include <uv.h>

/* MARK: Threads and goroutines */

/*
 * WAITS, woken: READY, entered: RUNS, and sent to while it runs: AGAIN. AGAIN makes a task ready
 * when it leaves, without a waker, which came earlier; it is not visible itself.
 */
enum trail_uv_state { TRAIL_UV_WAITS, TRAIL_UV_READY, TRAIL_UV_RUNS, TRAIL_UV_AGAIN };

typedef struct trail_uv_task {
    trail_g g;
    enum trail_uv_state state; /* guarded by a lock of trail_uv.c */
    struct trail_uv_task *next, *prev;
} trail_uv_task;

/* A thread that runs goroutines. */
typedef struct trail_uv_thread {
    trail_m m;
    trail_p p;
    trail_uv_task task; /* the loop, or the thread itself */
} trail_uv_thread;

/* Lists the goroutines to the tracer. Call it first, and before the trace starts. */
void trail_uv_set_host(void);

/* A thread without a loop, as a goroutine with this start function. */
void trail_uv_thread_begin(trail_uv_thread *thread, void (*function)(void *));
void trail_uv_thread_end(trail_uv_thread *thread);

/* MARK: The loop */

typedef struct trail_uv_loop {
    trail_uv_thread thread;
    uv_prepare_t prepare;
    uv_check_t check;
    bool polls;
} trail_uv_loop;

/* Call before the first handle is made. Sets loop->data. */
int trail_uv_loop_begin(trail_uv_loop *traced, uv_loop_t *loop);
/* Call after the last uv_run. Runs the loop to close what the adapter added. */
void trail_uv_loop_end(trail_uv_loop *traced);

/* MARK: Handles */

/* Creates a goroutine that waits. */
void trail_uv_task_begin(uv_loop_t *loop, trail_uv_task *task, uintptr_t function);
/* Around a callback. */
void trail_uv_enter(uv_loop_t *loop, trail_uv_task *task);
void trail_uv_leave(uv_loop_t *loop, trail_uv_task *task);
/* Instead of trail_uv_leave: the goroutine ends. */
void trail_uv_leave_and_end(uv_loop_t *loop, trail_uv_task *task);

/* Each begins with the handle or request of libuv, to which callbacks receive a pointer. */
typedef struct trail_uv_timer {
    uv_timer_t handle;
    trail_uv_task task;
    uv_timer_cb callback;
    uv_close_cb closed;
} trail_uv_timer;

int trail_uv_timer_init(uv_loop_t *loop, trail_uv_timer *timer, uv_timer_cb callback);
int trail_uv_timer_start(trail_uv_timer *timer, uint64_t timeout_ms, uint64_t repeat_ms);
void trail_uv_timer_close(trail_uv_timer *timer, uv_close_cb closed);

typedef struct trail_uv_async {
    uv_async_t handle;
    trail_uv_task task;
    uv_async_cb callback;
    uv_close_cb closed;
} trail_uv_async;

int trail_uv_async_init(uv_loop_t *loop, trail_uv_async *async, uv_async_cb callback);
int trail_uv_async_send(trail_uv_async *async);
void trail_uv_async_close(trail_uv_async *async, uv_close_cb closed);

/* MARK: Work */

typedef struct trail_uv_work {
    uv_work_t request;
    trail_uv_task *task; /* outlives the request, which `after` may free */
    uv_work_cb work;
    uv_after_work_cb after;
} trail_uv_work;

int trail_uv_queue_work(uv_loop_t *loop, trail_uv_work *work, uv_work_cb function,
                        uv_after_work_cb after);

#endif
