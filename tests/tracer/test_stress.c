/*
 * The tracer under load: threads that make every sort of call while traces start and stop, from one thread
 * and from several; counts that must agree; a clock that is not to be trusted. Each trace is read back.
 *
 * TRAIL_TEST_COUNT scales the loops (in percent of the usual), TRAIL_TEST_FILTER names the test,
 * TRAIL_TEST_KEEP says where a trace is put that was refused.
 */
#include "load.h"
#include "stress.h"
#include "tracer/tracer.h"
#include "world.h"

#include <pthread.h>
#include <unistd.h>

/* MARK: Counting */

struct counts {
    uint64_t tasks, logs;
};

static void count_event(trail_reader *reader, const trail_event *event, void *context)
{
    struct counts *counts = context;
    (void)reader;
    counts->tasks += event->kind == TRAIL_TASK_BEGIN;
    counts->logs += event->kind == TRAIL_LOG;
}

/* MARK: Starts and stops */

/* A thousand traces of a program that never rests: each is good, and all tasks are in one of them. */
TEST(cycles)
{
    struct counts counts = {0};
    struct trace trace = {0};
    unsigned n = how_many(1000);
    alone(true);
    load_begin(4, 2);
    for (unsigned i = 0; i < n; i++) {
        trail_options options = {.format = all_formats[i % FORMATS],
                                 .generation_ns = i % 3 ? HOUR_NS : 1000000,
                                 .unwinder = i % 4 ? TRAIL_UNWIND_FRAME_POINTERS : ANY_UNWINDER,
                                 .no_symbols = i % 20 != 0};
        char what[64];
        snprintf(what, sizeof what, "cycle %u, format %d", i, options.format);
        start_good(&options, &trace);
        load_wait(4 + i % 5 * 4);
        if (i % 2)
            trail_advance();
        stop_good(&options);
        nothing_lost(what);
        read_good(&trace, count_event, &counts, what);
    }
    load_end();
    alone(false);
    /* 1.7 has no tasks, and gives no IDs. */
    assert_int_equal(counts.tasks, load_counts().tasks);
    assert_true(counts.tasks > 0);
    trace_free(&trace);
}

/* MARK: Starts and stops from several threads */

enum { STARTERS = 4 };

struct starter {
    pthread_t thread;
    pthread_barrier_t *barrier;
    unsigned number, rounds;
    uint64_t random;
    struct trace trace;
    trail_error err;
    unsigned traces;
    bool won;
    const char *complaint;
};

static void *start_at_once(void *arg)
{
    struct starter *starter = arg;
    for (unsigned i = 0; i < starter->rounds; i++) {
        trail_options options = {.format = all_formats[i % FORMATS],
                                 .unwinder = TRAIL_UNWIND_FRAME_POINTERS,
                                 .no_symbols = true};
        pthread_barrier_wait(starter->barrier);
        starter->won = trail_start_sink(&options, trace_append, &starter->trace, &starter->err);
        pthread_barrier_wait(starter->barrier);
        /* Here the test checks which one won. */
        pthread_barrier_wait(starter->barrier);
        if (!trail_stop(&starter->err))
            starter->complaint = starter->err.message;
        if (trail_enabled())
            starter->complaint = "a stop returned, and the trace is on";
        pthread_barrier_wait(starter->barrier);
        /* Here it reads the trace. */
    }
    return NULL;
}

static void look_at_winner(struct starter *starters, pthread_barrier_t *barrier,
                           struct counts *counts)
{
    struct starter *winner = NULL;
    for (unsigned i = 0; i < STARTERS; i++) {
        if (starters[i].won) {
            assert_null(winner);
            winner = &starters[i];
        } else {
            assert_int_equal(starters[i].err.code, TRAIL_USAGE);
            assert_string_equal(starters[i].err.message, "tracing is already enabled");
        }
    }
    assert_non_null(winner);
    load_wait(1);
    pthread_barrier_wait(barrier);
    pthread_barrier_wait(barrier);
    for (unsigned i = 0; i < STARTERS; i++) {
        if (starters[i].complaint)
            fail_msg("%s", starters[i].complaint);
    }
    read_good(&winner->trace, count_event, counts, "one of several starts");
}

/* Of simultaneous starts one wins, the others fail; simultaneous stops all return when it is over. */
TEST(one_start_wins)
{
    struct starter starters[STARTERS] = {{0}};
    struct counts counts = {0};
    pthread_barrier_t barrier;
    unsigned rounds = how_many(100);
    pthread_barrier_init(&barrier, NULL, STARTERS + 1);
    alone(true);
    load_begin(2, 1);
    for (unsigned i = 0; i < STARTERS; i++) {
        starters[i].barrier = &barrier;
        starters[i].rounds = rounds;
        assert_int_equal(pthread_create(&starters[i].thread, NULL, start_at_once, &starters[i]), 0);
    }
    for (unsigned i = 0; i < rounds; i++) {
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        look_at_winner(starters, &barrier, &counts);
    }
    for (unsigned i = 0; i < STARTERS; i++) {
        pthread_join(starters[i].thread, NULL);
        trace_free(&starters[i].trace);
    }
    load_end();
    alone(false);
    assert_int_equal(counts.tasks, load_counts().tasks);
    pthread_barrier_destroy(&barrier);
}

/* Whoever started a trace has it, whole, though another one has stopped it meanwhile. */
static void *start_and_stop(void *arg)
{
    struct starter *starter = arg;
    for (unsigned i = 0; i < starter->rounds && !starter->complaint; i++) {
        trail_options options = {.format = all_formats[random_below(&starter->random, FORMATS)],
                                 .unwinder = TRAIL_UNWIND_FRAME_POINTERS,
                                 .no_symbols = true};
        bool won = trail_start_sink(&options, trace_append, &starter->trace, &starter->err);
        if (random_below(&starter->random, 2))
            trail_advance();
        if (!trail_stop(&starter->err))
            starter->complaint = starter->err.message;
        if (!won)
            continue;
        if (trace_read(&starter->trace, NULL, NULL, &starter->err) < 0)
            starter->complaint = starter->err.message;
        starter->traces++;
        starter->trace.size = 0;
    }
    return NULL;
}

TEST(any_start_any_stop)
{
    struct starter starters[STARTERS] = {{0}};
    unsigned traces = 0;
    alone(true);
    load_begin(2, 1);
    for (unsigned i = 0; i < STARTERS; i++) {
        starters[i].rounds = how_many(200);
        starters[i].random = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
        assert_int_equal(pthread_create(&starters[i].thread, NULL, start_and_stop, &starters[i]),
                         0);
    }
    for (unsigned i = 0; i < STARTERS; i++) {
        pthread_join(starters[i].thread, NULL);
        trace_free(&starters[i].trace);
        traces += starters[i].traces;
    }
    load_end();
    alone(false);
    for (unsigned i = 0; i < STARTERS; i++) {
        if (starters[i].complaint)
            fail_msg("%s", starters[i].complaint);
    }
    assert_true(traces > 0);
}

/* MARK: Sixteen threads */

/* With threads announced and not, what was logged between two moments of rest is read, no more, no less. */
TEST(sixteen_threads)
{
    struct trace trace = {0};
    for (size_t i = 0; i < FORMATS; i++) {
        trail_options options = {
            .format = all_formats[i], .generation_ns = 5000000, .unwinder = ANY_UNWINDER};
        struct counts counts = {0};
        uint64_t logs;
        char what[64];
        snprintf(what, sizeof what, "sixteen threads, format %d", options.format);
        alone(true);
        load_begin(8, 8);
        load_wait(1);
        load_pause();
        logs = load_counts().logs;
        start_good(&options, &trace);
        load_resume();
        load_wait(how_many(100));
        load_pause();
        logs = load_counts().logs - logs;
        stop_good(&options);
        load_resume();
        nothing_lost(what);
        read_good(&trace, count_event, &counts, what);
        load_end();
        alone(false);
        if (options.format == 7)
            assert_int_equal(counts.logs, 0);
        else
            assert_int_equal(counts.logs, logs);
    }
    trace_free(&trace);
}

/* MARK: Clocks */

static uint64_t clock_now = UINT64_C(1) << 40; /* atomic */
static __thread uint64_t clock_random;

/* Goes on and goes back, by up to 10 ms, as each call likes. */
static uint64_t bad_clock(void)
{
    uint64_t now;
    if (!clock_random)
        clock_random = (uint64_t)(uintptr_t)&clock_random * UINT64_C(0x9e3779b97f4a7c15) | 1;
    now = __atomic_add_fetch(&clock_now, random_below(&clock_random, 20000), __ATOMIC_RELAXED);
    return now + random_below(&clock_random, 10000000) - random_below(&clock_random, 10000000);
}

/* Between two events of a batch no time passes that is longer than this test, or negative. */
static void check_steps(const struct trace *trace, const char *what)
{
    trail_error err;
    trail_source *source = trail_source_open_memory(trace->data, trace->size, &err);
    trail_records *records = trail_records_open(source, &err);
    const trail_record *record;
    int status;
    while ((status = trail_records_next(records, &record)) > 0) {
        if (record->args && record->arg_name && strcmp(record->arg_name[0], "dt") == 0 &&
            record->arg[0] > UINT64_C(1) << 50)
            fail_msg("%s: the time of a %s goes back", what, record->name);
    }
    assert_int_equal(status, 0);
    trail_records_close(records);
    trail_source_close(source);
}

static void with_bad_clock(int format, struct trace *trace)
{
    trail_options options = {.format = format,
                             .generation_ns = HOUR_NS,
                             .unwinder = TRAIL_UNWIND_FRAME_POINTERS,
                             .no_symbols = true};
    struct counts counts = {0};
    char what[64];
    trail_error err;
    long events;
    snprintf(what, sizeof what, "bad clock, format %d", format);
    start_good(&options, trace);
    for (int i = 0; i < 3; i++) {
        load_wait(10);
        trail_advance();
    }
    stop_good(&options);
    nothing_lost(what);
    check_steps(trace, what);
    events = trace_read(trace, count_event, &counts, &err);
    /* v1 has nothing but times: its readers may say that they are wrong. */
    if (events < 0 && (format >= 22 || err.code != TRAIL_TIME_ORDER))
        fail_msg("%s: %s", what, err.message);
    trace->size = 0;
}

/* A clock that goes back makes no trace that contradicts itself. */
TEST(clock_goes_back)
{
    struct trace trace = {0};
    struct clock good;
    trail_stop(NULL); /* makes sure that the tracer has its clock */
    good = tracer.clock;
    tracer.clock.counter = false;
    tracer.clock.injected = bad_clock;
    alone(true);
    load_begin(4, 2);
    for (unsigned i = 0; i < how_many(20); i++) {
        for (size_t j = 0; j < FORMATS; j++)
            with_bad_clock(all_formats[j], &trace);
    }
    load_end();
    alone(false);
    tracer.clock = good;
    trace_free(&trace);
}

int main(void)
{
    /* A hang is a failure. */
    alarm(880);
    return run_all_tests(NULL, NULL);
}
