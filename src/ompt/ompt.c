/*
 * libtrail-ompt.so, which LLVM's OpenMP library loads if OMP_TOOL_LIBRARIES names it. Its callbacks
 * are registered only if the process has a recorder; otherwise it costs nothing.
 *
 *   parallel region                a task "parallel: FUNCTION (FILE:LINE)", whose parent is the task that encountered it
 *   explicit task                  a task "task: FUNCTION (FILE:LINE)", whose parent is the task that created it
 *   implicit task, running of an   a region in that task, on the thread
 *   explicit one, work-sharing
 *   barrier, taskwait, taskgroup   a wait, ended by the thread that arrives last, or ends the last task
 *   critical, ordered, locks       a wait, ended by the thread that releases the lock
 *   worker without a region        a wait for work, ended by the thread that begins the next parallel region
 */
#include <dlfcn.h>
#include <string.h>

#include "ompt/state.h"

/* MARK: Threads */

static void thread_begin(int type, omp_data *data)
{
    (void)data;
    if (type == OMP_THREAD_WORKER)
        recorder->name_thread("OpenMP worker");
}

static void thread_end(omp_data *data)
{
    (void)data;
    thread_gone();
}

/* MARK: Parallel regions */

static void parallel_begin(omp_data *met_in, const void *frame, omp_data *parallel,
                           unsigned requested, int flags, const void *place)
{
    struct thread *thread = thread_here();
    const struct task *task = met_in ? met_in->ptr : NULL;
    struct team *team = thread ? team_new(thread, place) : NULL;
    (void)frame;
    (void)requested;
    parallel->ptr = team;
    if (!team)
        return;
    team->number = recorder->task_begin(task ? task->number : 0,
                                        flags & OMP_PARALLEL_LEAGUE ? "teams" : "parallel", place);
    recorder->let_in(SHM_OMP_WORK, &idle_since, __atomic_load_n(&idle_since, __ATOMIC_RELAXED),
                     place, false);
}

static void parallel_end(omp_data *parallel, omp_data *met_in, int flags, const void *place)
{
    struct thread *thread = thread_here();
    struct team *team = parallel ? parallel->ptr : NULL;
    (void)met_in;
    (void)flags;
    (void)place;
    if (!thread || !team)
        return;
    recorder->task_end(team->number);
    team_free(thread, team);
}

/* MARK: Implicit tasks */

static void implicit_begin(struct thread *thread, struct team *team, omp_data *data, unsigned size,
                           unsigned index, int flags)
{
    struct task *task = task_new(NULL, team);
    data->ptr = task;
    if (!task)
        return;
    if (flags & OMP_TASK_INITIAL || !team) {
        (void)frame_push(thread, task, NULL, NULL, false);
        return;
    }
    task->number = team->number;
    task->is_worker = index != 0;
    /* All threads of the team store the same value. */
    __atomic_store_n(&team->size, size, __ATOMIC_RELAXED);
    (void)frame_push(thread, task, "implicit task", team->place, index != 0);
}

/* For workers the end is reported only at the beginning of the next region. */
static void implicit_end(struct thread *thread, omp_data *data)
{
    struct task *task = data ? data->ptr : NULL;
    struct frame *frame = task ? frame_of(thread, task) : NULL;
    if (frame) {
        frame_pop_above(thread, frame);
        frame_wait_end(frame);
        frame_end_region(frame);
        thread->depth--;
    }
    if (task)
        task_ended(task);
    if (data)
        data->ptr = NULL;
}

static void implicit_task(int endpoint, omp_data *parallel, omp_data *data, unsigned size,
                          unsigned index, int flags)
{
    struct thread *thread = thread_here();
    if (!thread)
        return;
    if (endpoint == OMP_BEGIN)
        implicit_begin(thread, parallel ? parallel->ptr : NULL, data, size, index, flags);
    else
        implicit_end(thread, data);
}

/* MARK: Barriers */

/* Ends the barrier. At the end of the region its workers begin to wait for the next one. */
static void pass_barrier(struct team *team, const void *place, bool alone)
{
    bool ends = __atomic_load_n(&team->ends, __ATOMIC_RELAXED);
    uint64_t since = __atomic_exchange_n(&team->since, 0, __ATOMIC_RELAXED);
    /* Read by woken threads; stored again only after all have arrived at the next barrier. */
    __atomic_store_n(&team->last, recorder->number(), __ATOMIC_RELAXED);
    recorder->let_in(ends ? SHM_OMP_JOIN : SHM_OMP_BARRIER, team, since, place, alone);
}

/*
 * Counts an arrival. True: the thread is the last and no task is left; otherwise the barrier also
 * waits for the remaining tasks.
 */
static bool arrive(struct team *team, bool ends, const void *place, bool alone)
{
    unsigned size = __atomic_load_n(&team->size, __ATOMIC_RELAXED);
    if (ends)
        __atomic_store_n(&team->ends, 1, __ATOMIC_RELAXED);
    if (__atomic_add_fetch(&team->arrived, 1, __ATOMIC_ACQ_REL) % size != 0)
        return false;
    __atomic_store_n(&team->waits_for_tasks, 1, __ATOMIC_SEQ_CST);
    /*
     * Either this thread sees that no task is left, or the thread that ends the last task sees that
     * all have arrived.
     */
    if (__atomic_load_n(&team->tasks, __ATOMIC_SEQ_CST) != 0 ||
        !__atomic_exchange_n(&team->waits_for_tasks, 0, __ATOMIC_SEQ_CST))
        return false;
    pass_barrier(team, place, alone);
    return true;
}

static void team_task_ended(struct team *team, const void *place)
{
    if (__atomic_sub_fetch(&team->tasks, 1, __ATOMIC_SEQ_CST) == 0 &&
        __atomic_exchange_n(&team->waits_for_tasks, 0, __ATOMIC_SEQ_CST))
        pass_barrier(team, place, true);
}

/*
 * Whether it is the barrier at the end of a parallel region. Libraries without a kind for it report
 * no place in workers and the region's place in other threads.
 */
static bool is_end_of_region(int kind, const struct task *task, const void *place)
{
    return kind == OMP_SYNC_BARRIER_PARALLEL ||
           (kind == OMP_SYNC_BARRIER_IMPLICIT &&
            (place ? place == task->team->place : task->is_worker));
}

static void barrier_begin(struct thread *thread, const struct task *task, int kind,
                          const void *place)
{
    struct frame *frame = frame_of(thread, task);
    struct team *team = task->team;
    bool ends = is_end_of_region(kind, task, place);
    /* A worker has left the program's function by then. */
    bool is_worker = ends && task->is_worker, last;
    enum shm_wait wait = is_worker ? SHM_OMP_JOIN : SHM_OMP_BARRIER;
    uint64_t nobody = 0;
    if (!frame)
        return;
    /* The thread is no longer in a work-sharing region. */
    frame_pop_above(thread, frame);
    if (ends)
        frame_end_region(frame);
    if (ends)
        place = team->place;
    last = arrive(team, ends, place, is_worker);
    if (is_worker && last)
        wait = SHM_OMP_WORK;
    frame_wait_begin(frame, wait, team, place, is_worker);
    if (!last)
        (void)__atomic_compare_exchange_n(&team->since, &nobody, frame->wait.begin, false,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    if (is_worker)
        __atomic_store_n(&idle_since, frame->wait.begin, __ATOMIC_RELAXED);
}

static bool is_barrier(int kind)
{
    return (kind >= OMP_SYNC_BARRIER && kind <= OMP_SYNC_BARRIER_IMPLEMENTATION) ||
           (kind >= OMP_SYNC_BARRIER_WORKSHARE && kind <= OMP_SYNC_BARRIER_TEAMS);
}

static void tasks_begin(struct frame *frame, int kind, const void *place)
{
    struct task *task = frame->task;
    frame_wait_begin(frame, SHM_OMP_TASKS, task, place, false);
    __atomic_store_n(&task->since, frame->wait.begin, __ATOMIC_RELAXED);
    __atomic_store_n(&task->waits, kind == OMP_SYNC_TASKWAIT ? WAITS_FOR_CHILDREN : WAITS_FOR_ALL,
                     __ATOMIC_RELEASE);
}

static void sync_wait(int kind, int endpoint, omp_data *parallel, omp_data *data, const void *place)
{
    struct thread *thread = thread_here();
    struct task *task = data ? data->ptr : NULL;
    struct frame *frame = thread && task ? frame_within(thread, task) : NULL;
    (void)parallel;
    if (!frame)
        return;
    if (endpoint == OMP_END) {
        frame_wait_end(frame);
        __atomic_store_n(&task->waits, WAITS_NOT, __ATOMIC_RELAXED);
    } else if (endpoint == OMP_BEGIN && is_barrier(kind)) {
        if (task->team && __atomic_load_n(&task->team->size, __ATOMIC_RELAXED) > 1)
            barrier_begin(thread, task, kind, place);
    } else if (endpoint == OMP_BEGIN && (kind == OMP_SYNC_TASKWAIT || kind == OMP_SYNC_TASKGROUP)) {
        tasks_begin(frame, kind, place);
    }
}

/* MARK: Explicit tasks */

static void task_create(omp_data *creator, const void *frame, omp_data *data, int flags,
                        int has_dependences, const void *place)
{
    struct task *parent = creator ? creator->ptr : NULL, *task;
    (void)frame;
    (void)has_dependences;
    if (!data || (flags & (OMP_TASK_INITIAL | OMP_TASK_IMPLICIT)))
        return;
    task = task_new(parent, parent ? parent->team : NULL);
    data->ptr = task;
    if (!task)
        return;
    task->explicit = true;
    task->place = place;
    task->number = recorder->task_begin(parent ? parent->number : 0, "task", place);
    if (task->team)
        __atomic_fetch_add(&task->team->tasks, 1, __ATOMIC_SEQ_CST);
}

/* The thread resumes or begins the task `next`. */
static void go_on_with(struct thread *thread, struct task *next)
{
    struct frame *frame = frame_within(thread, next);
    if (frame) {
        frame_pop_above(thread, frame);
    } else if (next->explicit) {
        if (frame_top(thread))
            frame_wait_pause(frame_top(thread));
        (void)frame_push(thread, next, "explicit task", next->place, true);
    }
}

static void explicit_ended(struct thread *thread, struct task *task)
{
    struct team *team = task->team;
    const void *place = task->place;
    struct frame *frame = frame_of(thread, task);
    /* NULL if the thread only fulfilled the event of a detached task. */
    if (frame) {
        frame_pop_above(thread, frame);
        frame_end_region(frame);
        thread->depth--;
    }
    task_ended(task);
    if (team)
        team_task_ended(team, place);
}

static void task_schedule(omp_data *prior, int status, omp_data *next)
{
    struct thread *thread = thread_here();
    struct task *before = prior ? prior->ptr : NULL, *after = next ? next->ptr : NULL;
    if (!thread)
        return;
    if (before && before->explicit &&
        (status == OMP_TASK_COMPLETE || status == OMP_TASK_CANCEL ||
         status == OMP_TASK_LATE_FULFILL)) {
        explicit_ended(thread, before);
        prior->ptr = NULL;
    }
    if (after)
        go_on_with(thread, after);
    if (frame_top(thread))
        frame_wait_resume(frame_top(thread));
}

/* MARK: Work-sharing */

static const char *work_name(int kind)
{
    switch (kind) {
    case OMP_WORK_LOOP:
    case OMP_WORK_LOOP_STATIC:
    case OMP_WORK_LOOP_DYNAMIC:
    case OMP_WORK_LOOP_GUIDED:
    case OMP_WORK_LOOP_OTHER:
        return "loop";
    case OMP_WORK_SECTIONS:
        return "sections";
    case OMP_WORK_SINGLE:
        return "single";
    case OMP_WORK_WORKSHARE:
        return "workshare";
    case OMP_WORK_DISTRIBUTE:
        return "distribute";
    case OMP_WORK_TASKLOOP:
        return "taskloop";
    case OMP_WORK_SCOPE:
        return "scope";
    default:
        return NULL;
    }
}

static void part_begin(struct thread *thread, struct task *task, const char *name,
                       const void *place)
{
    struct frame *frame = frame_push(thread, task, name, place, false);
    if (frame)
        frame->is_work = true;
}

/* Ends the task's innermost part of this kind. */
static void part_end(struct thread *thread, const struct task *task, const char *name)
{
    for (unsigned i = thread->depth; i-- > 0;) {
        struct frame *frame = &thread->frames[i];
        if (frame->task != task || !frame->is_work)
            return;
        if (strcmp(frame->region, name) != 0)
            continue;
        frame_pop_above(thread, frame);
        frame_end_region(frame);
        thread->depth--;
        return;
    }
}

static void part(omp_data *data, int endpoint, const char *name, const void *place)
{
    struct thread *thread = thread_here();
    struct task *task = data ? data->ptr : NULL;
    if (!thread || !task || !name)
        return;
    if (endpoint == OMP_BEGIN)
        part_begin(thread, task, name, place);
    else if (endpoint == OMP_END)
        part_end(thread, task, name);
}

static void work(int kind, int endpoint, omp_data *parallel, omp_data *data, uint64_t count,
                 const void *place)
{
    (void)parallel;
    (void)count;
    part(data, endpoint, work_name(kind), place);
}

static void masked(int endpoint, omp_data *parallel, omp_data *data, const void *place)
{
    (void)parallel;
    part(data, endpoint, "masked", place);
}

/* MARK: Locks */

static enum shm_wait lock_kind(int kind)
{
    return kind == OMP_MUTEX_CRITICAL  ? SHM_OMP_CRITICAL
           : kind == OMP_MUTEX_ORDERED ? SHM_OMP_ORDERED
                                       : SHM_OMP_LOCK;
}

/*
 * Whether the call only tries to lock. A failed try is not reported, and libomp up to 14 does not
 * mark tries. So the function's name is looked up, once for each of the few places that report
 * locks.
 */
static bool is_try(uintptr_t pc)
{
    static uintptr_t known[16]; /* the place << 1 | whether it tries */
    uintptr_t *at = &known[pc / 4 % (sizeof known / sizeof known[0])];
    uintptr_t is = __atomic_load_n(at, __ATOMIC_RELAXED);
    Dl_info info;
    if (is >> 1 != pc) {
        is = pc << 1 | (dladdr((const void *)pc, &info) && info.dli_sname &&
                        strstr(info.dli_sname, "test_") != NULL);
        __atomic_store_n(at, is, __ATOMIC_RELAXED);
    }
    return is & 1;
}

static void mutex_acquire(int kind, unsigned hint, unsigned implementation, uint64_t object,
                          const void *place)
{
    struct thread *thread = thread_here();
    (void)hint;
    (void)implementation;
    if (!thread)
        return;
    thread->lock = (struct openmp_wait){
        .object = (const void *)(uintptr_t)object, .place = place, .wait = lock_kind(kind)};
    if (kind == OMP_MUTEX_TEST_LOCK || kind == OMP_MUTEX_TEST_NEST_LOCK ||
        is_try((uintptr_t)__builtin_return_address(0)))
        return;
    recorder->lock_wait(&thread->lock);
}

static void mutex_acquired(int kind, uint64_t object, const void *place)
{
    struct thread *thread = thread_here();
    struct openmp_hold hold;
    (void)kind;
    (void)object;
    (void)place;
    if (!thread)
        return;
    recorder->lock_got(&thread->lock, &hold);
    if (thread->held < MAX_HOLDS)
        thread->holds[thread->held++] = hold;
}

/* The thread already holds the lock. */
static void nest_lock(int endpoint, uint64_t object, const void *place)
{
    struct thread *thread = thread_here();
    (void)object;
    (void)place;
    if (thread && endpoint == OMP_BEGIN)
        recorder->lock_nested(&thread->lock);
}

static void lock_destroy(int kind, uint64_t object, const void *place)
{
    (void)kind;
    (void)place;
    recorder->lock_gone((const void *)(uintptr_t)object);
}

static void mutex_released(int kind, uint64_t object, const void *place)
{
    struct thread *thread = thread_here();
    if (!thread)
        return;
    for (unsigned i = thread->held; i-- > 0;) {
        struct openmp_hold hold = thread->holds[i];
        if (hold.object != (const void *)(uintptr_t)object)
            continue;
        memmove(&thread->holds[i], &thread->holds[i + 1],
                (--thread->held - i) * sizeof thread->holds[0]);
        recorder->lock_released(lock_kind(kind), &hold, place);
        return;
    }
}

/* MARK: Start */

static int initialize(omp_lookup lookup, int device, omp_data *tool)
{
    static const struct {
        enum omp_event event;
        omp_function callback;
    } callbacks[] = {
        {OMP_THREAD_BEGIN, (omp_function)thread_begin},
        {OMP_THREAD_END, (omp_function)thread_end},
        {OMP_PARALLEL_BEGIN, (omp_function)parallel_begin},
        {OMP_PARALLEL_END, (omp_function)parallel_end},
        {OMP_TASK_CREATE, (omp_function)task_create},
        {OMP_TASK_SCHEDULE, (omp_function)task_schedule},
        {OMP_IMPLICIT_TASK, (omp_function)implicit_task},
        {OMP_SYNC_REGION_WAIT, (omp_function)sync_wait},
        {OMP_WORK, (omp_function)work},
        {OMP_MASKED, (omp_function)masked},
        {OMP_MUTEX_ACQUIRE, (omp_function)mutex_acquire},
        {OMP_MUTEX_ACQUIRED, (omp_function)mutex_acquired},
        {OMP_MUTEX_RELEASED, (omp_function)mutex_released},
        {OMP_LOCK_DESTROY, (omp_function)lock_destroy},
        {OMP_NEST_LOCK, (omp_function)nest_lock},
    };
    omp_set_callback set = (omp_set_callback)lookup("ompt_set_callback");
    (void)device;
    (void)tool;
    if (!set)
        return 0;
    /* The library ignores callbacks that it does not support. */
    for (unsigned i = 0; i < sizeof callbacks / sizeof callbacks[0]; i++)
        (void)set((int)callbacks[i].event, callbacks[i].callback);
    return 1;
}

static void finalize(omp_data *tool)
{
    (void)tool;
}

__attribute__((visibility("default"))) struct omp_start *ompt_start_tool(unsigned version,
                                                                         const char *library);

/* Returns NULL to run the library without a tool. */
struct omp_start *ompt_start_tool(unsigned version, const char *library)
{
    static struct omp_start start = {initialize, finalize, {0}};
    const struct openmp_recorder *found = dlsym(RTLD_DEFAULT, OPENMP_SYMBOL);
    (void)version;
    (void)library;
    if (!found || found->version != OPENMP_VERSION || !found->is_recorded())
        return NULL;
    recorder = found;
    return &start;
}
