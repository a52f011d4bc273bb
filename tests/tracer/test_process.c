/*
 * What happens to a process while it is recorded: fork, exit, threads that end, signals.
 *
 * TRAIL_TEST_COUNT scales the loops (in percent), TRAIL_TEST_FILTER names the test, TRAIL_TEST_KEEP
 * names a file for a refused trace.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "load.h"
#include "stress.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* MARK: Counting logs by their category */

struct logs {
    long parents, childs, handlers, samples;
};

static void count_log(trail_reader *reader, const trail_event *event, void *context)
{
    struct logs *logs = context;
    trail_string category;
    logs->samples += event->kind == TRAIL_STACK_SAMPLE;
    if (event->kind != TRAIL_LOG)
        return;
    category = trail_reader_string(reader, event->log.category);
    logs->parents += category.size == 6 && memcmp(category.data, "parent", 6) == 0;
    logs->childs += category.size == 5 && memcmp(category.data, "child", 5) == 0;
    logs->handlers += category.size == 7 && memcmp(category.data, "handler", 7) == 0;
}

/* Reads a trace that a child has written into a memory file. */
static void read_file(int fd, struct logs *logs, const char *what)
{
    struct trace trace = {0};
    off_t size = lseek(fd, 0, SEEK_END);
    assert_true(size > 0);
    trace.size = (size_t)size;
    trace.data = malloc(trace.size);
    assert_int_equal(pread(fd, trace.data, trace.size, 0), size);
    read_good(&trace, count_log, logs, what);
    trace_free(&trace);
    close(fd);
}

static void wait_for(pid_t child, const char *what)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("%s: the child ended with %#x", what, (unsigned)status);
}

static void some_logs(const char *category, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        trail_log(0, category, "text");
}

/* MARK: Fork */

/* In the child: nothing is recorded at first; then it records a complete trace of its own. */
static int be_child(const trail_options *options, int fd)
{
    if (trail_enabled())
        return 2;
    some_logs("child", 10);
    if (!trail_start_fd(options, fd, NULL))
        return 3;
    some_logs("child", 100);
    if (!trail_stop(NULL))
        return 4;
    return 0;
}

static void fork_once(int format, struct trace *trace)
{
    trail_options options = {.format = format,
                             .generation_ns = HOUR_NS,
                             .unwinder = TRAIL_UNWIND_FRAME_POINTERS,
                             .no_symbols = true};
    struct logs parent = {0}, child = {0};
    int fd = memfd_create("child", 0);
    char what[64];
    pid_t pid;
    snprintf(what, sizeof what, "fork, format %d", format);
    start_good(&options, trace);
    load_wait(5);
    some_logs("parent", 50);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(60);
        _exit(be_child(&options, fd));
    }
    some_logs("parent", 50);
    wait_for(pid, what);
    load_wait(5);
    stop_good(&options);
    nothing_lost(what);
    read_good(trace, count_log, &parent, what);
    read_file(fd, &child, what);
    assert_int_equal(parent.parents, format >= 11 ? 100 : 0);
    assert_int_equal(parent.childs, 0);
    assert_int_equal(child.childs, format >= 11 ? 100 : 0);
    assert_int_equal(child.parents, 0);
}

/* The child is not in the parent's trace and may record its own; the parent's threads continue. */
static void fork_while_recording(void **state)
{
    struct trace trace = {0};
    (void)state;
    for (unsigned i = 0; i < how_many(7); i++) {
        /* The child is forked while threads of a host hold the host's locks. It has none of these
         * threads, so it has no host either. */
        alone(true);
        load_begin(0, 4);
        trail_host_set(NULL);
        for (size_t j = 0; j < FORMATS; j++)
            fork_once(all_formats[j], &trace);
        load_end();
        alone(false);
    }
    trace_free(&trace);
}

/* MARK: Exit */

/* exit() without a stop: the trace is complete nevertheless. */
static void exit_while_recording(void **state)
{
    (void)state;
    for (size_t i = 0; i < FORMATS; i++) {
        trail_options options = {.format = all_formats[i], .unwinder = ANY_UNWINDER};
        int fd = memfd_create("trace", 0);
        struct logs logs = {0};
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            alarm(60);
            if (!trail_start_fd(&options, fd, NULL))
                _exit(2);
            some_logs("child", 1000);
            exit(0);
        }
        wait_for(pid, "exit");
        read_file(fd, &logs, "exit");
        assert_int_equal(logs.childs, options.format >= 11 ? 1000 : 0);
    }
}

/*
 * A C++ host that returns from main: its objects are destroyed and their memory is freed before the
 * trace is completed. Handlers of atexit stand for the destructors of objects with static storage.
 */
static struct objects {
    trail_m m, other_m;
    trail_p p, other_p;
    trail_g g[4];
} * objects;
static bool gone, other_runs; /* atomic */

static void objects_end(void)
{
    __atomic_store_n(&gone, true, __ATOMIC_RELEASE);
    munmap(objects, sizeof *objects);
    /* The library's thread ends generations meanwhile. */
    nanosleep(&(struct timespec){0, 20000000}, NULL);
}

static void alive_only(void)
{
    if (__atomic_load_n(&gone, __ATOMIC_ACQUIRE))
        _exit(7);
}

static void each_object(void *context, void (*visit)(trail_g *g, void *arg), void *arg)
{
    (void)context;
    alive_only();
    for (int i = 0; i < 4; i++)
        visit(&objects->g[i], arg);
    alive_only();
}

static bool symbolize_object(void *context, uintptr_t pc, trail_pc_name *name)
{
    (void)context;
    (void)pc;
    (void)name;
    alive_only();
    return false;
}

static void stop_nothing(void *context)
{
    (void)context;
    alive_only();
}

/* Runs a goroutine and does nothing else while the program ends. */
static void *run_on(void *arg)
{
    trail_m *own = &objects->other_m;
    trail_m_start(own);
    trail_proc_start(own, &objects->other_p);
    trail_go_start(own, &objects->g[3]);
    __atomic_store_n(&other_runs, true, __ATOMIC_RELEASE);
    for (;;)
        pause();
    return arg;
}

/*
 * Relative to the library's own handler of exit(): objects that were created after the start of the trace
 * are destroyed before it.
 */
enum destroyed { BEFORE_HANDLER, AFTER_HANDLER };

static int return_from_main(int format, int fd, enum destroyed when)
{
    static trail_host host = {.each_goroutine = each_object,
                              .symbolize = symbolize_object,
                              .stop_world = stop_nothing,
                              .start_world = stop_nothing};
    trail_options options = {.format = format,
                             .generation_ns = when == AFTER_HANDLER ? 1000000 : HOUR_NS};
    pthread_t thread;
    trail_m *own;
    objects =
        mmap(NULL, sizeof *objects, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    own = &objects->m;
    trail_host_set(&host);
    memset(&host, 0xee, sizeof host);
    trail_m_start(own);
    trail_p_init(&objects->p, 0);
    trail_p_init(&objects->other_p, 1);
    for (int i = 0; i < 4; i++)
        trail_g_init(&objects->g[i]);
    if (when == AFTER_HANDLER && atexit(objects_end) != 0)
        return 2;
    if (!trail_start_fd(&options, fd, NULL))
        return 3;
    if (when == BEFORE_HANDLER && atexit(objects_end) != 0)
        return 2;
    trail_proc_start(own, &objects->p);
    for (int i = 0; i < 4; i++)
        trail_go_create(own, &objects->g[i], 0, 0);
    if (pthread_create(&thread, NULL, run_on, NULL) != 0)
        return 4;
    while (!__atomic_load_n(&other_runs, __ATOMIC_ACQUIRE))
        sched_yield();
    trail_go_start(own, &objects->g[0]);
    some_logs("child", 100);
    return 0;
}

static void exit_destroys_host(void **state)
{
    (void)state;
    for (size_t i = 0; i < FORMATS; i++)
        for (int when = BEFORE_HANDLER; when <= AFTER_HANDLER; when++) {
            int fd = memfd_create("trace", 0);
            struct logs logs = {0};
            pid_t pid = fork();
            assert_true(pid >= 0);
            if (pid == 0) {
                alarm(60);
                exit(return_from_main(all_formats[i], fd, (enum destroyed)when));
            }
            wait_for(pid, "exit of a host");
            read_file(fd, &logs, "exit of a host");
            assert_int_equal(logs.childs, all_formats[i] >= 11 ? 100 : 0);
        }
}

/* A sink is not called after exit() has begun to run handlers. */
static bool sink_of_object(void *context, const trail_chunk *chunk)
{
    (void)context;
    (void)chunk;
    alive_only();
    return true;
}

static void exit_ends_sink(void **state)
{
    (void)state;
    for (size_t i = 0; i < FORMATS; i++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            trail_options options = {.format = all_formats[i], .generation_ns = 1000000};
            alarm(60);
            objects = mmap(NULL, sizeof *objects, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (atexit(objects_end) != 0 || !trail_start_sink(&options, sink_of_object, NULL, NULL))
                _exit(2);
            some_logs("child", 1000);
            exit(0);
        }
        wait_for(pid, "exit with a sink");
    }
}

/* A callback that calls exit(), like a failed check: the process ends. */
static void exit_here(void *context, void (*visit)(trail_g *g, void *arg), void *arg)
{
    (void)context;
    (void)visit;
    (void)arg;
    exit(0);
}

/* The system's clock is set back by an hour whenever it has been read. */
static bool set_back;

int clock_gettime(clockid_t clock, struct timespec *now)
{
    long failed = syscall(SYS_clock_gettime, clock, now);
    if (set_back && clock == CLOCK_REALTIME)
        now->tv_sec += 3600;
    return (int)failed;
}

static void exit_in_callback(void **state)
{
    static const trail_host host = {.each_goroutine = exit_here};
    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(60);
        set_back = true;
        trail_host_set(&host);
        if (!trail_start_fd(NULL, memfd_create("trace", 0), NULL))
            _exit(2);
        some_logs("child", 10);
        trail_advance();
        _exit(3);
    }
    wait_for(pid, "exit in a callback");
}

/* MARK: Threads that end */

static trail_p procs[4];

/* Announces itself, runs a goroutine, logs, and ends without announcing its end. */
static void *vanish(void *arg)
{
    trail_m *m = calloc(1, sizeof *m);
    trail_g *g = calloc(1, sizeof *g);
    trail_m_start(m);
    trail_g_init(g);
    trail_proc_start(m, arg);
    trail_go_create(m, g, 0, 0);
    trail_go_start(m, g);
    some_logs("parent", 5);
    trail_go_end(m);
    trail_proc_stop(m);
    /* Freed when the thread has ended. */
    free(g);
    return m;
}

static void *vanish_unannounced(void *arg)
{
    (void)arg;
    some_logs("parent", 5);
    return NULL;
}

static void threads_end(int format, struct trace *trace)
{
    trail_options options = {
        .format = format, .unwinder = TRAIL_UNWIND_FRAME_POINTERS, .no_symbols = true};
    unsigned rounds = how_many(20);
    struct logs logs = {0};
    start_good(&options, trace);
    for (unsigned i = 0; i < rounds; i++) {
        pthread_t threads[8];
        for (int j = 0; j < 8; j++)
            assert_int_equal(pthread_create(&threads[j], NULL, j < 4 ? vanish : vanish_unannounced,
                                            j < 4 ? &procs[j] : NULL),
                             0);
        for (int j = 0; j < 8; j++) {
            void *m;
            pthread_join(threads[j], &m);
            free(m);
        }
    }
    stop_good(&options);
    nothing_lost("threads that end");
    read_good(trace, count_log, &logs, "threads that end");
    assert_int_equal(logs.parents, format >= 11 ? 8 * 5 * rounds : 0);
}

/* Threads begin and end, announced or not, and none announces its end. */
static void threads_end_without_notice(void **state)
{
    struct trace trace = {0};
    (void)state;
    alone(true);
    for (int i = 0; i < 4; i++)
        trail_p_init(&procs[i], i);
    for (size_t i = 0; i < FORMATS; i++)
        threads_end(all_formats[i], &trace);
    for (int i = 0; i < 4; i++)
        trail_p_fini(&procs[i]);
    alone(false);
    trace_free(&trace);
}

/* MARK: Signals */

static long handled; /* atomic */

static void log_in_handler(int number)
{
    (void)number;
    some_logs("handler", 1);
    __atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
}

static struct {
    bool quit; /* atomic */
    long logs;
} logging;

static void *log_on(void *arg)
{
    (void)arg;
    some_logs("parent", 1);
    logging.logs = 1;
    /* Outside of any event, so that nothing of this signal is dropped. */
    raise(SIGUSR1);
    while (!__atomic_load_n(&logging.quit, __ATOMIC_ACQUIRE)) {
        some_logs("parent", 1);
        logging.logs++;
    }
    return NULL;
}

/* Wherever the thread is interrupted, its logs are in the trace; the handler's are in it or
 * counted. */
static void interrupt(int format, struct trace *trace)
{
    trail_options options = {.format = format,
                             .unwinder = TRAIL_UNWIND_FRAME_POINTERS,
                             .generation_ns = 1000000,
                             .no_symbols = true};
    long wanted = how_many(500);
    struct logs logs = {0};
    trail_stats stats;
    pthread_t thread;
    memset(&logging, 0, sizeof logging);
    handled = 0;
    start_good(&options, trace);
    assert_int_equal(pthread_create(&thread, NULL, log_on, NULL), 0);
    /* A handler may log once its thread has: the thread sends itself the first signal. */
    while (!__atomic_load_n(&handled, __ATOMIC_RELAXED))
        sched_yield();
    /* Two pending signals become one: only those that the handler saw count. */
    while (__atomic_load_n(&handled, __ATOMIC_RELAXED) < wanted) {
        assert_int_equal(pthread_kill(thread, SIGUSR1), 0);
        nanosleep(&(struct timespec){0, 20000}, NULL);
    }
    __atomic_store_n(&logging.quit, true, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    stop_good(&options);
    trail_stats_get(&stats);
    read_good(trace, count_log, &logs, "signals");
    assert_int_equal(stats.misuse + stats.lost_events + stats.lost_strings, 0);
    if (format < 11)
        return;
    assert_int_equal(logs.parents, logging.logs);
    assert_int_equal(logs.handlers + (long)stats.reentrant, handled);
    assert_true(logs.handlers > 0);
}

static void handlers_log(void **state)
{
    struct sigaction action = {.sa_handler = log_in_handler}, old;
    struct trace trace = {0};
    (void)state;
    alone(true);
    sigaction(SIGUSR1, &action, &old);
    for (size_t i = 0; i < FORMATS; i++)
        interrupt(all_formats[i], &trace);
    sigaction(SIGUSR1, &old, NULL);
    alone(false);
    trace_free(&trace);
}

/* MARK: CPU samples */

/* As many as the CPU time used implies, or at least a tenth: the kernel counts in ticks. */
static void cpu_samples(void **state)
{
    static const int formats[] = {19, 21, 22, 23, 26};
    struct trace trace = {0};
    (void)state;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        trail_options options = {.format = formats[i], .cpu_hz = 200, .unwinder = ANY_UNWINDER};
        struct logs logs = {0};
        clock_t until;
        start_good(&options, &trace);
        until = clock() + CLOCKS_PER_SEC / 4;
        while (clock() < until)
            some_logs("parent", 1);
        stop_good(&options);
        read_good(&trace, count_log, &logs, "samples");
        assert_in_range(logs.samples, 50 / 10, 2 * 50);
    }
    trace_free(&trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
/* AddressSanitizer's allocator may be locked by a thread that the child does not have, and
 * ThreadSanitizer does not support threads created after a fork. */
#if !defined(WITH_ASAN) && !defined(WITH_TSAN)
        cmocka_unit_test(fork_while_recording),
#endif
#ifndef WITH_TSAN
        cmocka_unit_test(exit_while_recording),
        cmocka_unit_test(exit_destroys_host),
        cmocka_unit_test(exit_ends_sink),
        cmocka_unit_test(exit_in_callback),
#endif
        cmocka_unit_test(threads_end_without_notice),
        cmocka_unit_test(handlers_log),
        cmocka_unit_test(cpu_samples),
    };

#ifdef WITH_TSAN
    (void)exit_while_recording;
    (void)exit_destroys_host;
    (void)exit_ends_sink;
    (void)exit_in_callback;
#endif
#if defined(WITH_ASAN) || defined(WITH_TSAN)
    (void)fork_while_recording;
    print_message("# not with this sanitizer: fork_while_recording%s\n",
                  sizeof tests / sizeof *tests == 3 ? ", exit_while_recording, exit_*" : "");
#endif
    /* A hang is a failure. */
    alarm(880);
    cmocka_set_test_filter(getenv("TRAIL_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
