#include "import/threads.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "import/kernel_frames.h"

/* As trail record's: readers hold a generation in memory. */
#define GENERATION_BYTES (8u << 20)

/* Numbers for threads whose TID was used before. */
#define EXTRA (UINT64_C(1) << 32)

/* MARK: Making */

bool import_threads_init(struct import_threads *all, struct v2_writer *writer,
                         struct import_stats *stats)
{
    *all = (struct import_threads){.writer = writer, .stats = stats};
    all->used = calloc(IMPORT_TID_MAX / 8 + 1, 1);
    return all->used != NULL;
}

static void free_values(struct idmap *map)
{
    IDMAP_EACH(slot, map)
        free(slot->value);
    idmap_free(map);
}

void import_threads_dispose(struct import_threads *all)
{
    free_values(&all->threads);
    free_values(&all->names);
    idmap_free(&all->frames);
    free(all->cpus);
    free(all->used);
}

void import_thread_name(struct import_threads *all, int32_t tid, trail_string name)
{
    char *own = idmap_find(&all->names, (uint64_t)tid);
    size_t size = name.size < IMPORT_NAME_MAX - 1 ? name.size : IMPORT_NAME_MAX - 1;
    if (tid <= 0 || size == 0 || memchr(name.data, '\0', size))
        return;
    if (!own) {
        own = calloc(1, IMPORT_NAME_MAX);
        if (!own || !idmap_put(&all->names, (uint64_t)tid, own)) {
            free(own);
            all->failed = true;
            return;
        }
    }
    memcpy(own, name.data, size);
    own[size] = '\0';
}

void import_cpu_seen(struct import_threads *all, int32_t cpu)
{
    if (cpu < 0 || cpu > IMPORT_CPU_MAX || (size_t)cpu < all->cpu_count)
        return;
    if (!GROW(all->cpus, all->cpu_room, (size_t)cpu + 1)) {
        all->failed = true;
        return;
    }
    memset(all->cpus + all->cpu_count, 0, ((size_t)cpu + 1 - all->cpu_count) * sizeof *all->cpus);
    all->cpu_count = (size_t)cpu + 1;
}

/* MARK: Finding */

struct import_cpu *import_cpu_of(struct import_threads *all, int32_t cpu)
{
    import_cpu_seen(all, cpu);
    return cpu >= 0 && (size_t)cpu < all->cpu_count ? &all->cpus[cpu] : NULL;
}

int32_t import_free_cpu(const struct import_threads *all)
{
    size_t i = 0;
    while (i < all->cpu_count && all->cpus[i].running)
        i++;
    return (int32_t)i;
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
    struct import_thread *thread = idmap_find(&all->threads, (uint64_t)tid);
    if (thread || tid <= 0 || tid > IMPORT_TID_MAX)
        return thread;
    thread = calloc(1, sizeof *thread);
    if (!thread || !idmap_put(&all->threads, (uint64_t)tid, thread)) {
        free(thread);
        all->failed = true;
        return NULL;
    }
    *thread = (struct import_thread){.tid = tid, .cpu = IMPORT_NO_CPU};
    thread->g = thread->m = take_number(all, tid);
    return thread;
}

/* Forgets a thread that ends; its TID may be used again. */
static void forget(struct import_threads *all, struct import_thread *thread)
{
    (void)idmap_remove(&all->threads, (uint64_t)thread->tid);
    free(thread);
}

/* MARK: Events */

static void emit_at(struct import_threads *all, uint64_t m, int64_t ns, unsigned type,
                    unsigned count, const uint64_t *args)
{
    (void)v2_writer_event(all->writer, m, ns, type, count, args);
}

#define EMIT_AT(all, m, ns, type, ...)                                                             \
    do {                                                                                           \
        const uint64_t args_[] = {__VA_ARGS__};                                                    \
        emit_at(all, m, ns, type, sizeof args_ / sizeof args_[0], args_);                          \
    } while (0)

#define EMIT(all, m, type, ...) EMIT_AT(all, m, (all)->now_ns, type, __VA_ARGS__)

/* Of two threads, no events have the same time: Go's readers may then try one twice, and another never. */
static void tick(struct import_threads *all)
{
    all->now_ns++;
}

static void emit_status(struct import_threads *all, const struct import_thread *thread, uint64_t m,
                        int64_t ns)
{
    static const uint8_t statuses[] = {
        [IMPORT_READY] = V2_GO_RUNNABLE,
        [IMPORT_RUNNING] = V2_GO_RUNNING,
        [IMPORT_WAITING] = V2_GO_WAITING,
    };
    EMIT_AT(all, m, ns, V2_GoStatusStack, thread->g,
            thread->state == IMPORT_RUNNING ? thread->m : V2_NO_THREAD, statuses[thread->state],
            import_name_stack(all, thread));
}

/* MARK: Generations */

static void write_statuses(struct import_threads *all)
{
    for (size_t i = 0; i < all->cpu_count; i++) {
        struct import_cpu *cpu = &all->cpus[i];
        cpu->seq = 0;
        if (cpu->known)
            EMIT(all, cpu->running ? cpu->running->m : V2_NO_THREAD, V2_ProcStatus, i,
                 cpu->running ? V2_PROC_RUNNING : V2_PROC_IDLE);
    }
    IDMAP_EACH(slot, &all->threads) {
        struct import_thread *thread = slot->value;
        if (thread->state == IMPORT_ABSENT)
            continue;
        thread->seq = 0;
        emit_status(all, thread, thread->state == IMPORT_RUNNING ? thread->m : V2_NO_THREAD,
                    all->now_ns);
    }
    tick(all);
}

static void next_generation(struct import_threads *all)
{
    if (all->generation++ > 0)
        (void)v2_writer_end(all->writer);
    import_frames_forget(all);
    all->begin_ns = all->now_ns;
    (void)v2_writer_begin(all->writer, all->now_ns, all->now_ns);
    v2_writer_maker(all->writer, &(trail_maker){.made_by = TRAIL_MADE_BY_IMPORT});
    write_statuses(all);
    all->begin_bytes = v2_writer_bytes(all->writer);
}

void import_threads_at(struct import_threads *all, int64_t ns)
{
    all->now_ns = ns > all->now_ns ? ns : all->now_ns + 1;
    if (all->generation == 0 || v2_writer_bytes(all->writer) - all->begin_bytes >= GENERATION_BYTES)
        next_generation(all);
}

/* MARK: CPUs */

/* The trace's first event of the CPU, which is idle; `m` has no events before `ns`. */
static void announce_cpu(struct import_threads *all, int32_t number, uint64_t m, int64_t ns)
{
    struct import_cpu *cpu = &all->cpus[number];
    if (!cpu->known)
        EMIT_AT(all, m, ns, V2_ProcStatus, (uint64_t)number, V2_PROC_IDLE);
    cpu->known = true;
}

/* Writes how many CPUs there are, whenever there are more. */
static void announce_count(struct import_threads *all, const struct import_thread *thread)
{
    if (all->announced < all->cpu_count)
        EMIT(all, thread->m, V2_ProcsChange, all->cpu_count, 0);
    all->announced = all->cpu_count;
}

static void take_cpu(struct import_threads *all, struct import_thread *thread, int32_t number)
{
    struct import_cpu *cpu = &all->cpus[number];
    announce_cpu(all, number, thread->m, all->now_ns);
    EMIT(all, thread->m, V2_ProcStart, (uint64_t)number, ++cpu->seq);
    cpu->running = thread;
    thread->cpu = number;
}

static void give_cpu(struct import_threads *all, struct import_thread *thread)
{
    emit_at(all, thread->m, all->now_ns, V2_ProcStop, 0, NULL);
    all->cpus[thread->cpu].running = NULL;
    thread->cpu = IMPORT_NO_CPU;
}

/* MARK: Threads that were there before */

static bool is_there_already(const struct import_threads *all, const struct import_thread *thread)
{
    return thread->state == IMPORT_ABSENT && !thread->born && all->generation == 1;
}

static void declare(struct import_threads *all, struct import_thread *thread,
                    enum import_state state)
{
    thread->state = (uint8_t)state;
    emit_status(all, thread, thread->m, all->begin_ns);
    all->stats->threads++;
}

static void declare_running(struct import_threads *all, struct import_thread *thread,
                            int32_t number)
{
    struct import_cpu *cpu = &all->cpus[number];
    EMIT_AT(all, thread->m, all->begin_ns, V2_ProcStatus, (uint64_t)number, V2_PROC_RUNNING);
    cpu->known = true;
    cpu->running = thread;
    thread->cpu = number;
    declare(all, thread, IMPORT_RUNNING);
    if (all->now_ns == all->begin_ns)
        tick(all);
    announce_count(all, thread);
}

/* MARK: States */

/* The log in front of a wait. */
static void say_wait(struct import_threads *all, const struct import_thread *thread,
                     const char *words)
{
    EMIT(all, thread->m, V2_UserLog, 0, import_text(all, "wait"), import_text(all, words), 0);
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
        emit_at(all, thread->m, all->now_ns, V2_GoDestroy, 0, NULL);
        give_cpu(all, thread);
        forget(all, thread);
        return;
    }
    bool ready = left == IMPORT_PREEMPTED;
    const struct import_wait *wait = ready ? NULL : import_wait_of(stack);
    const char *reason =
        wait && strcmp(wait->reason, "syscall") != 0 ? wait->reason : reasons[left];
    if (wait && strcmp(wait->reason, "sleep") != 0)
        say_wait(all, thread, wait->words);
    EMIT(all, thread->m, ready ? V2_GoStop : V2_GoBlock, import_text(all, reason),
         import_stack_id(all, stack));
    give_cpu(all, thread);
    thread->state = ready ? IMPORT_READY : IMPORT_WAITING;
}

void import_thread_wait(struct import_threads *all, struct import_thread *thread, const char *words)
{
    if (thread->state != IMPORT_RUNNING)
        return;
    say_wait(all, thread, words);
    EMIT(all, thread->m, V2_GoBlock, import_text(all, "sync"), 0);
    give_cpu(all, thread);
    thread->state = IMPORT_WAITING;
}

/* What a thread does that the recording shows elsewhere next is not known. */
static void displace(struct import_threads *all, struct import_thread *thread)
{
    all->stats->corrected++;
    if (thread->exiting) {
        import_thread_leave(all, thread, IMPORT_ENDED, NULL);
    } else {
        EMIT(all, thread->m, V2_GoBlock, 0, 0);
        give_cpu(all, thread);
        thread->state = IMPORT_WAITING;
    }
    tick(all);
}

void import_thread_wake(struct import_threads *all, struct import_thread *waker,
                        struct import_thread *thread, const struct import_stack *stack)
{
    bool by_thread = waker && waker != thread && waker->state == IMPORT_RUNNING;
    if (is_there_already(all, thread)) {
        declare(all, thread, IMPORT_WAITING);
        if (all->now_ns == all->begin_ns)
            tick(all);
    }
    if (thread->state != IMPORT_WAITING)
        return;
    EMIT(all, by_thread ? waker->m : V2_NO_THREAD, V2_GoUnblock, thread->g, ++thread->seq,
         import_stack_id(all, stack));
    thread->state = IMPORT_READY;
    all->stats->wakeups_by_thread += by_thread;
}

/* Brings a thread into the trace that runs next. */
static void appear(struct import_threads *all, struct import_thread *thread, int32_t number)
{
    if (is_there_already(all, thread)) {
        announce_cpu(all, number, thread->m, all->begin_ns);
        /* Of a whole machine its wake-up would be recorded: it was ready before. */
        declare(all, thread, all->complete ? IMPORT_READY : IMPORT_WAITING);
        if (all->now_ns == all->begin_ns)
            tick(all);
        return;
    }
    take_cpu(all, thread, number);
    EMIT(all, thread->m, V2_GoCreate, thread->g, import_name_stack(all, thread), 0);
    thread->state = IMPORT_READY;
    all->stats->threads++;
}

void import_thread_run(struct import_threads *all, struct import_thread *thread, int32_t number)
{
    struct import_cpu *cpu = import_cpu_of(all, number);
    if (!cpu || (thread->state == IMPORT_RUNNING && thread->cpu == number))
        return;
    if (thread->state == IMPORT_RUNNING) {
        thread->exiting = false; /* another thread has its TID, or it was recorded too late */
        displace(all, thread);
    }
    if (cpu->running)
        displace(all, cpu->running);
    thread->waker = 0;
    if (thread->state == IMPORT_ABSENT)
        appear(all, thread, number);
    if (thread->state == IMPORT_WAITING) {
        import_thread_wake(all, NULL, thread, NULL);
        tick(all);
    }
    if (thread->cpu < 0)
        take_cpu(all, thread, number);
    EMIT(all, thread->m, V2_GoStart, thread->g, ++thread->seq);
    thread->state = IMPORT_RUNNING;
    announce_count(all, thread);
}

void import_thread_is_on(struct import_threads *all, struct import_thread *thread, int32_t number)
{
    struct import_cpu *cpu = import_cpu_of(all, number);
    if (!cpu || (thread->state == IMPORT_RUNNING && thread->cpu == number))
        return;
    if (is_there_already(all, thread) && !cpu->known) {
        declare_running(all, thread, number);
        return;
    }
    all->stats->corrected += !cpu->running && thread->state != IMPORT_RUNNING;
    import_thread_run(all, thread, number);
    tick(all);
}

void import_cpu_is_idle(struct import_threads *all, int32_t number)
{
    struct import_cpu *cpu = import_cpu_of(all, number);
    if (cpu && cpu->running)
        displace(all, cpu->running);
    if (cpu)
        announce_cpu(all, number, V2_NO_THREAD, all->now_ns);
}

void import_thread_begin(struct import_threads *all, struct import_thread *parent, int32_t tid,
                         const struct import_stack *stack)
{
    struct import_thread *former = idmap_find(&all->threads, (uint64_t)tid), *thread;
    if (former && (former == parent || former->state == IMPORT_RUNNING))
        return;
    if (former)
        forget(all, former);
    thread = import_thread_of(all, tid);
    if (!thread)
        return;
    thread->born = true;
    if (!parent || parent->state != IMPORT_RUNNING)
        return;
    EMIT(all, parent->m, V2_GoCreate, thread->g, import_name_stack(all, thread),
         import_stack_id(all, stack));
    thread->state = IMPORT_READY;
    all->stats->threads++;
}

void import_thread_event(struct import_threads *all, struct import_thread *thread, unsigned type,
                         unsigned count, const uint64_t *args)
{
    if (thread->state == IMPORT_RUNNING)
        emit_at(all, thread->m, all->now_ns, type, count, args);
}
