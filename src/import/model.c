/* Interprets the events of a recording, and changes the states of threads accordingly. */
#include "import/model.h"

#include "import/kernel_frames.h"
#include "wire/waits.h"

/* Returns the thread in whose context an event happened; NULL: the idle task, or not known. */
static struct import_thread *context_of(struct import_threads *all, const struct import_event *e)
{
    struct import_cpu *cpu = import_cpu_of(all, e->cpu);
    struct import_thread *thread;
    if (e->tid == IMPORT_TID_OF_CPU && cpu && !all->out.ps[e->cpu].known && cpu->first > 0) {
        /*
         * Nothing has shown yet which one: the first thread to leave the CPU has been there from
         * the start.
         */
        thread = import_thread_of(all, cpu->first);
        if (thread)
            import_thread_is_on(all, thread, e->cpu);
    }
    if (e->tid == IMPORT_TID_OF_CPU)
        return cpu ? import_running(all, e->cpu) : NULL;
    if (e->tid == 0) {
        import_cpu_is_idle(all, e->cpu);
        return NULL;
    }
    thread = import_thread_of(all, e->tid);
    if (thread && cpu)
        import_thread_is_on(all, thread, e->cpu);
    return thread;
}

static void do_switch(struct import_threads *all, const struct import_event *e)
{
    struct import_thread *from = context_of(all, e);
    struct import_thread *to = import_thread_of(all, e->other);
    if (from && from == to)
        return;
    if (from)
        import_thread_leave(all, from, e->left, e->stack);
    (void)thread_writer_tick(&all->out);
    if (to)
        import_thread_run(all, to, e->cpu);
}

/* Returns the thread that wakes another; an interrupt handler is not a thread. */
static struct import_thread *waker_of(struct import_threads *all, const struct import_event *e)
{
    const struct import_cpu *cpu;
    struct import_thread *waker = context_of(all, e);
    cpu = import_cpu_of(all, e->cpu);
    return e->in_interrupt || (cpu && cpu->interrupts > 0) || import_is_in_interrupt(e->stack)
               ? NULL
               : waker;
}

/*
 * A thread may be woken after it has decided to sleep but before it has left its CPU: it is then
 * ready as soon as it leaves. Until then the wake-up is kept.
 */
static void do_waking(struct import_threads *all, const struct import_event *e)
{
    struct import_thread *waker = waker_of(all, e), *thread = import_thread_of(all, e->other);
    if (!thread)
        return;
    all->stats->wakeups += thread->state == IMPORT_WAITING || thread->state == IMPORT_ABSENT;
    if (thread->state == IMPORT_RUNNING)
        thread->waker = waker ? waker->tid : 0;
    else
        import_thread_wake(all, waker, thread, e->stack);
}

/* With an IPI, sched_wakeup is in the context of whatever ran on the target's CPU: sched_waking is
 * more accurate. */
static void do_wakeup(struct import_model *model, const struct import_event *e)
{
    struct import_threads *all = &model->threads;
    struct import_thread *waker = waker_of(all, e), *thread = import_thread_of(all, e->other);
    if (!thread)
        return;
    if (model->has_waking)
        waker = thread->waker ? objects_find(&all->threads, (uint64_t)thread->waker) : NULL;
    thread->waker = 0;
    all->stats->wakeups += thread->state == IMPORT_WAITING || thread->state == IMPORT_ABSENT;
    import_thread_wake(all, waker, thread, model->has_waking ? NULL : e->stack);
}

static void do_started(struct import_threads *all, const struct import_event *e)
{
    struct import_thread *parent = waker_of(all, e), *thread = import_thread_of(all, e->other);
    if (thread && thread->state == IMPORT_ABSENT && !thread->born)
        import_thread_begin(all, parent, e->other, e->stack);
}

static void do_interrupt(struct import_threads *all, const struct import_event *e)
{
    struct import_cpu *cpu = import_cpu_of(all, e->cpu);
    if (cpu && e->kind == IMPORT_INTERRUPT)
        cpu->interrupts++;
    else if (cpu && cpu->interrupts > 0)
        cpu->interrupts--;
}

/* Ends of interrupts may be missing. */
static void do_lost(struct import_threads *all, const struct import_event *e)
{
    struct import_cpu *cpu = import_cpu_of(all, e->cpu);
    if (cpu)
        cpu->interrupts = 0;
}

static void do_region(struct import_threads *all, struct import_thread *thread,
                      const struct import_event *e)
{
    bool begin = e->kind == IMPORT_REGION_BEGIN;
    const uint64_t args[] = {TRAIL_BACKGROUND_TASK, import_text(all, e->text ? e->text : ""), 0};
    import_thread_event(all, thread, begin ? V2_UserRegionBegin : V2_UserRegionEnd, 3, args);
}

static void do_task(struct import_threads *all, struct import_thread *thread,
                    const struct import_event *e)
{
    const uint64_t begin[] = {e->number, TRAIL_BACKGROUND_TASK,
                              import_text(all, e->text ? e->text : ""), 0};
    const uint64_t end[] = {e->number, 0};
    if (e->kind == IMPORT_TASK_BEGIN)
        import_thread_event(all, thread, V2_UserTaskBegin, 4, begin);
    else
        import_thread_event(all, thread, V2_UserTaskEnd, 2, end);
}

static void do_log(struct import_threads *all, struct import_thread *thread,
                   const struct import_event *e)
{
    uint64_t category = e->kind == IMPORT_HELD ? import_text(all, WIRE_HELD_CATEGORY) : 0;
    const uint64_t args[] = {TRAIL_BACKGROUND_TASK, category,
                             import_text(all, e->text ? e->text : ""), 0};
    import_thread_event(all, thread, V2_UserLog, 4, args);
}

/* Handles events of programs, which have no CPUs: a thread that acts gets a slot for it. */
static void do_span(struct import_threads *all, const struct import_event *e)
{
    struct import_thread *thread = import_thread_of(all, e->tid);
    if (!thread)
        return;
    bool runs = thread->state == IMPORT_RUNNING, ready = thread->state == IMPORT_READY;
    if (e->kind != IMPORT_PAUSE && !runs)
        import_thread_run(all, thread, (int32_t)thread_writer_free_p(&all->out));
    if (e->kind == IMPORT_REGION_BEGIN || e->kind == IMPORT_REGION_END)
        do_region(all, thread, e);
    else if (e->kind == IMPORT_TASK_BEGIN || e->kind == IMPORT_TASK_END)
        do_task(all, thread, e);
    else if (e->kind == IMPORT_LOG || e->kind == IMPORT_HELD)
        do_log(all, thread, e);
    if (e->kind == IMPORT_PAUSE && e->text)
        import_thread_wait(all, thread, e->text);
    else if (e->kind == IMPORT_PAUSE || (!runs && e->kind != IMPORT_RUN))
        import_thread_leave(all, thread, ready ? IMPORT_PREEMPTED : IMPORT_PAUSED, NULL);
}

static void do_event(struct import_model *model, const struct import_event *e)
{
    struct import_threads *all = &model->threads;
    struct import_thread *thread;
    import_threads_at(all, e->time_ns);
    switch ((enum import_kind)e->kind) {
    case IMPORT_SWITCH:
        do_switch(all, e);
        break;
    case IMPORT_WAKING:
        do_waking(all, e);
        break;
    case IMPORT_WAKEUP:
        do_wakeup(model, e);
        break;
    case IMPORT_FORK:
        thread = context_of(all, e);
        import_thread_begin(all, thread, e->other, e->stack);
        break;
    case IMPORT_STARTED:
        do_started(all, e);
        break;
    case IMPORT_EXIT:
        thread = context_of(all, e);
        if (thread)
            thread->exiting = true;
        break;
    case IMPORT_INTERRUPT:
    case IMPORT_RESUME:
        do_interrupt(all, e);
        break;
    case IMPORT_LOST:
        do_lost(all, e);
        break;
    case IMPORT_RUN:
    case IMPORT_PAUSE:
    case IMPORT_REGION_BEGIN:
    case IMPORT_REGION_END:
    case IMPORT_TASK_BEGIN:
    case IMPORT_TASK_END:
    case IMPORT_LOG:
    case IMPORT_HELD:
        do_span(all, e);
        break;
    }
}

static void do_next(struct import_model *model)
{
    struct import_event event;
    if (import_window_take(&model->window, &event)) {
        do_event(model, &event);
        import_event_free(&event);
    }
}

bool import_model_put(struct import_model *model, const struct import_event *event)
{
    if (model->progress)
        model->progress(model->progress_context);
    model->has_waking |= event->kind == IMPORT_WAKING;
    model->threads.complete |= event->tid == 0 && event->cpu >= 0;
    struct import_cpu *cpu = import_cpu_of(&model->threads, event->cpu);
    if (cpu && event->tid >= 0 && !cpu->has_first) {
        cpu->has_first = true;
        cpu->first = event->tid;
    }
    if (import_window_is_full(&model->window))
        do_next(model);
    return import_window_put(&model->window, event) && !model->threads.failed;
}

bool import_model_end(struct import_model *model)
{
    while (model->window.count > 0 && !model->threads.failed)
        do_next(model);
    return !model->threads.failed;
}
