/*
 * Calls from threads that run no goroutine on a P: in a system call, with the P lost or kept,
 * between goroutines, without a P, not announced. The start of a v1 trace, which holds all threads.
 * Empty generations.
 *
 *     test_contexts write FORMAT PATH     writes the trace of `story`, for other readers
 *     test_contexts quiet FORMAT PATH     one with generations in which nothing happens
 */

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "one_thread.h"
#include "trace.h"

static trail_g listed[4];

static void each_goroutine(void *context, void (*visit)(trail_g *g, void *arg), void *arg)
{
    (void)context;
    for (size_t i = 0; i < sizeof listed / sizeof *listed; i++)
        visit(&listed[i], arg);
}

static void init_goroutines(void)
{
    for (size_t i = 0; i < sizeof listed / sizeof *listed; i++)
        trail_g_init(&listed[i]);
}

/* MARK: The story: one thread in every situation, and what it does in each */

/* `where` is in the log, and in the names of the region and the task. */
static void annotate(const char *where)
{
    uint64_t task = trail_task_begin(0, where);
    trail_region_begin(task, where);
    trail_log(task, "where", where);
    trail_region_end(task, where);
    {
        TRAIL_REGION("scope");
    }
    trail_task_end(task);
}

struct situation {
    const char *name;
    void (*enter)(void);
    bool runs; /* listed[0] is the current goroutine, whether in a system call or not */
};

static void lose_proc(void)
{
    trail_proc_stop(&m);
}

static void take_proc(void)
{
    trail_proc_start(&m, &p);
}

static void run(void)
{
    trail_go_start(&m, &listed[0]);
}

static void enter_call(void)
{
    trail_syscall_enter(&m, 0);
}

static void leave_call(void)
{
    trail_syscall_exit(&m);
}

static void leave_blocked(void)
{
    trail_syscall_exit_blocked(&m);
}

static void end_first(void)
{
    trail_go_end(&m);
}

/* In this order; the first is the situation after world_begin. */
static const struct situation situations[] = {
    {"a P only", NULL, false},
    {"nothing", lose_proc, false},
    {"a P again", take_proc, false},
    {"runs", run, true},
    {"in a call", enter_call, true},
    {"after the call", leave_call, true},
    {"in another call", enter_call, true},
    {"in a call without its P", lose_proc, true},
    {"in a call with a new P", take_proc, true},
    {"ready", leave_blocked, false},
    {"runs again", run, true},
    {"ended", end_first, false},
};
#define SITUATIONS (sizeof situations / sizeof *situations)

/*
 * Starts the trace in situation `from`. In each situation the thread annotates, wakes listed[1],
 * which then waits again by itself on another thread's P, and creates listed[2] once, in `creates`.
 */
static void story(const trail_options *options, size_t from, size_t creates, struct trace *trace,
                  int fd)
{
    init_goroutines();
    trail_go_create(&m, &listed[0], 0, 0);
    trail_go_create_blocked(&m, &listed[1], 0, 0);
    for (size_t i = 0; i < SITUATIONS; i++) {
        if (situations[i].enter)
            situations[i].enter();
        if (i == from && trace)
            start_good(options, trace);
        if (i == from && !trace)
            assert_true(trail_start_fd(options, fd, NULL));
        if (i >= from)
            annotate(situations[i].name);
        if (i == creates && i >= from)
            trail_go_create(&m, &listed[2], 0, 0);
        if (i >= from && options->format >= 22 && i % 2)
            trail_advance();
    }
}

struct seen {
    long logs, creations, regions, tasks;
    size_t from;
    int64_t own;              /* the goroutine of a thread that runs none */
    trail_go_state states[5]; /* of listed, and the thread's own */
    uint64_t stackless;
};

static bool text_is(trail_reader *reader, trail_string_handle handle, const char *text)
{
    trail_string got = trail_reader_string(reader, handle);
    return got.size == strlen(text) && memcmp(got.data, text, got.size) == 0;
}

/* Returns the index of a goroutine in seen.states. */
static size_t place_of(int64_t goroutine)
{
    size_t i = 0;
    while (i < 4 && (int64_t)listed[i].id != goroutine)
        i++;
    return i;
}

static void check_log(trail_reader *reader, const trail_event *event, struct seen *seen)
{
    size_t i = 0;
    while (i < SITUATIONS && !text_is(reader, event->log.message, situations[i].name))
        i++;
    assert_int_equal(i, seen->from + (size_t)seen->logs);
    if (i >= SITUATIONS)
        return;
    seen->logs++;
    if (situations[i].runs) {
        assert_int_equal(event->goroutine, listed[0].id);
    } else {
        /* Always the same goroutine, and not one of the host's. */
        assert_true(event->goroutine > 0 && event->goroutine != (int64_t)listed[0].id);
        if (!seen->own)
            seen->own = event->goroutine;
        assert_int_equal(event->goroutine, seen->own);
    }
    seen->stackless += event->stack == 0;
    assert_int_equal(seen->states[place_of(event->goroutine)], TRAIL_GO_RUNNING);
}

static void check_story(trail_reader *reader, const trail_event *event, void *context)
{
    struct seen *seen = context;
    seen->regions += event->kind == TRAIL_REGION_BEGIN || event->kind == TRAIL_REGION_END;
    seen->tasks += event->kind == TRAIL_TASK_BEGIN || event->kind == TRAIL_TASK_END;
    if (event->kind == TRAIL_LOG)
        check_log(reader, event, seen);
    if (event->kind != TRAIL_STATE_TRANSITION ||
        event->transition.resource != TRAIL_RESOURCE_GOROUTINE)
        return;
    seen->states[place_of(event->transition.id)] = event->transition.to;
    if (event->transition.id == (int64_t)listed[2].id &&
        event->transition.from == TRAIL_GO_NOT_EXIST)
        seen->creations++;
}

/* Starts in each situation, in every format, with and without a creation there. */
TEST(annotates_in_every_situation)
{
    struct trace trace = {0};
    thread_begin();
    for (size_t f = 0; f < FORMATS; f++) {
        trail_options options = {.format = all_formats[f], .generation_ns = INT64_C(3600000000000)};
        bool has = options.format >= 11;
        for (size_t from = 0; from < SITUATIONS; from++)
            for (size_t creates = 0; creates < SITUATIONS; creates++) {
                struct seen seen = {.from = from};
                trail_stats stats;
                long n = has ? (long)(SITUATIONS - from) : 0;
                story(&options, from, creates, &trace, -1);
                stop_good(&options);
                nothing_lost(situations[from].name);
                trail_stats_get(&stats);
                assert_int_equal(stats.not_expressible,
                                 options.format < 11 ? 6 * (SITUATIONS - from) : 0);
                assert_int_equal(stats.left_out[TRAIL_LEFT_OUT_ANNOTATION], stats.not_expressible);
                read_good(&trace, check_story, &seen, situations[from].name);
                assert_int_equal(seen.logs, n);
                assert_int_equal(seen.tasks, 2 * n);
                assert_int_equal(seen.regions, 4 * n);
                assert_int_equal(seen.stackless, 0);
                assert_int_equal(seen.creations, creates >= from);
            }
    }
    trail_proc_stop(&m);
    trail_p_fini(&p);
    trail_m_exit(&m);
    trail_host_set(NULL);
    alone(false);
    trace_free(&trace);
}

/* MARK: Wakes */

static void count_wakes(trail_reader *reader, const trail_event *event, void *context)
{
    long *wakes = context;
    (void)reader;
    if (event->kind == TRAIL_STATE_TRANSITION && event->transition.id == (int64_t)listed[1].id &&
        event->transition.from == TRAIL_GO_WAITING && event->transition.to == TRAIL_GO_RUNNABLE)
        *wakes += event->stack != 0;
}

/* Other Ms cannot take part here, so the thread itself makes it wait again. */
static void wait_again(void)
{
    trail_go_start(&m, &listed[1]);
    trail_go_block(&m, TRAIL_BLOCK_SYNC, 0);
}

/* Wake-ups by a scheduler with a P, by one without, and from a system call. */
TEST(wakes_have_stacks)
{
    struct trace trace = {0};
    thread_begin();
    for (size_t f = 0; f < FORMATS; f++) {
        trail_options options = {.format = all_formats[f]};
        long wakes = 0;
        init_goroutines();
        trail_go_create(&m, &listed[0], 0, 0);
        trail_go_create(&m, &listed[1], 0, 0);
        start_good(&options, &trace);
        wait_again();
        trail_go_unblock(&m, &listed[1], 0);
        wait_again();
        trail_proc_stop(&m);
        trail_go_unblock(&m, &listed[1], 0);
        trail_proc_start(&m, &p);
        wait_again();
        trail_go_start(&m, &listed[0]);
        trail_syscall_enter(&m, 0);
        trail_go_unblock(&m, &listed[1], 0);
        trail_syscall_exit(&m);
        trail_go_end(&m);
        stop_good(&options);
        nothing_lost("wakes");
        read_good(&trace, count_wakes, &wakes, "wakes");
        assert_int_equal(wakes, 3);
    }
    trail_proc_stop(&m);
    trail_p_fini(&p);
    trail_m_exit(&m);
    trail_host_set(NULL);
    alone(false);
    trace_free(&trace);
}

/* MARK: A P that is taken while its thread annotates */

static struct {
    pthread_mutex_t lock;
    bool in_call, taken, quit;
    unsigned thefts;
} call = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *take_procs(void *arg)
{
    trail_m thief;
    trail_m_start(&thief);
    while (!__atomic_load_n(&call.quit, __ATOMIC_ACQUIRE)) {
        pthread_mutex_lock(&call.lock);
        if (call.in_call && !call.taken) {
            trail_proc_steal(&thief, &p);
            call.taken = true;
            call.thefts++;
        }
        pthread_mutex_unlock(&call.lock);
        sched_yield();
    }
    trail_m_exit(&thief);
    return arg;
}

static void one_call(void)
{
    bool taken;
    pthread_mutex_lock(&call.lock);
    trail_syscall_enter(&m, 0);
    call.in_call = true;
    call.taken = false;
    pthread_mutex_unlock(&call.lock);
    for (int i = 0; i < 20; i++)
        trail_log(0, "in", "a call");
    pthread_mutex_lock(&call.lock);
    taken = call.taken;
    call.in_call = false;
    if (!taken)
        trail_syscall_exit(&m);
    pthread_mutex_unlock(&call.lock);
    if (!taken)
        return;
    trail_proc_start(&m, &p);
    trail_syscall_exit_blocked(&m);
    trail_go_start(&m, &listed[0]);
}

static void count_logs(trail_reader *reader, const trail_event *event, void *context)
{
    (void)reader;
    if (event->kind == TRAIL_LOG) {
        assert_int_equal(event->goroutine, listed[0].id);
        ++*(long *)context;
    }
}

/* Readers put the ProcSteal after the annotations before it, even at the same time. */
TEST(proc_is_taken_meanwhile)
{
    struct trace trace = {0};
    unsigned calls = how_many(2000);
    pthread_t thread;
    thread_begin();
    for (size_t f = 0; f < FORMATS; f++) {
        /* Generations end meanwhile. */
        trail_options options = {.format = all_formats[f], .generation_ns = 2000000};
        long logs = 0;
        call.quit = false;
        call.thefts = 0;
        init_goroutines();
        trail_go_create(&m, &listed[0], 0, 0);
        trail_go_start(&m, &listed[0]);
        start_good(&options, &trace);
        assert_int_equal(pthread_create(&thread, NULL, take_procs, NULL), 0);
        for (unsigned i = 0; i < calls || !__atomic_load_n(&call.thefts, __ATOMIC_RELAXED); i++) {
            one_call();
            logs++;
        }
        __atomic_store_n(&call.quit, true, __ATOMIC_RELEASE);
        pthread_join(thread, NULL);
        trail_go_end(&m);
        stop_good(&options);
        nothing_lost("taken");
        logs = options.format >= 11 ? -20 * logs : 0;
        read_good(&trace, count_logs, &logs, "taken");
        assert_int_equal(logs, 0);
    }
    trail_proc_stop(&m);
    trail_p_fini(&p);
    trail_m_exit(&m);
    trail_host_set(NULL);
    alone(false);
    trace_free(&trace);
}

/* MARK: Threads that are not announced */

struct quiet {
    bool running; /* the one goroutine */
    int64_t goroutine;
    long logs, inside;
};

static void follow(trail_reader *reader, const trail_event *event, void *context)
{
    struct quiet *quiet = context;
    if (event->kind == TRAIL_STATE_TRANSITION &&
        event->transition.resource == TRAIL_RESOURCE_GOROUTINE)
        quiet->running = event->transition.to == TRAIL_GO_RUNNING;
    if (event->kind != TRAIL_LOG)
        return;
    quiet->logs++;
    assert_true(event->goroutine > 0);
    if (!quiet->goroutine)
        quiet->goroutine = event->goroutine;
    assert_int_equal(event->goroutine, quiet->goroutine);
    if (text_is(reader, event->log.category, "region")) {
        assert_true(quiet->running);
        quiet->inside++;
    }
}

/* Running time is summed from the first log on: before it, the thread may have lost its CPU in the
 * region. */
struct between {
    struct quiet quiet;
    int64_t since_ns, running_ns, first_ns, last_ns;
};

static void sum_running(trail_reader *reader, const trail_event *event, void *context)
{
    struct between *between = context;
    if (between->quiet.running && between->first_ns)
        between->running_ns += event->time_ns - between->since_ns;
    between->since_ns = event->time_ns;
    follow(reader, event, &between->quiet);
    if (event->kind == TRAIL_LOG) {
        between->last_ns = event->time_ns;
        if (!between->first_ns)
            between->first_ns = event->time_ns;
    }
}

static void *log_and_wait(void *arg)
{
    {
        TRAIL_REGION("work");
        trail_log(0, "region", "runs");
    }
    for (int i = 0; i < 20; i++) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
        trail_log(0, "plain", "nothing runs");
    }
    return arg;
}

/* The thread waits except in regions: at least 20 ms of sleep do not count as running, on any
 * machine. */
TEST(unannounced_threads_wait)
{
    struct trace trace = {0};
    for (size_t f = 1; f < FORMATS; f++) {
        trail_options options = {.format = all_formats[f]};
        for (int again = 0; again < 2; again++) {
            struct between between = {0};
            pthread_t thread;
            start_good(&options, &trace);
            assert_int_equal(pthread_create(&thread, NULL, log_and_wait, NULL), 0);
            pthread_join(thread, NULL);
            stop_good(&options);
            nothing_lost("not announced");
            read_good(&trace, sum_running, &between, "not announced");
            assert_int_equal(between.quiet.logs, 21);
            assert_int_equal(between.quiet.inside, 1);
            assert_false(between.quiet.running);
            /* 20 ms of sleep passed between the first and the last log. */
            assert_true(between.last_ns - between.first_ns >= 20 * 1000000 - 1000000);
            assert_true(between.running_ns <= between.last_ns - between.first_ns - 18 * 1000000);
        }
    }
    trace_free(&trace);
}

/* MARK: The start of a v1 trace */

static struct {
    pthread_mutex_t list;
    pthread_t thread;
    bool holds, handled, walked;
} signalled = {.list = PTHREAD_MUTEX_INITIALIZER};

static void log_in_handler(int number)
{
    (void)number;
    trail_log(0, "handler", "neither waits nor hangs");
    __atomic_store_n(&signalled.handled, true, __ATOMIC_RELEASE);
}

static void *hold_list(void *arg)
{
    trail_m own;
    trail_m_start(&own);
    pthread_mutex_lock(&signalled.list);
    __atomic_store_n(&signalled.holds, true, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&signalled.handled, __ATOMIC_ACQUIRE))
        sched_yield();
    pthread_mutex_unlock(&signalled.list);
    trail_m_exit(&own);
    return arg;
}

/* While threads are held, the thread with the list's lock runs a signal handler that annotates. */
static void walk_signalled(void *context, void (*visit)(trail_g *g, void *arg), void *arg)
{
    (void)context;
    (void)visit;
    (void)arg;
    if (!signalled.walked)
        pthread_kill(signalled.thread, SIGUSR1);
    signalled.walked = true;
    pthread_mutex_lock(&signalled.list);
    pthread_mutex_unlock(&signalled.list);
}

TEST(handlers_do_not_wait)
{
    static const trail_host host = {.each_goroutine = walk_signalled};
    struct trace trace = {0};
    struct sigaction action = {.sa_handler = log_in_handler};
    sigaction(SIGUSR1, &action, NULL);
    trail_host_set(&host);
    for (size_t f = 0; f < FORMATS && all_formats[f] < 22; f++) {
        trail_options options = {.format = all_formats[f]};
        signalled.holds = signalled.handled = signalled.walked = false;
        assert_int_equal(pthread_create(&signalled.thread, NULL, hold_list, NULL), 0);
        while (!__atomic_load_n(&signalled.holds, __ATOMIC_ACQUIRE))
            sched_yield();
        start_good(&options, &trace);
        assert_true(signalled.handled);
        pthread_join(signalled.thread, NULL);
        stop_good(&options);
        nothing_lost("handlers");
        read_good(&trace, NULL, NULL, "handlers");
    }
    trail_host_set(NULL);
    trace_free(&trace);
}

/*
 * A scheduler's call during the walk waits until the snapshot is complete; its event follows the
 * snapshot.
 */
static struct {
    pthread_t thread;
    bool ready, begins, done, in_walk;
} waits;

static void *yield_in_walk(void *arg)
{
    trail_m_start(&m);
    trail_proc_start(&m, &p);
    trail_go_create(&m, &listed[0], 0, 0);
    trail_go_start(&m, &listed[0]);
    __atomic_store_n(&waits.ready, true, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&waits.in_walk, __ATOMIC_ACQUIRE))
        sched_yield();
    __atomic_store_n(&waits.begins, true, __ATOMIC_RELEASE);
    trail_go_sched(&m, 0);
    __atomic_store_n(&waits.done, true, __ATOMIC_RELEASE);
    trail_go_start(&m, &listed[0]);
    trail_go_end(&m);
    trail_proc_stop(&m);
    trail_m_exit(&m);
    return arg;
}

static void walk_slowly(void *context, void (*visit)(trail_g *g, void *arg), void *arg)
{
    each_goroutine(context, visit, arg);
    if (__atomic_exchange_n(&waits.in_walk, true, __ATOMIC_ACQ_REL))
        return;
    while (!__atomic_load_n(&waits.begins, __ATOMIC_ACQUIRE))
        sched_yield();
    /* If it were not held, the call would have time to end here. */
    nanosleep(&(struct timespec){0, 5000000}, NULL);
    assert_false(__atomic_load_n(&waits.done, __ATOMIC_ACQUIRE));
}

struct runs {
    trail_go_state first, now;
    long yields, procs;
};

static void follow_first(trail_reader *reader, const trail_event *event, void *context)
{
    struct runs *runs = context;
    (void)reader;
    if (event->kind != TRAIL_STATE_TRANSITION)
        return;
    if (event->transition.resource == TRAIL_RESOURCE_PROC) {
        runs->procs += !runs->now && event->transition.to == TRAIL_PROC_RUNNING;
        return;
    }
    if (event->transition.id != (int64_t)listed[0].id)
        return;
    if (!runs->first)
        runs->first = event->transition.to;
    runs->yields +=
        event->transition.from == TRAIL_GO_RUNNING && event->transition.to == TRAIL_GO_RUNNABLE;
    runs->now = event->transition.to;
}

TEST(calls_wait_for_snapshot)
{
    static const trail_host host = {.each_goroutine = walk_slowly};
    struct trace trace = {0};
    alone(true);
    trail_host_set(&host);
    trail_p_init(&p, 0);
    for (size_t f = 0; f < FORMATS && all_formats[f] < 22; f++) {
        trail_options options = {.format = all_formats[f]};
        struct runs runs = {0};
        init_goroutines();
        memset(&waits, 0, sizeof waits);
        assert_int_equal(pthread_create(&waits.thread, NULL, yield_in_walk, NULL), 0);
        while (!__atomic_load_n(&waits.ready, __ATOMIC_ACQUIRE))
            sched_yield();
        start_good(&options, &trace);
        pthread_join(waits.thread, NULL);
        stop_good(&options);
        nothing_lost("snapshot");
        read_good(&trace, follow_first, &runs, "snapshot");
        /* ProcStart and GoStart are in the snapshot, the yield after it. */
        assert_int_equal(runs.yields, 1);
        assert_int_equal(runs.procs, 1);
    }
    trail_p_fini(&p);
    trail_host_set(NULL);
    alone(false);
    trace_free(&trace);
}

/*
 * A host whose list is guarded by a lock that prefers readers, and that some thread always holds.
 * The host's walk can always take it for reading, and during the start of a v1 trace also for
 * writing: threads that release it are held in their next call.
 */
#define READERS 3

static struct {
    pthread_rwlock_t lock;
    pthread_t threads[READERS];
    unsigned turns;    /* atomic: how often the lock was taken */
    unsigned walks;    /* atomic: odd during a walk that takes it for writing */
    unsigned went_on;  /* atomic: calls that began and returned during such a walk */
    bool writes, quit; /* atomic */
} crowd = {.lock = PTHREAD_RWLOCK_INITIALIZER};

static unsigned number(const unsigned *of)
{
    return __atomic_load_n(of, __ATOMIC_ACQUIRE);
}

static bool crowd_is_waited_for(void)
{
    return number(&crowd.walks) % 2 || __atomic_load_n(&crowd.quit, __ATOMIC_ACQUIRE);
}

/* Takes the lock in turn, and releases it when the next thread holds it, too. */
static void take_turn(unsigned turn)
{
    while (number(&crowd.turns) < turn && !__atomic_load_n(&crowd.quit, __ATOMIC_ACQUIRE))
        sched_yield();
    pthread_rwlock_rdlock(&crowd.lock);
    __atomic_store_n(&crowd.turns, turn + 1, __ATOMIC_RELEASE);
    while (number(&crowd.turns) == turn + 1 && !crowd_is_waited_for())
        sched_yield();
    pthread_rwlock_unlock(&crowd.lock);
}

static void *crowd_around(void *arg)
{
    unsigned turn = (unsigned)(uintptr_t)arg;
    trail_m own;
    trail_p own_p;
    trail_m_start(&own);
    trail_p_init(&own_p, 1 + (int32_t)turn);
    for (; !__atomic_load_n(&crowd.quit, __ATOMIC_ACQUIRE); turn += READERS) {
        unsigned before;
        take_turn(turn);
        before = number(&crowd.walks);
        trail_proc_start(&own, &own_p);
        if (before % 2 && number(&crowd.walks) == before)
            __atomic_fetch_add(&crowd.went_on, 1, __ATOMIC_RELAXED);
        trail_proc_stop(&own);
    }
    trail_p_fini(&own_p);
    trail_m_exit(&own);
    return NULL;
}

static void walk_in_crowd(void *context, void (*visit)(trail_g *g, void *arg), void *arg)
{
    bool writes = __atomic_load_n(&crowd.writes, __ATOMIC_ACQUIRE);
    __atomic_fetch_add(&crowd.walks, writes, __ATOMIC_ACQ_REL);
    if (writes)
        pthread_rwlock_wrlock(&crowd.lock);
    else
        pthread_rwlock_rdlock(&crowd.lock);
    each_goroutine(context, visit, arg);
    pthread_rwlock_unlock(&crowd.lock);
    __atomic_fetch_add(&crowd.walks, writes, __ATOMIC_ACQ_REL);
}

static void start_in_crowd(int format, bool writes, struct trace *trace)
{
    trail_options options = {.format = format};
    unsigned before;
    __atomic_store_n(&crowd.writes, writes, __ATOMIC_RELEASE);
    start_good(&options, trace);
    __atomic_store_n(&crowd.writes, false, __ATOMIC_RELEASE);
    before = number(&crowd.turns);
    while (number(&crowd.turns) < before + 2 * READERS)
        sched_yield();
    stop_good(&options);
    nothing_lost("crowd");
    read_good(trace, NULL, NULL, "crowd");
}

TEST(readers_do_not_starve_a_start)
{
    static const trail_host host = {.each_goroutine = walk_in_crowd};
    struct trace trace = {0};
    alone(true);
    init_goroutines();
    trail_host_set(&host);
    for (uintptr_t i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&crowd.threads[i], NULL, crowd_around, (void *)i), 0);
    for (size_t f = 0; f < FORMATS; f++) {
        start_in_crowd(all_formats[f], false, &trace);
        if (all_formats[f] < 22)
            start_in_crowd(all_formats[f], true, &trace);
    }
    assert_int_equal(crowd.went_on, 0);
    __atomic_store_n(&crowd.quit, true, __ATOMIC_RELEASE);
    for (int i = 0; i < READERS; i++)
        pthread_join(crowd.threads[i], NULL);
    trail_host_set(NULL);
    alone(false);
    trace_free(&trace);
}

/* MARK: Generations in which nothing happens */

static void *log_once(void *arg)
{
    trail_log(0, "brief", "in the second generation");
    return arg;
}

/* Only the second one has a thread. */
static void quiet_generations(void)
{
    pthread_t thread;
    trail_advance();
    if (pthread_create(&thread, NULL, log_once, NULL) == 0)
        pthread_join(thread, NULL);
    trail_advance();
    trail_advance();
}

struct calm {
    unsigned generations, with_proc; /* those with an event of a P */
    bool has_proc;
};

static void count_generation(trail_reader *reader, const trail_event *event, void *context)
{
    struct calm *calm = context;
    (void)reader;
    if (event->kind == TRAIL_SYNC) {
        calm->with_proc += calm->has_proc;
        calm->has_proc = false;
        calm->generations++;
    }
    if (event->kind == TRAIL_STATE_TRANSITION)
        calm->has_proc |= event->transition.resource == TRAIL_RESOURCE_PROC;
}

/* Go 1.22 and 1.23 reject a generation without an event. */
TEST(no_generation_is_empty)
{
    struct trace trace = {0};
    for (size_t f = 0; f < FORMATS; f++) {
        trail_options options = {.format = all_formats[f], .generation_ns = INT64_C(3600000000000)};
        struct calm calm = {0};
        if (all_formats[f] < 22)
            continue;
        start_good(&options, &trace);
        quiet_generations();
        stop_good(&options);
        nothing_lost("quiet");
        read_good(&trace, count_generation, &calm, "quiet");
        /* Each of the four begins with a Sync, and one ends the trace. */
        assert_int_equal(calm.generations, 5);
        assert_int_equal(calm.with_proc, 4);
    }
    trace_free(&trace);
}

/* MARK: For other readers */

static int write_quiet(int format, const char *path)
{
    trail_options options = {.format = format, .generation_ns = INT64_C(3600000000000)};
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (!trail_start_fd(&options, fd, NULL))
        return 1;
    quiet_generations();
    return !trail_stop(NULL);
}

static int write_story(int format, const char *path)
{
    trail_options options = {.format = format, .generation_ns = INT64_C(3600000000000)};
    trail_stats stats;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    thread_begin();
    story(&options, 6, 7, NULL, fd);
    if (!trail_stop(NULL))
        return 1;
    trail_stats_get(&stats);
    trail_proc_stop(&m);
    trail_m_exit(&m);
    return stats.misuse || stats.lost_events;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "quiet") == 0)
        return write_quiet(atoi(argv[2]), argv[3]);
    if (argc == 4)
        return write_story(atoi(argv[2]), argv[3]);
    /* A hang is a failure. */
    alarm(250);
    return run_all_tests(NULL, NULL);
}
