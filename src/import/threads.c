/* Changes the states of threads and CPUs, each with its event: see threads.h. */
#include "import/threads.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "import/kernel_frames.h"

/* Numbers for threads whose TID has been used before. */
#define EXTRA (UINT64_C(1) << 32)

/* MARK: Making */

bool import_threads_init(struct import_threads *all, struct v2_writer *writer,
                         struct import_stats *stats)
{
    *all = (struct import_threads){.stats = stats,
                                   .threads = OBJECTS_OF(struct import_thread),
                                   .names = OBJECTS_OF(char[IMPORT_NAME_MAX])};
    all->out.out = writer;
    all->used = calloc(IMPORT_TID_MAX / 8 + 1, 1);
    return all->used != NULL;
}

void import_threads_dispose(struct import_threads *all)
{
    objects_free(&all->threads);
    objects_free(&all->names);
    idmap_free(&all->frames);
    thread_writer_dispose(&all->out);
    free(all->cpus);
    free(all->used);
}

void import_thread_name(struct import_threads *all, int32_t tid, trail_string name)
{
    size_t size = name.size < IMPORT_NAME_MAX - 1 ? name.size : IMPORT_NAME_MAX - 1;
    if (tid <= 0 || size == 0 || memchr(name.data, '\0', size))
        return;
    char *own = objects_get(&all->names, (uint64_t)tid);
    if (!own) {
        all->failed = true;
        return;
    }
    memcpy(own, name.data, size);
    own[size] = '\0';
}

/* Notes that a CPU with this number exists. */
static void import_cpu_seen(struct import_threads *all, int32_t cpu)
{
    size_t known = all->out.p_count, count = (size_t)cpu + 1;
    if (cpu < 0 || cpu > IMPORT_CPU_MAX || count <= known)
        return;
    if (!GROW(all->cpus, all->cpu_room, count) || !thread_writer_add_ps(&all->out, count)) {
        all->failed = true;
        return;
    }
    memset(all->cpus + known, 0, (count - known) * sizeof *all->cpus);
}

/* MARK: Finding */

struct import_cpu *import_cpu_of(struct import_threads *all, int32_t cpu)
{
    import_cpu_seen(all, cpu);
    return cpu >= 0 && (size_t)cpu < all->out.p_count ? &all->cpus[cpu] : NULL;
}

static uint64_t take_number(struct import_threads *all, int32_t tid)
{
    uint8_t *byte = &all->used[tid / 8], bit = (uint8_t)(1u << tid % 8);
    bool used = *byte & bit;
    *byte |= bit;
    return used ? EXTRA + ++all->extra : (uint64_t)tid;
}

struct import_thread *import_thread_of(struct import_threads *all, int32_t tid)
{
    struct import_thread *thread = objects_find(&all->threads, (uint64_t)tid);
    if (thread || tid <= 0 || tid > IMPORT_TID_MAX)
        return thread;
    thread = objects_get(&all->threads, (uint64_t)tid);
    if (!thread) {
        all->failed = true;
        return NULL;
    }
    uint64_t number = take_number(all, tid);
    *thread = (struct import_thread){.tid = tid, .written = {.g = number, .m = number, .p = -1}};
    return thread;
}

/* MARK: Events */

#define EMIT(all, m, type, ...) THREAD_EVENT(&(all)->out, m, (all)->out.now_ns, type, __VA_ARGS__)

static void emit_status(struct import_threads *all, struct import_thread *thread, uint64_t on,
                        int64_t ns)
{
    static const uint8_t statuses[] = {
        [IMPORT_READY] = V2_GO_RUNNABLE,
        [IMPORT_RUNNING] = V2_GO_RUNNING,
        [IMPORT_WAITING] = V2_GO_WAITING,
    };
    thread_writer_status(&all->out, on, &thread->written, ns, statuses[thread->state],
                         import_name_stack(all, thread));
}

static void next_generation(struct import_threads *all)
{
    struct thread_writer *out = &all->out;
    import_frames_forget(all);
    thread_writer_end(out);
    thread_writer_begin(out, out->now_ns, &(trail_maker){.made_by = TRAIL_MADE_BY_IMPORT});
    thread_writer_ps(out);
    IDMAP_VALUES(struct import_thread, thread, &all->threads.map) {
        if (thread->state != IMPORT_ABSENT)
            emit_status(all, thread,
                        thread->state == IMPORT_RUNNING ? thread->written.m : V2_NO_THREAD,
                        out->now_ns);
    }
    thread_writer_begun(out);
}

void import_threads_at(struct import_threads *all, int64_t ns)
{
    (void)thread_writer_at(&all->out, ns);
    if (all->out.generation == 0 || thread_writer_is_full(&all->out))
        next_generation(all);
}

/* MARK: CPUs */

/* Writes the number of CPUs whenever there are more. */
static void announce_count(struct import_threads *all, const struct import_thread *thread)
{
    if (all->announced < all->out.p_count)
        EMIT(all, thread->written.m, V2_ProcsChange, all->out.p_count, 0);
    all->announced = all->out.p_count;
}

static void take_cpu(struct import_threads *all, struct import_thread *thread, int32_t number)
{
    thread_writer_take_p(&all->out, &thread->written, (size_t)number, all->out.now_ns);
}

static void give_cpu(struct import_threads *all, struct import_thread *thread)
{
    thread_writer_give_p(&all->out, &thread->written, all->out.now_ns);
}

/* MARK: Threads that were there before */

static bool is_there_already(const struct import_threads *all, const struct import_thread *thread)
{
    return thread->state == IMPORT_ABSENT && !thread->born && all->out.generation == 1;
}

/*
 * Writes the thread's status at the start of the generation, on its own M, which has no events yet.
 */
static void declare(struct import_threads *all, struct import_thread *thread,
                    enum import_state state)
{
    thread->state = (uint8_t)state;
    emit_status(all, thread, thread->written.m, all->out.begin_ns);
    all->stats->threads++;
    if (all->out.now_ns == all->out.begin_ns)
        (void)thread_writer_tick(&all->out);
}

static void declare_running(struct import_threads *all, struct import_thread *thread,
                            int32_t number)
{
    struct written_p *p = &all->out.ps[number];
    THREAD_EVENT(&all->out, thread->written.m, all->out.begin_ns, V2_ProcStatus, (uint64_t)number,
                 V2_PROC_RUNNING);
    *p = (struct written_p){.known = true, .running = &thread->written};
    thread->written.p = number;
    declare(all, thread, IMPORT_RUNNING);
    announce_count(all, thread);
}

/* MARK: States */

/* Writes the log before a wait. */
static void log_wait(struct import_threads *all, const struct import_thread *thread,
                     const char *words)
{
    EMIT(all, thread->written.m, V2_UserLog, 0, import_text(all, "wait"), import_text(all, words),
         0);
}

void import_thread_leave(struct import_threads *all, struct import_thread *thread,
                         enum import_left left, const struct import_stack *stack)
{
    static const char *const reasons[] = {
        [IMPORT_PREEMPTED] = "preempted",
        [IMPORT_SLEEPING] = "kernel",
        [IMPORT_BLOCKED] = "kernel, uninterruptible",
        [IMPORT_STOPPED] = "stopped",
        [IMPORT_PAUSED] = "",
    };
    if (thread->state != IMPORT_RUNNING)
        return;
    if (left == IMPORT_ENDED || thread->exiting) {
        (void)v2_writer_event(all->out.out, thread->written.m, all->out.now_ns, V2_GoDestroy, 0,
                              NULL);
        give_cpu(all, thread);
        objects_drop(&all->threads, (uint64_t)thread->tid); /* its TID may be reused */
        return;
    }
    bool ready = left == IMPORT_PREEMPTED;
    const struct import_wait *wait = ready ? NULL : import_wait_of(stack);
    const char *reason =
        wait && strcmp(wait->reason, "syscall") != 0 ? wait->reason : reasons[left];
    if (wait && strcmp(wait->reason, "sleep") != 0)
        log_wait(all, thread, wait->words);
    EMIT(all, thread->written.m, ready ? V2_GoStop : V2_GoBlock, import_text(all, reason),
         import_stack_id(all, stack));
    give_cpu(all, thread);
    thread->state = ready ? IMPORT_READY : IMPORT_WAITING;
}

void import_thread_wait(struct import_threads *all, struct import_thread *thread, const char *words)
{
    if (thread->state != IMPORT_RUNNING)
        return;
    log_wait(all, thread, words);
    EMIT(all, thread->written.m, V2_GoBlock, import_text(all, "sync"), 0);
    give_cpu(all, thread);
    thread->state = IMPORT_WAITING;
}

/* A thread that the recording next shows elsewhere: what it does until then is not known. */
static void displace(struct import_threads *all, struct import_thread *thread)
{
    all->stats->corrected++;
    if (thread->exiting) {
        import_thread_leave(all, thread, IMPORT_ENDED, NULL);
    } else {
        EMIT(all, thread->written.m, V2_GoBlock, 0, 0);
        give_cpu(all, thread);
        thread->state = IMPORT_WAITING;
    }
    (void)thread_writer_tick(&all->out);
}

void import_thread_wake(struct import_threads *all, struct import_thread *waker,
                        struct import_thread *thread, const struct import_stack *stack)
{
    bool by_thread = waker && waker != thread && waker->state == IMPORT_RUNNING;
    if (is_there_already(all, thread)) {
        declare(all, thread, IMPORT_WAITING);
    }
    if (thread->state != IMPORT_WAITING)
        return;
    thread_writer_unblock(&all->out, by_thread ? waker->written.m : V2_NO_THREAD, &thread->written,
                          all->out.now_ns, import_stack_id(all, stack));
    thread->state = IMPORT_READY;
    all->stats->wakeups_by_thread += by_thread;
}

/* Brings a thread that runs next into the trace. */
static void appear(struct import_threads *all, struct import_thread *thread, int32_t number)
{
    if (is_there_already(all, thread)) {
        thread_writer_show_p(&all->out, (size_t)number, thread->written.m, all->out.begin_ns);
        /* A recording of the whole machine would contain its wake-up, so it was already ready. */
        declare(all, thread, all->complete ? IMPORT_READY : IMPORT_WAITING);
        return;
    }
    take_cpu(all, thread, number);
    EMIT(all, thread->written.m, V2_GoCreate, thread->written.g, import_name_stack(all, thread), 0);
    thread->state = IMPORT_READY;
    all->stats->threads++;
}

void import_thread_run(struct import_threads *all, struct import_thread *thread, int32_t number)
{
    struct import_cpu *cpu = import_cpu_of(all, number);
    if (!cpu || (thread->state == IMPORT_RUNNING && thread->written.p == number))
        return;
    if (thread->state == IMPORT_RUNNING) {
        thread->exiting = false; /* another thread has its TID, or the exit was recorded too late */
        displace(all, thread);
    }
    if (import_running(all, number))
        displace(all, import_running(all, number));
    thread->waker = 0;
    if (thread->state == IMPORT_ABSENT)
        appear(all, thread, number);
    if (thread->state == IMPORT_WAITING) {
        import_thread_wake(all, NULL, thread, NULL);
        (void)thread_writer_tick(&all->out);
    }
    if (thread->written.p < 0)
        take_cpu(all, thread, number);
    thread_writer_start(&all->out, &thread->written, all->out.now_ns);
    thread->state = IMPORT_RUNNING;
    announce_count(all, thread);
}

void import_thread_is_on(struct import_threads *all, struct import_thread *thread, int32_t number)
{
    struct import_cpu *cpu = import_cpu_of(all, number);
    if (!cpu || (thread->state == IMPORT_RUNNING && thread->written.p == number))
        return;
    if (is_there_already(all, thread) && !all->out.ps[number].known) {
        declare_running(all, thread, number);
        return;
    }
    all->stats->corrected += !import_running(all, number) && thread->state != IMPORT_RUNNING;
    import_thread_run(all, thread, number);
    (void)thread_writer_tick(&all->out);
}

void import_cpu_is_idle(struct import_threads *all, int32_t number)
{
    struct import_cpu *cpu = import_cpu_of(all, number);
    if (cpu && import_running(all, number))
        displace(all, import_running(all, number));
    if (cpu)
        thread_writer_show_p(&all->out, (size_t)number, V2_NO_THREAD, all->out.now_ns);
}

void import_thread_begin(struct import_threads *all, struct import_thread *parent, int32_t tid,
                         const struct import_stack *stack)
{
    struct import_thread *former = objects_find(&all->threads, (uint64_t)tid), *thread;
    if (former && (former == parent || former->state == IMPORT_RUNNING))
        return;
    if (former)
        objects_drop(&all->threads, (uint64_t)former->tid); /* its TID may be reused */
    thread = import_thread_of(all, tid);
    if (!thread)
        return;
    thread->born = true;
    if (!parent || parent->state != IMPORT_RUNNING)
        return;
    EMIT(all, parent->written.m, V2_GoCreate, thread->written.g, import_name_stack(all, thread),
         import_stack_id(all, stack));
    thread->state = IMPORT_READY;
    all->stats->threads++;
}

void import_thread_event(struct import_threads *all, struct import_thread *thread, unsigned type,
                         unsigned count, const uint64_t *args)
{
    if (thread->state == IMPORT_RUNNING)
        (void)v2_writer_event(all->out.out, thread->written.m, all->out.now_ns, type, count, args);
}
