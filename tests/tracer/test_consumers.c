/*
 * Consumers that stall, refuse, die or never read, and lack of memory: nothing hangs, losses are
 * counted, and delivered data can be read.
 *
 * TRAIL_TEST_COUNT scales the loops (in percent), TRAIL_TEST_FILTER names the test, TRAIL_TEST_KEEP
 * names a file for a refused trace.
 */
#include "load.h"
#include "one_thread.h"
#include "tracer/memory.h"
#include "tracer/tracer.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* How long a writer waits. A stop waits no longer either: where it must deliver everything, call
 * wait_until_read first. */
#define WAIT_NS 20000000
#define MEMORY  ((size_t)4 * 65536)

static const trail_when_full modes[] = {TRAIL_FULL_WAIT, TRAIL_FULL_END, TRAIL_FULL_DROP_OLDEST};
#define MODES 3

/* Calls `test` for each format with each when_full that it supports. */
static void each_way(void (*test)(const trail_options *options, const char *what))
{
    for (size_t i = 0; i < FORMATS * MODES; i++) {
        trail_options options = {.format = all_formats[i / MODES],
                                 .memory = MEMORY,
                                 .when_full = modes[i % MODES],
                                 .wait_ns = modes[i % MODES] == TRAIL_FULL_WAIT ? WAIT_NS : 0,
                                 .generation_ns = HOUR_NS,
                                 .unwinder = TRAIL_UNWIND_FRAME_POINTERS,
                                 .no_symbols = true};
        char what[64];
        if (options.format < 22 && options.when_full == TRAIL_FULL_DROP_OLDEST)
            continue;
        snprintf(what, sizeof what, "format %d, when full %d", options.format,
                 (int)options.when_full);
        test(&options, what);
    }
}

/* MARK: A program that logs numbers */

static trail_g g;

static void each_goroutine(void *context, void (*visit)(trail_g *g, void *arg), void *arg)
{
    (void)context;
    visit(&g, arg);
}

static void program_begin(void)
{
    thread_begin();
    trail_g_init(&g);
    trail_go_create(&m, &g, 0, TRAIL_NO_STACK);
    trail_go_start(&m, &g);
}

/* Formats without logs are filled with yields. */
static void one_event(unsigned number, int format)
{
    if (format >= 11) {
        trail_logf(0, "number", "%u %0100d", number, 0);
    } else {
        trail_go_sched(&m, 0);
        trail_go_start(&m, &g);
    }
}

static bool lost_something(void)
{
    trail_stats stats;
    trail_stats_get(&stats);
    return stats.lost_events || stats.lost_generations;
}

/* Writes events until the trace has ended or something was lost, one of which must happen. Returns
 * their number. */
static unsigned fill(const trail_options *options, const char *what)
{
    unsigned n = 0;
    while (trail_enabled() && !lost_something()) {
        one_event(n++, options->format);
        if (n % 200 == 0 && options->when_full == TRAIL_FULL_DROP_OLDEST)
            trail_advance();
        if (n > 1000000)
            fail_msg("%s: a million events, and nobody has read", what);
    }
    return n;
}

/* MARK: A sink that a test holds up */

enum { PARTS = 64 };

struct sink {
    sem_t go; /* once posted, it takes chunks */
    bool stalls;
    long refuse_at; /* index of the chunk that it refuses; negative: none */
    long chunks;
    struct trace parts[PARTS]; /* a new part begins at each new_file */
    size_t whole[PARTS];       /* v2: bytes of complete generations, if a later one followed */
    uint64_t generation;
    size_t count;
};

static void sink_init(struct sink *sink, bool stalls, long refuse_at)
{
    *sink = (struct sink){.stalls = stalls, .refuse_at = refuse_at};
    sem_init(&sink->go, 0, 0);
}

static void sink_free(struct sink *sink)
{
    for (size_t i = 0; i < PARTS; i++)
        trace_free(&sink->parts[i]);
    sem_destroy(&sink->go);
}

static bool sink_take(void *context, const trail_chunk *chunk)
{
    struct sink *sink = context;
    if (sink->stalls) {
        while (sem_wait(&sink->go) != 0)
            ;
        sink->stalls = false;
    }
    if (sink->chunks++ == sink->refuse_at)
        return false;
    if (chunk->new_file && sink->count < PARTS)
        sink->count++;
    if (chunk->generation > sink->generation)
        sink->whole[sink->count - 1] = sink->parts[sink->count - 1].size;
    if (chunk->generation)
        sink->generation = chunk->generation;
    return trace_append(&sink->parts[sink->count - 1], chunk);
}

static void start_sink(const trail_options *options, struct sink *sink)
{
    trail_error err;
    if (!trail_start_sink(options, sink_take, sink, &err))
        fail_msg("format %d: %s", options->format, err.message);
}

/* A trace that has ended by itself is completed and delivered without a stop. */
static void wait_until_read(void)
{
    bool over;
    if (trail_enabled())
        return;
    do {
        sched_yield();
        pthread_mutex_lock(&tracer.lock);
        over = !tracer.active && !tracer.pendings;
        pthread_mutex_unlock(&tracer.lock);
    } while (!over);
}

/* MARK: Reading numbers */

struct numbers {
    long first, last;
    long count;
    unsigned long empty; /* lost strings */
    bool in_order;
};

static void read_number(trail_reader *reader, const trail_event *event, void *context)
{
    struct numbers *numbers = context;
    trail_string text;
    long number;
    if (event->kind != TRAIL_LOG)
        return;
    text = trail_reader_string(reader, event->log.message);
    if (text.size == 0) {
        numbers->empty++;
        return;
    }
    number = text.size > 100 ? strtol(text.data, NULL, 10) : -1;
    if (numbers->count++ == 0)
        numbers->first = number;
    else if (number <= numbers->last)
        numbers->in_order = false;
    numbers->last = number;
}

/* All parts are valid and their numbers increase; without DROP_OLDEST, none is missing before the
 * last. */
static void check_parts(struct sink *sink, const trail_options *options, unsigned made,
                        const char *what)
{
    struct numbers numbers = {.in_order = true};
    trail_stats stats;
    assert_in_range(sink->count, 1, PARTS - 1);
    for (size_t i = 0; i < sink->count; i++)
        read_good(&sink->parts[i], read_number, &numbers, what);
    if (options->format < 11)
        return;
    trail_stats_get(&stats);
    if (!numbers.in_order || numbers.empty > stats.lost_strings)
        fail_msg("%s: the numbers are not in order", what);
    if (options->when_full == TRAIL_FULL_DROP_OLDEST)
        return;
    assert_int_equal(sink->count, 1);
    assert_true(numbers.count > 0);
    if (numbers.first != 0 || numbers.last != numbers.count - 1 || numbers.count > made)
        fail_msg("%s: %ld numbers, from %ld to %ld, of %u", what, numbers.count, numbers.first,
                 numbers.last, made);
}

/* Stops the trace; the stop must report that not everything was delivered. */
static void stop_bad(const char *what, const char *message)
{
    trail_error err = {0};
    trail_stats stats;
    if (trail_stop(&err))
        fail_msg("%s: something was lost, and the stop did not say so", what);
    if (message && !strstr(err.message, message))
        fail_msg("%s: %s", what, err.message);
    trail_stats_get(&stats);
    if (!stats.lost_events && !stats.lost_bytes && !stats.lost_generations)
        fail_msg("%s: nothing was counted as lost", what);
    assert_false(trail_enabled());
}

/* A trace after the failure is as good as any other. */
static void check_next(const trail_options *options, const char *what)
{
    trail_options usual = {.format = options->format, .unwinder = TRAIL_UNWIND_FRAME_POINTERS};
    struct trace trace = {0};
    struct numbers numbers = {.in_order = true};
    start_good(&usual, &trace);
    for (unsigned i = 0; i < 100; i++)
        one_event(i, options->format);
    stop_good(&usual);
    nothing_lost(what);
    read_good(&trace, read_number, &numbers, what);
    assert_int_equal(numbers.count, options->format >= 11 ? 100 : 0);
    trace_free(&trace);
}

/* MARK: Stalls */

static void stall(const trail_options *options, const char *what)
{
    struct sink sink;
    unsigned made;
    sink_init(&sink, true, -1);
    start_sink(options, &sink);
    made = fill(options, what);
    sem_post(&sink.go);
    wait_until_read();
    stop_bad(what, NULL);
    check_parts(&sink, options, made, what);
    check_next(options, what);
    sink_free(&sink);
}

/* A consumer that takes nothing for a while, and then everything. */
TEST(consumer_stalls)
{
    program_begin();
    each_way(stall);
    program_end();
}

static void *stop_it(void *arg)
{
    (void)arg;
    (void)trail_stop(NULL);
    return NULL;
}

/* Abandoned sinks must stay valid: their thread returns to them. */
static void stall_for_good(const trail_options *usual, const char *what)
{
    trail_options brief = *usual, *options = &brief;
    static struct sink sinks[FORMATS * MODES];
    static size_t used;
    struct sink *sink = &sinks[used++];
    pthread_t stoppers[3];
    brief.wait_ns = WAIT_NS;
    sink_init(sink, true, -1);
    start_sink(options, sink);
    (void)fill(options, what);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&stoppers[i], NULL, stop_it, NULL), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(stoppers[i], NULL);
    assert_false(trail_enabled());
    check_next(options, what);
    sem_post(&sink->go);
    check_next(options, what);
    /* Its thread takes at most one more chunk, at an unknown time: it keeps `sink`. */
}

/* A consumer that never takes anything again: every stop abandons it after its time limit. */
TEST(consumer_stalls_for_good)
{
    program_begin();
    each_way(stall_for_good);
    program_end();
}

static void stall_under_load(const trail_options *options, const char *what)
{
    struct sink sink;
    sink_init(&sink, true, -1);
    load_begin(4, 2);
    load_wait(1);
    /* A start fails if the trace is full before it returns: no thread may fill it. */
    load_pause();
    start_sink(options, &sink);
    load_resume();
    while (trail_enabled() && !lost_something()) {
        load_wait(20);
        if (options->when_full == TRAIL_FULL_DROP_OLDEST)
            trail_advance();
    }
    sem_post(&sink.go);
    load_wait(10);
    wait_until_read();
    stop_bad(what, NULL);
    /* With DROP_OLDEST, any generation may have been lost. */
    for (size_t i = 0; i < sink.count; i++) {
        if (sink.parts[i].size > 16 || options->when_full != TRAIL_FULL_DROP_OLDEST)
            read_good(&sink.parts[i], NULL, NULL, what);
    }
    load_end();
    sink_free(&sink);
}

/* A trace that ends while the program is busy is consistent up to its last event. */
TEST(consumer_stalls_under_load)
{
    alone(true);
    each_way(stall_under_load);
    alone(false);
}

/* MARK: Refusals */

static void refuse_at(const trail_options *options, const char *what, long chunk)
{
    struct sink sink;
    sink_init(&sink, false, chunk);
    start_sink(options, &sink);
    /* The header is refused at once; later chunks as soon as there is something to deliver. */
    for (unsigned n = 0; trail_enabled(); n++) {
        one_event(n, options->format);
        if (n % 1000 == 999)
            trail_advance();
        if (n > 10000000)
            fail_msg("%s: the consumer has refused, and it goes on", what);
    }
    one_event(0, options->format);
    stop_bad(what, "the consumer of the trace ended it");
    /* Nothing comes after a refusal. */
    assert_int_equal(sink.chunks, chunk + 1);
    for (size_t i = 0; i < sink.count; i++) {
        if (i == sink.count - 1 && sink.whole[i] <= 16)
            continue;
        if (i == sink.count - 1)
            sink.parts[i].size = sink.whole[i];
        read_good(&sink.parts[i], NULL, NULL, what);
    }
    sink_free(&sink);
}

static void refuse(const trail_options *options, const char *what)
{
    static const long chunks[] = {0, 1, 2, 5, 20};
    trail_options wide = *options;
    /* It refuses before the buffers are full. */
    wide.memory = 0;
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++)
        refuse_at(&wide, what, chunks[i]);
    check_next(options, what);
}

TEST(consumer_refuses)
{
    program_begin();
    each_way(refuse);
    program_end();
}

/* MARK: Deaths */

/* Forks a reader of the descriptor, or a process that does not read; it runs until it is killed. */
static pid_t make_reader(int *to, bool reads)
{
    char bytes[4096];
    int ends[2];
    pid_t child;
    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(ends[1]);
        while (!reads || read(ends[0], bytes, sizeof bytes) >= 0) {
            if (!reads)
                pause();
        }
        _exit(0);
    }
    close(ends[0]);
    *to = ends[1];
    return child;
}

static void kill_reader(pid_t child)
{
    int status;
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
}

static void die(const trail_options *options, const char *what)
{
    trail_error err;
    int to;
    pid_t child = make_reader(&to, true);
    if (!trail_start_fd(options, to, &err))
        fail_msg("%s: %s", what, err.message);
    for (unsigned n = 0; n < 1000; n++)
        one_event(n, options->format);
    kill_reader(child);
    for (unsigned n = 1000; trail_enabled(); n++) {
        one_event(n, options->format);
        if (n % 1000 == 0)
            trail_advance();
    }
    stop_bad(what, "cannot write the trace: Broken pipe");
    close(to);
    check_next(options, what);
}

/* The consumer at the other end of a pipe is killed. SIGPIPE keeps its default action, which would
 * end the test. */
TEST(consumer_is_killed)
{
    program_begin();
    each_way(die);
    program_end();
}

static void stop_in_pipe(const trail_options *usual, const char *what)
{
    trail_options brief = *usual, *options = &brief;
    trail_error err;
    int to;
    pid_t child = make_reader(&to, false);
    brief.wait_ns = WAIT_NS;
    if (!trail_start_fd(options, to, &err))
        fail_msg("%s: %s", what, err.message);
    /* The tracer has its own copy of the descriptor. */
    close(to);
    (void)fill(options, what);
    assert_false(trail_stop(&err));
    check_next(options, what);
    kill_reader(child);
    check_next(options, what);
}

/* A consumer that lives but does not read: the library's thread is blocked in a write. */
TEST(pipe_is_full)
{
    program_begin();
    each_way(stop_in_pipe);
    program_end();
}

/* MARK: trail_read */

static void never_read(const trail_options *usual, const char *what)
{
    trail_options brief = *usual, *options = &brief;
    trail_chunk chunk;
    trail_error err;
    brief.wait_ns = WAIT_NS;
    if (!trail_start(options, &err))
        fail_msg("%s: %s", what, err.message);
    (void)fill(options, what);
    stop_bad(what, NULL);
    assert_int_equal(trail_read(&chunk, &err), 0);
    check_next(options, what);
}

TEST(nobody_reads)
{
    program_begin();
    each_way(never_read);
    program_end();
}

struct reading {
    struct trace trace;
    int status;
    trail_error err;
};

static void *read_all(void *arg)
{
    struct reading *reading = arg;
    trail_chunk chunk;
    while ((reading->status = trail_read(&chunk, &reading->err)) > 0)
        (void)trace_append(&reading->trace, &chunk);
    return NULL;
}

static void two_read(const trail_options *usual, const char *what)
{
    trail_options patient = *usual, *options = &patient;
    struct reading reading[2] = {{.status = 2}, {.status = 2}};
    struct numbers numbers = {.in_order = true};
    pthread_t threads[2];
    trail_chunk chunk;
    trail_error err;
    int loser, batch = options->format >= 22 && options->when_full != TRAIL_FULL_DROP_OLDEST;
    patient.wait_ns = 0;
    if (!trail_start(options, &err))
        fail_msg("%s: %s", what, err.message);
    /* The header, in v2 a first batch, unless that may still be given up: then there is nothing, and whoever comes first is inside for long. */
    for (int n = 0; n < 1 + batch; n++) {
        assert_int_equal(trail_read(&chunk, &err), 1);
        for (int i = 0; i < 2; i++)
            (void)trace_append(&reading[i].trace, &chunk);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, read_all, &reading[i]), 0);
    }
    while (pthread_tryjoin_np(threads[0], NULL) != 0 && pthread_tryjoin_np(threads[1], NULL) != 0)
        sched_yield();
    loser = reading[0].status == -1 ? 0 : 1;
    assert_int_equal(reading[loser].status, -1);
    assert_string_equal(reading[loser].err.message, "another thread is reading the trace");
    one_event(0, options->format);
    stop_good(options);
    pthread_join(threads[!loser], NULL);
    assert_int_equal(reading[!loser].status, 0);
    read_good(&reading[!loser].trace, read_number, &numbers, what);
    assert_int_equal(numbers.count, options->format >= 11 ? 1 : 0);
    trace_free(&reading[0].trace);
    trace_free(&reading[1].trace);
}

TEST(of_two_readers_one_is_told)
{
    program_begin();
    each_way(two_read);
    program_end();
}

/* MARK: Memory that is not there */

/* Records a short trace in which only the first `allowed` mappings succeed. Returns whether those
 * were enough. */
static bool record_with(const trail_options *options, long allowed, const char *what)
{
    struct sink sink;
    trail_error err;
    trail_stats stats;
    bool ok;
    struct numbers numbers = {.in_order = true};
    sink_init(&sink, false, -1);
    memory_fail_after(allowed);
    ok = trail_start_sink(options, sink_take, &sink, &err);
    if (ok) {
        for (unsigned n = 0; n < 2000; n++) {
            one_event(n, options->format);
            if (n % 500 == 499)
                trail_advance();
        }
        wait_until_read();
        ok = trail_stop(&err);
    }
    memory_fail_after(-1);
    trail_stats_get(&stats);
    if (!ok)
        assert_true(err.code != TRAIL_OK && err.message[0]);
    if (trail_enabled())
        fail_msg("%s: it is still on", what);
    for (size_t i = 0; i < sink.count; i++) {
        if (sink.parts[i].size > 16)
            read_good(&sink.parts[i], read_number, &numbers, what);
    }
    ok = ok && !stats.lost_events && !stats.lost_strings && !stats.lost_stacks &&
         !stats.lost_bytes && !stats.lost_generations;
    if (ok)
        assert_int_equal(numbers.count, options->format >= 11 ? 2000 : 0);
    assert_true(numbers.in_order && numbers.empty <= stats.lost_strings);
    sink_free(&sink);
    return ok;
}

static void fail_everywhere(const trail_options *options, const char *what)
{
    trail_options wide = *options;
    char where[128];
    long allowed = -1;
    wide.memory = 0;
    do {
        snprintf(where, sizeof where, "%s, %ld mappings", what, ++allowed);
        if (allowed > 1000)
            fail_msg("%s: and it is not enough", where);
    } while (!record_with(&wide, allowed, where));
    assert_true(allowed > 2);
    check_next(options, what);
}

/* Memory runs out at the first, the second, ... request. */
TEST(memory_fails)
{
    program_begin();
    each_way(fail_everywhere);
    program_end();
}

/* MARK: A start during a stop */

static void *stop_and_note(void *ok)
{
    trail_error err;
    *(bool *)ok = trail_stop(&err);
    return NULL;
}

/*
 * The stop waits for the reading thread, which meanwhile starts another trace: that start fails at
 * once, and the trace being stopped is complete.
 */
TEST(start_during_stop)
{
    program_begin();
    for (size_t i = 0; i < FORMATS; i++) {
        trail_options options = {.format = all_formats[i], .wait_ns = HOUR_NS};
        struct trace trace = {0};
        trail_chunk chunk;
        trail_error err;
        pthread_t thread;
        bool stopped = false;
        assert_true(trail_start(&options, &err));
        for (unsigned n = 0; n < 100; n++)
            one_event(n, options.format);
        assert_int_equal(pthread_create(&thread, NULL, stop_and_note, &stopped), 0);
        while (trail_enabled())
            sched_yield();
        assert_false(trail_start(&options, &err));
        assert_int_equal(err.code, TRAIL_USAGE);
        assert_false(trail_start_sink(&options, trace_append, &trace, &err));
        while (trail_read(&chunk, &err) > 0)
            trace_append(&trace, &chunk);
        pthread_join(thread, NULL);
        assert_true(stopped);
        read_good(&trace, NULL, NULL, "start during a stop");
        trace_free(&trace);
    }
    program_end();
}

/* MARK: Live readers */

static bool count_bytes(void *context, const trail_chunk *chunk)
{
    if (!chunk->new_file)
        __atomic_fetch_add((size_t *)context, chunk->size, __ATOMIC_RELEASE);
    return true;
}

/*
 * A few full buffers reach a sink although they are far from the bytes that wake it, and nothing ends: the first
 * after a pause, and those that follow soon after it. A hang is a failure.
 */
TEST(few_bytes_arrive)
{
    program_begin();
    for (size_t i = 0; i < FORMATS; i++) {
        trail_options options = {.format = all_formats[i], .generation_ns = HOUR_NS};
        size_t received = 0, before;
        trail_error err;
        assert_true(trail_start_sink(&options, count_bytes, &received, &err));
        for (unsigned round = 0; round < 3; round++) {
            before = __atomic_load_n(&received, __ATOMIC_ACQUIRE);
            /* About 140 KB: more than the largest buffer holds. */
            for (unsigned n = 0; n < (options.format >= 11 ? 1200u : 14000u); n++)
                one_event(n, options.format);
            while (__atomic_load_n(&received, __ATOMIC_ACQUIRE) == before)
                nanosleep(&(struct timespec){0, 1000000}, NULL);
        }
        assert_true(trail_stop(&err));
    }
    program_end();
}

int main(void)
{
    /* A hang is a failure. */
    alarm(880);
    return run_all_tests(NULL, NULL);
}
