/*
 * Memory and waits: what quiet threads cost; no thread waits for another's buffers; the reading
 * thread does not wait for itself; memory is freed.
 *
 * TRAIL_TEST_COUNT scales the loops (in percent), TRAIL_TEST_FILTER names the test, TRAIL_TEST_KEEP
 * names a file for a refused trace.
 */
#include "stress.h"
#include "tracer/memory.h"
#include "tracer/read.h"
#include "tracer/runnable.h"
#include "tracer/sample.h"
#include "tracer/tracer.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <unistd.h>

#define BLOCK 65536

static trail_stats stats_now(void)
{
    trail_stats stats;
    trail_stats_get(&stats);
    return stats;
}

/* MARK: A sink that a test holds up in its first chunk */

struct held {
    sem_t inside, go;
    void (*work)(void); /* what it does then; NULL: waits for `go` */
    bool began;
    struct trace trace;
};

static bool held_take(void *context, const trail_chunk *chunk)
{
    struct held *held = context;
    if (!held->began) {
        held->began = true;
        if (held->work)
            held->work();
        sem_post(&held->inside);
        while (!held->work && sem_wait(&held->go) != 0)
            ;
    }
    return trace_append(&held->trace, chunk);
}

static void held_start(struct held *held, const trail_options *options)
{
    trail_error err;
    held->began = false;
    sem_init(&held->inside, 0, 0);
    sem_init(&held->go, 0, 0);
    if (!trail_start_sink(options, held_take, held, &err))
        fail_msg("%s", err.message);
    while (sem_wait(&held->inside) != 0)
        ;
}

static void held_free(struct held *held)
{
    trace_free(&held->trace);
    sem_destroy(&held->inside);
    sem_destroy(&held->go);
}

static void count_logs(trail_reader *reader, const trail_event *event, void *context)
{
    (void)reader;
    *(unsigned long *)context += event->kind == TRAIL_LOG;
}

/* MARK: Quiet threads */

enum { QUIET = 5000, QUIET_STACK = 65536, ROUNDS = 3 };

/* The limit for a quiet thread in record.h, and the fixed size of a trace. */
#define QUIET_BYTES ((size_t)20 << 10)
#define FIXED_BYTES ((size_t)4 << 20)

static struct {
    pthread_barrier_t barrier;
    unsigned n;
} quiet;

/* Logs once in each generation. */
static void *be_quiet(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        trail_log(0, "quiet", "a few words of a thread that has little to say");
        pthread_barrier_wait(&quiet.barrier);
        pthread_barrier_wait(&quiet.barrier);
    }
    return NULL;
}

static size_t quiet_begin(pthread_t *threads)
{
    pthread_attr_t attr;
    size_t began = 0;
    quiet.n = how_many(QUIET);
    pthread_barrier_init(&quiet.barrier, NULL, quiet.n + 1);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, QUIET_STACK);
    began = memory_mapped();
    for (unsigned i = 0; i < quiet.n; i++)
        assert_int_equal(pthread_create(&threads[i], &attr, be_quiet, NULL), 0);
    pthread_attr_destroy(&attr);
    return began;
}

/*
 * Any number of threads that log a little leave enough memory for others, although nothing is read
 * before the end; none of them uses more than a few pages.
 */
TEST(quiet_threads_make_none_wait)
{
    trail_options options = {.generation_ns = HOUR_NS, .no_symbols = true};
    struct held held = {0};
    static pthread_t threads[QUIET];
    unsigned long logs = 0;
    trail_stats stats;
    size_t before;
    alone(true);
    held_start(&held, &options);
    before = quiet_begin(threads);
    for (int i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(&quiet.barrier);
        if (memory_mapped() > before + FIXED_BYTES + quiet.n * QUIET_BYTES)
            fail_msg("round %d: %zu bytes a thread", i, (memory_mapped() - before) / quiet.n);
        trail_advance();
        pthread_barrier_wait(&quiet.barrier);
    }
    for (unsigned i = 0; i < quiet.n; i++)
        pthread_join(threads[i], NULL);
    stats = stats_now();
    assert_int_equal(stats.waits, 0);
    assert_int_equal(stats.longest_wait_ns, 0);
    sem_post(&held.go);
    stop_good(&options);
    nothing_lost("quiet threads");
    read_good(&held.trace, count_logs, &logs, "quiet threads");
    assert_int_equal(logs, (unsigned long)quiet.n * ROUNDS);
    pthread_barrier_destroy(&quiet.barrier);
    held_free(&held);
    alone(false);
}

/* A thread that waits for the reader is counted, with the length of its wait. */
static void *write_much(void *arg)
{
    __atomic_store_n((pid_t *)arg, gettid(), __ATOMIC_RELEASE);
    for (int i = 0; i < 20000; i++)
        trail_logf(0, "much", "%d %0100d", i, 0);
    return NULL;
}

TEST(waits_are_counted)
{
    trail_options options = {.memory = 4 * BLOCK, .generation_ns = HOUR_NS, .no_symbols = true};
    struct held held = {0};
    unsigned long logs = 0;
    pthread_t thread;
    trail_stats stats;
    bool full;
    pid_t tid = 0;
    alone(true);
    held_start(&held, &options);
    assert_int_equal(stats_now().waits, 0);
    assert_int_equal(pthread_create(&thread, NULL, write_much, &tid), 0);
    do {
        pthread_mutex_lock(&tracer.lock);
        full = tracer.queued >= tracer.limit;
        pthread_mutex_unlock(&tracer.lock);
        sched_yield();
    } while (!full || thread_is_runnable(__atomic_load_n(&tid, __ATOMIC_ACQUIRE)));
    sem_post(&held.go);
    pthread_join(thread, NULL);
    stats = stats_now();
    stop_good(&options);
    assert_true(stats.waits >= 1);
    assert_true(stats.longest_wait_ns > 0 && stats.longest_wait_ns <= stats.wait_ns);
    read_good(&held.trace, count_logs, &logs, "much");
    assert_int_equal(logs, 20000);
    held_free(&held);
    alone(false);
}

/* MARK: The thread that reads writes, too */

#define LINE 100
static size_t lines;

static void log_lines(void)
{
    for (size_t i = 0; i < lines; i++)
        trail_logf(0, "reader", "%zu %0*d", i, LINE, 0);
}

/* More than `memory`, but less than twice as much: everything is kept, and no thread waits. */
TEST(sink_that_logs)
{
    trail_options options = {.memory = 4 * BLOCK, .generation_ns = HOUR_NS, .no_symbols = true};
    for (size_t i = 0; i < FORMATS; i++) {
        struct held held = {.work = log_lines};
        unsigned long logs = 0;
        options.format = all_formats[i];
        if (options.format < 11)
            continue;
        lines = 5 * BLOCK / LINE;
        held_start(&held, &options);
        assert_int_equal(stats_now().waits, 0);
        stop_good(&options);
        nothing_lost("a sink that logs");
        read_good(&held.trace, count_logs, &logs, "a sink that logs");
        assert_int_equal(logs, lines);
        held_free(&held);
    }
}

/* Much more than `memory`: losses are counted, the data before them are valid, and no thread
 * waits. */
TEST(sink_that_logs_too_much)
{
    trail_options options = {.memory = 4 * BLOCK, .generation_ns = HOUR_NS, .no_symbols = true};
    for (size_t i = 0; i < FORMATS; i++) {
        struct held held = {.work = log_lines};
        unsigned long logs = 0;
        trail_error err;
        options.format = all_formats[i];
        if (options.format < 11)
            continue;
        lines = 20 * BLOCK / LINE;
        held_start(&held, &options);
        assert_false(trail_stop(&err));
        assert_non_null(strstr(err.message, "its buffers were full"));
        assert_int_equal(stats_now().waits, 0);
        assert_true(stats_now().lost_events > 0);
        read_good(&held.trace, count_logs, &logs, "a sink that logs too much");
        assert_in_range(logs, 4 * BLOCK / (2 * LINE), lines - 1);
        held_free(&held);
    }
}

/* The same for a host thread between two calls of trail_read. */
TEST(reading_thread_that_logs)
{
    trail_options options = {.memory = 4 * BLOCK, .generation_ns = HOUR_NS, .no_symbols = true};
    trail_chunk chunk;
    trail_error err;
    if (!trail_start(&options, &err))
        fail_msg("%s", err.message);
    assert_int_equal(trail_read(&chunk, &err), 1);
    lines = 5 * BLOCK / LINE;
    log_lines();
    assert_int_equal(stats_now().waits, 0);
    assert_int_equal(stats_now().lost_events, 0);
    assert_true(trail_enabled());
    lines = 20 * BLOCK / LINE;
    log_lines();
    assert_int_equal(stats_now().waits, 0);
    assert_true(stats_now().lost_events > 0);
    options.wait_ns = 1;
    while (trail_read(&chunk, &err) == 1)
        ;
    assert_false(trail_stop(&err));
}

/* MARK: The least memory */

/* Too small a limit is raised to the minimum: each format yields a complete trace. */
TEST(little_memory)
{
    static const size_t sizes[] = {1, 4096, BLOCK - 1, BLOCK, 4 * BLOCK};
    for (size_t i = 0; i < FORMATS * 5; i++) {
        trail_options options = {.format = all_formats[i / 5], .memory = sizes[i % 5]};
        struct trace trace = {0};
        unsigned long logs = 0;
        char what[64];
        snprintf(what, sizeof what, "format %d, memory %zu", options.format, options.memory);
        start_good(&options, &trace);
        for (int n = 0; n < 1000; n++)
            trail_logf(0, "little", "%d", n);
        stop_good(&options);
        nothing_lost(what);
        read_good(&trace, count_logs, &logs, what);
        assert_int_equal(logs, options.format < 11 ? 0 : 1000);
        trace_free(&trace);
    }
}

/* MARK: CPU samples */

enum { SAMPLES = 10000, AT_ONCE = 2000 };

static void count_samples(trail_reader *reader, const trail_event *event, void *context)
{
    (void)reader;
    *(unsigned long *)context += event->kind == TRAIL_STACK_SAMPLE;
}

/* A trace contains more samples than the ring holds, if they do not come all at once. */
TEST(samples_are_drained)
{
    static const int formats[] = {19, 21, 22, 23, 26};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        trail_options options = {
            .format = formats[i], .generation_ns = HOUR_NS, .no_symbols = true};
        struct trace trace = {0};
        unsigned long samples = 0;
        uintptr_t pc = (uintptr_t)samples_are_drained;
        char what[64];
        snprintf(what, sizeof what, "format %d", options.format);
        start_good(&options, &trace);
        for (int n = 0; n < SAMPLES; n++) {
            while (n % AT_ONCE == 0 && sample_waiting() > 0)
                sched_yield();
            assert_true(trail_cpu_sample(&pc, 1));
        }
        stop_good(&options);
        assert_int_equal(stats_now().lost_samples, 0);
        read_good(&trace, count_samples, &samples, what);
        assert_int_equal(samples, SAMPLES);
        trace_free(&trace);
    }
}

/* If they come all at once, each sample is in the trace or counted as lost. */
TEST(lost_samples_are_counted)
{
    static const int formats[] = {19, 21, 22, 23, 26};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        trail_options options = {
            .format = formats[i], .generation_ns = HOUR_NS, .no_symbols = true};
        struct trace trace = {0};
        unsigned long samples = 0;
        uintptr_t pc = (uintptr_t)samples_are_drained;
        start_good(&options, &trace);
        for (int n = 0; n < SAMPLES; n++)
            (void)trail_cpu_sample(&pc, 1);
        stop_good(&options);
        read_good(&trace, count_samples, &samples, "samples");
        assert_int_equal(samples + stats_now().lost_samples, SAMPLES);
        trace_free(&trace);
    }
}

/* MARK: After the stop */

/* Many stacks and texts. */
static void fill_tables(void)
{
    for (unsigned i = 0; i < 20000; i++) {
        uintptr_t pcs[] = {i + 1, 2 * i + 1, 3 * i + 1, 4 * i + 1};
        char name[32];
        snprintf(name, sizeof name, "task %u", i);
        trail_task_end(trail_task_begin(0, name));
        (void)trail_cpu_sample(pcs, 4);
    }
}

static size_t left_after_trace(int format, bool fills)
{
    trail_options options = {.format = format, .generation_ns = HOUR_NS};
    struct trace trace = {0};
    start_good(&options, &trace);
    trail_log(0, "a", "thread");
    if (fills)
        fill_tables();
    stop_good(&options);
    read_good(&trace, NULL, NULL, "tables");
    trace_free(&trace);
    return memory_mapped();
}

/* A big trace leaves no more memory behind than an empty one, which is less than the tables of a
 * big one. */
TEST(memory_is_given_back)
{
    for (size_t i = 0; i < FORMATS; i++) {
        size_t empty = left_after_trace(all_formats[i], false);
        assert_int_equal(left_after_trace(all_formats[i], true), empty);
        assert_null(tracer.stacks[0].block);
        assert_null(tracer.stacks[1].block);
        assert_null(tracer.strings[0].block);
        assert_null(tracer.strings[1].block);
        assert_int_equal(tracer.queued + tracer.free_bytes + tracer.reserved, 0);
    }
}

/* MARK: Memory that ends anywhere */

enum { GOROUTINES = 100000, FEW = 1000, TASKS = 1500, GENERATIONS = 3, DEEP = 20 };

static trail_m m;
static trail_p p;
static trail_g goroutines[GOROUTINES];
static size_t shown; /* number of goroutines that the host lists */
static unsigned calls;

static void each_goroutine(void *context, void (*visit)(trail_g *g, void *arg), void *arg)
{
    (void)context;
    for (size_t i = 0; i < shown; i++)
        visit(&goroutines[i], arg);
}

static void nothing(void *context)
{
    (void)context;
}

/* Returns a different stack for each call. */
static size_t callers(void *context, uintptr_t *pcs, size_t max)
{
    size_t n = max < DEEP ? max : DEEP;
    (void)context;
    calls++;
    for (size_t i = 0; i < n; i++)
        pcs[i] = ((uintptr_t)calls << 8) + i + 1;
    return n;
}

/* Goroutine 0 runs, the others wait. */
static void many_begin(void)
{
    static const trail_host host = {.each_goroutine = each_goroutine,
                                    .stop_world = nothing,
                                    .start_world = nothing,
                                    .callers = callers};
    trail_host_set(&host);
    trail_m_start(&m);
    trail_p_init(&p, 0);
    trail_proc_start(&m, &p);
    for (size_t i = 0; i < GOROUTINES; i++) {
        trail_g_init(&goroutines[i]);
        if (i > 0)
            trail_go_create_blocked(&m, &goroutines[i], 0, TRAIL_NO_STACK);
    }
    trail_go_create(&m, &goroutines[0], 0, TRAIL_NO_STACK);
    trail_go_start(&m, &goroutines[0]);
}

static void many_end(void)
{
    trail_go_end(&m);
    trail_proc_stop(&m);
    trail_p_fini(&p);
    trail_m_exit(&m);
    trail_host_set(NULL);
}

static void write_tasks(void)
{
    for (int i = 0; i < TASKS; i++) {
        char name[64];
        snprintf(name, sizeof name, "a task with a name of its own, number %d", i);
        trail_task_end(trail_task_begin(0, name));
    }
}

/* Records a trace in which only the first `allowed` mappings succeed. Returns whether those were
 * enough. */
static bool record_with(const trail_options *options, long allowed)
{
    struct trace trace = {0};
    trail_error err;
    char what[64];
    bool ok;
    snprintf(what, sizeof what, "format %d, %ld mappings", options->format, allowed);
    memory_fail_after(allowed);
    ok = trail_start_sink(options, trace_append, &trace, &err);
    for (int i = 0; ok && i < GENERATIONS; i++) {
        write_tasks();
        trail_advance();
    }
    ok = trail_stop(&err) && ok;
    memory_fail_after(-1);
    if (trace.size > 16)
        read_good(&trace, NULL, NULL, what);
    ok = ok && !stats_now().lost_strings && !stats_now().lost_stacks;
    trace_free(&trace);
    return ok;
}

/*
 * Whichever request for memory fails first, of those for stacks, texts and statuses: the trace is
 * valid up to there.
 */
TEST(memory_ends_anywhere)
{
    static const struct {
        int format;
        trail_unwinder unwinder;
        size_t goroutines;
    } cases[] = {{21, TRAIL_UNWIND_HOST, FEW},
                 {23, TRAIL_UNWIND_HOST, FEW},
                 {23, TRAIL_UNWIND_NONE, GOROUTINES}};
    /* Every request, or every tenth if the loops are scaled down. */
    long step = how_many(100) < 100 ? 10 : 1;
    many_begin();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        trail_options options = {
            .format = cases[i].format, .generation_ns = HOUR_NS, .unwinder = cases[i].unwinder};
        long allowed = 0;
        shown = how_many(100) < 100 ? FEW : cases[i].goroutines;
        while (!record_with(&options, allowed))
            allowed += step;
        assert_in_range(allowed, 10, 10000);
    }
    many_end();
}

/* MARK: A busy machine */

/* The sink that the library sees as waiting for a CPU; NULL: none. It gets one when the stop has
 * checked it three times. */
static struct held *starved;
static unsigned asked; /* guarded by tracer.lock */

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker's names for what stands in for another */
bool __real_thread_is_runnable(pid_t thread);
bool __wrap_thread_is_runnable(pid_t thread);
bool __wrap_thread_is_runnable(pid_t thread)
{
    if (!starved)
        return __real_thread_is_runnable(thread);
    if (++asked == 3)
        sem_post(&starved->go);
    return true;
}
/* NOLINTEND(bugprone-reserved-identifier) */

/* The stop waits for it, even for much longer than wait_ns. */
TEST(starved_reader_is_waited_for)
{
    enum { LINES = 10000 };
    trail_options options = {.wait_ns = 50000000, .generation_ns = HOUR_NS, .no_symbols = true};
    struct held held = {0};
    unsigned long logs = 0;
    alone(true);
    held_start(&held, &options);
    for (int i = 0; i < LINES; i++)
        trail_logf(0, "starved", "%d %0*d", i, LINE, 0);
    asked = 0;
    starved = &held;
    stop_good(&options);
    starved = NULL;
    assert_true(asked >= 3);
    nothing_lost("a starved reader");
    read_good(&held.trace, count_logs, &logs, "a starved reader");
    assert_int_equal(logs, LINES);
    held_free(&held);
    alone(false);
}

/* MARK: Threads that come and go */

enum { GUESTS = 2000 };

static void *be_guest(void *arg)
{
    trail_log(0, "guest", arg);
    return NULL;
}

static void count_threads(trail_reader *reader, const trail_event *event, void *context)
{
    uint64_t *threads = context;
    (void)reader;
    if (event->kind == TRAIL_LOG) {
        threads[0]++;
        threads[1] += event->thread != (int64_t)threads[2];
        threads[2] = (uint64_t)event->thread;
    }
}

/*
 * Threads that run one after the other continue in the same buffers, which cost no more than those
 * of one thread. Each log belongs to its thread, and those of ended threads are in the generation
 * in which they were written.
 */
TEST(guests_share_buffers)
{
    static const int formats[] = {22, 23, 26};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        trail_options options = {
            .format = formats[i], .generation_ns = HOUR_NS, .no_symbols = true};
        unsigned n = how_many(GUESTS);
        uint64_t threads[3] = {0};
        struct trace trace = {0};
        size_t before = 0;
        alone(true);
        start_good(&options, &trace);
        for (unsigned guest = 0; guest < n; guest++) {
            pthread_t thread;
            if (guest == 1)
                before = memory_mapped();
            assert_int_equal(pthread_create(&thread, NULL, be_guest, "is there"), 0);
            pthread_join(thread, NULL);
            if (guest == n / 2)
                trail_advance();
        }
        /* Their buffers, and the strings. */
        assert_true(memory_mapped() <= before + (size_t)n * 400 + FIXED_BYTES);
        stop_good(&options);
        nothing_lost("guests");
        read_good(&trace, count_threads, threads, "guests");
        assert_int_equal(threads[0], n);
        assert_int_equal(threads[1], n);
        trace_free(&trace);
        alone(false);
    }
}

/* MARK: How soon the reader has what is written */

struct live {
    struct trace trace;
    size_t chunks; /* atomic */
};

static bool live_take(void *context, const trail_chunk *chunk)
{
    struct live *live = context;
    bool good = trace_append(&live->trace, chunk);
    __atomic_fetch_add(&live->chunks, 1, __ATOMIC_RELEASE);
    return good;
}

static size_t live_chunks(const struct live *live)
{
    return __atomic_load_n(&live->chunks, __ATOMIC_ACQUIRE);
}

/*
 * Writes until the reader, which was idle once it had delivered the header, has got a buffer, and waits until it has
 * delivered all and waits itself.
 */
static void live_begin(const struct live *live)
{
    size_t queued;
    while (live_chunks(live) == 0)
        sched_yield();
    while (live_chunks(live) == 1)
        trail_logf(0, "live", "%0*d", LINE, 0);
    do {
        read_end_sink();
        pthread_mutex_lock(&tracer.lock);
        queued = tracer.queued;
        pthread_mutex_unlock(&tracer.lock);
    } while (queued > 0);
}

/* Full buffers, too few to wake the reader, come after the time that was asked for: within it, or not for an hour. */
TEST(live_readers_get_full_buffers)
{
    static const int64_t waits[] = {0, 1000000, HOUR_NS};
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        trail_options options = {
            .format = 19, .generation_ns = HOUR_NS, .live_ns = waits[i], .no_symbols = true};
        struct live live = {0};
        trail_error err;
        unsigned long logs = 0;
        alone(true);
        if (!trail_start_sink(&options, live_take, &live, &err))
            fail_msg("%s", err.message);
        live_begin(&live);
        size_t before = live_chunks(&live);
        for (int line = 0; line < 3 * BLOCK / LINE; line++)
            trail_logf(0, "live", "%0*d", LINE, 0);
        while (waits[i] != HOUR_NS && live_chunks(&live) == before)
            sched_yield();
        if (waits[i] == HOUR_NS) {
            usleep(300000);
            assert_int_equal(live_chunks(&live), before);
        }
        stop_good(&options);
        read_good(&live.trace, count_logs, &logs, "live");
        trace_free(&live.trace);
        alone(false);
    }
}

/* MARK: Waits for other threads */

/* Its own buffer is too small for this. */
static void *log_more(void *arg)
{
    (void)arg;
    for (int i = 0; i < 100; i++)
        trail_logf(0, "more", "%d %0100d", i, 0);
    return NULL;
}

/* A quiet thread takes no lock; a thread that waits for one is counted, with the length of its
 * wait. */
TEST(waits_for_locks_are_counted)
{
    trail_options options = {.generation_ns = HOUR_NS, .no_symbols = true};
    struct held held = {0};
    unsigned long logs = 0;
    trail_stats stats;
    pthread_t thread;
    alone(true);
    held_start(&held, &options);
    pthread_mutex_lock(&tracer.lock);
    assert_int_equal(pthread_create(&thread, NULL, be_guest, "is there"), 0);
    pthread_join(thread, NULL);
    assert_int_equal(pthread_create(&thread, NULL, log_more, NULL), 0);
    /* The field of glibc's lock shows that another thread waits. */
    while (__atomic_load_n(&tracer.lock.__data.__lock, __ATOMIC_RELAXED) < 2)
        sched_yield();
    pthread_mutex_unlock(&tracer.lock);
    pthread_join(thread, NULL);
    stats = stats_now();
    assert_int_equal(stats.waits, 0);
    assert_true(stats.lock_waits >= 1);
    assert_true(stats.longest_lock_wait_ns > 0);
    assert_true(stats.longest_lock_wait_ns <= stats.lock_wait_ns);
    sem_post(&held.go);
    stop_good(&options);
    nothing_lost("locks");
    read_good(&held.trace, count_logs, &logs, "locks");
    assert_int_equal(logs, 101);
    held_free(&held);
    alone(false);
}

int main(void)
{
    /* A hang is a failure. */
    alarm(880);
    return run_all_tests(NULL, NULL);
}
