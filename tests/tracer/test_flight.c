/*
 * The flight recorder under load: snapshots while recording continues, a stream beside it, dropped
 * generations. Other threads act at random (load.h); this one logs numbered marks, from which the
 * expected contents of each trace are computed.
 *
 * TRAIL_TEST_COUNT scales the loops (in percent), TRAIL_TEST_FILTER names the test, TRAIL_TEST_KEEP
 * names a file for a refused trace.
 */
#include "load.h"
#include "stress.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

static const int formats[] = {22, 23, 26};

/* MARK: Marks */

static unsigned next_mark;

static void marks(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        trail_logf(0, "mark", "%u", next_mark++);
    load_wait(20);
}

/* The marks of a trace, consecutive: [first, end). */
struct seen {
    unsigned first, end;
    bool any;
};

static void see_mark(trail_reader *reader, const trail_event *event, void *context)
{
    struct seen *seen = context;
    char text[32];
    trail_string category, message;
    unsigned number;
    if (event->kind != TRAIL_LOG)
        return;
    category = trail_reader_string(reader, event->log.category);
    message = trail_reader_string(reader, event->log.message);
    if (category.size != 4 || memcmp(category.data, "mark", 4) != 0)
        return;
    assert_true(message.size < sizeof text);
    memcpy(text, message.data, message.size);
    text[message.size] = '\0';
    number = (unsigned)strtoul(text, NULL, 10);
    if (seen->any)
        assert_int_equal(number, seen->end);
    else
        seen->first = number;
    seen->any = true;
    seen->end = number + 1;
}

static struct seen marks_in(struct trace *trace, const char *what)
{
    struct seen seen = {0};
    read_good(trace, see_mark, &seen, what);
    assert_true(seen.any);
    return seen;
}

/* MARK: Snapshots */

static bool take_snapshot(struct trace *trace, trail_error *err)
{
    int fd = memfd_create("snapshot", 0);
    uint64_t bytes;
    assert_true(fd >= 0);
    if (!trail_flight_snapshot(fd, &bytes, err)) {
        close(fd);
        return false;
    }
    trace->data = realloc(trace->data, bytes);
    trace->capacity = trace->size = bytes;
    assert_int_equal(pread(fd, trace->data, bytes, 0), (ssize_t)bytes);
    close(fd);
    return true;
}

static struct seen marks_in_snapshot(void)
{
    struct trace trace = {0};
    struct seen seen;
    trail_error err;
    if (!take_snapshot(&trace, &err))
        fail_msg("%s", err.message);
    seen = marks_in(&trace, "snapshot");
    trace_free(&trace);
    return seen;
}

static void start_flight(int format, int64_t min_age_ns, size_t max_bytes)
{
    trail_flight_options options = {
        .trace = {.format = format, .unwinder = ANY_UNWINDER, .generation_ns = HOUR_NS},
        .min_age_ns = min_age_ns,
        .max_bytes = max_bytes};
    trail_error err;
    if (!trail_flight_start(&options, &err))
        fail_msg("%s", err.message);
}

/* MARK: A stream beside it */

/* The recorder is on; a stream starts and stops. */
static void stream_within_flight(int format)
{
    trail_options options = {.format = format};
    struct trace stream = {0};
    struct seen seen;
    unsigned first = next_mark, begin, end;
    start_flight(format, HOUR_NS, (size_t)1 << 30);
    marks(10);
    begin = next_mark;
    start_good(&options, &stream);
    marks(10);
    seen = marks_in_snapshot();
    assert_int_equal(seen.first, first);
    assert_int_equal(seen.end, next_mark);
    marks(10);
    end = next_mark;
    assert_true(trail_stop(NULL));
    assert_true(trail_enabled());
    seen = marks_in(&stream, "stream within the flight recorder's time");
    assert_int_equal(seen.first, begin);
    assert_int_equal(seen.end, end);
    marks(10);
    seen = marks_in_snapshot();
    assert_int_equal(seen.first, first);
    assert_int_equal(seen.end, next_mark);
    trail_flight_stop();
    assert_false(trail_enabled());
    trace_free(&stream);
}

/* A stream is on; the recorder starts and stops. */
static void flight_within_stream(int format)
{
    trail_options options = {.format = format, .unwinder = ANY_UNWINDER};
    struct trace stream = {0};
    struct seen seen;
    unsigned first = next_mark, flight;
    start_good(&options, &stream);
    marks(10);
    flight = next_mark;
    start_flight(0, HOUR_NS, (size_t)1 << 30);
    marks(10);
    seen = marks_in_snapshot();
    assert_true(seen.first <= flight);
    assert_int_equal(seen.end, next_mark);
    trail_flight_stop();
    assert_true(trail_enabled());
    marks(10);
    stop_good(&options);
    seen = marks_in(&stream, "stream around the flight recorder's time");
    assert_int_equal(seen.first, first);
    assert_int_equal(seen.end, next_mark);
    trace_free(&stream);
}

static void each_format(void (*test)(int format), unsigned rounds)
{
    alone(true);
    load_begin(3, 1);
    for (unsigned i = 0; i < how_many(rounds); i++) {
        for (size_t f = 0; f < sizeof formats / sizeof *formats; f++)
            test(formats[f]);
    }
    load_end();
    alone(false);
}

TEST(a_stream_beside)
{
    each_format(stream_within_flight, 10);
}

TEST(beside_a_stream)
{
    each_format(flight_within_stream, 10);
}

/* MARK: What it forgets */

static void old_goes(int format)
{
    unsigned first = next_mark;
    struct seen seen;
    start_flight(format, 1, (size_t)256 << 10);
    for (int i = 0; i < 20; i++) {
        marks(3);
        load_wait(300);
        trail_advance();
    }
    marks(3);
    seen = marks_in_snapshot();
    assert_true(seen.first > first);
    assert_int_equal(seen.end, next_mark);
    trail_flight_stop();
}

TEST(it_forgets)
{
    each_format(old_goes, 3);
}

/* MARK: At once */

struct snapper {
    pthread_t thread;
    struct trace trace;
    trail_error err;
    bool done;
};

static void *snap(void *arg)
{
    struct snapper *snapper = arg;
    snapper->done = take_snapshot(&snapper->trace, &snapper->err);
    return NULL;
}

/* One snapshot is taken at a time; another call meanwhile fails with an error. */
static void two_at_once(int format)
{
    struct snapper snappers[2] = {{0}};
    start_flight(format, HOUR_NS, (size_t)1 << 30);
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 2; i++)
            assert_int_equal(pthread_create(&snappers[i].thread, NULL, snap, &snappers[i]), 0);
        for (int i = 0; i < 2; i++)
            pthread_join(snappers[i].thread, NULL);
        assert_true(snappers[0].done || snappers[1].done);
        for (int i = 0; i < 2; i++) {
            if (snappers[i].done)
                read_good(&snappers[i].trace, NULL, NULL, "one of two snapshots");
            else
                assert_non_null(strstr(snappers[i].err.message, "already"));
        }
    }
    trail_flight_stop();
    for (int i = 0; i < 2; i++)
        trace_free(&snappers[i].trace);
}

TEST(snapshots_at_once)
{
    each_format(two_at_once, 3);
}

/* MARK: A host of one goroutine */

static trail_m m;
static trail_p p;
static trail_g only;

static void list_only(void *context, void (*visit)(trail_g *g, void *arg), void *arg)
{
    (void)context;
    visit(&only, arg);
}

static void begin_only(void)
{
    static const trail_host host = {.each_goroutine = list_only};
    trail_host_set(&host);
    trail_m_start(&m);
    trail_p_init(&p, 0);
    trail_g_init(&only);
    trail_proc_start(&m, &p);
    trail_go_create(&m, &only, 0, 0);
    trail_go_start(&m, &only);
}

static void end_only(void)
{
    trail_go_end(&m);
    trail_proc_stop(&m);
    trail_p_fini(&p);
    trail_m_exit(&m);
    trail_host_set(NULL);
}

static void see_collection(trail_reader *reader, const trail_event *event, void *context)
{
    (void)reader;
    if (event->kind == TRAIL_RANGE_ACTIVE || event->kind == TRAIL_RANGE_END)
        *(unsigned *)context += event->kind == TRAIL_RANGE_ACTIVE ? 1 : 100;
}

/* A trace begins during a collection, in a generation in which no goroutine runs. */
TEST(collection_without_goroutines)
{
    alone(true);
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
        trail_options beside = {.format = formats[f], .generation_ns = HOUR_NS};
        struct trace trace = {0};
        unsigned seen = 0;
        trail_error err;
        start_flight(formats[f], HOUR_NS, (size_t)1 << 30);
        begin_only();
        assert_true(trail_gc_begin(&m, 0));
        trail_go_block(&m, TRAIL_BLOCK_SYNC, 0);
        trail_proc_stop(&m);
        assert_true(trail_start_sink(&beside, trace_append, &trace, &err));
        trail_advance();
        trail_proc_start(&m, &p);
        trail_go_unblock(&m, &only, 0);
        trail_go_start(&m, &only);
        assert_true(trail_gc_end(&m));
        if (!trail_stop(&err))
            fail_msg("%s", err.message);
        end_only();
        read_good(&trace, see_collection, &seen, "a collection under way");
        /* Active in both generations. */
        assert_int_equal(seen, 102);
        trail_flight_stop();
        trace_free(&trace);
    }
    alone(false);
}

/*
 * The memory of the running goroutine is initialized again, and a trace begins before the thread's
 * next call: until that call, the trace shows the former goroutine. The same if the thread is in a
 * system call.
 */
TEST(lost_before_the_trace)
{
#ifdef TRAIL_CHECK
    return; /* it ends at the misuse */
#endif
    alone(true);
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++)
        for (int in_call = 0; in_call < 2; in_call++) {
            trail_options beside = {.format = formats[f], .generation_ns = HOUR_NS};
            struct trace trace = {0};
            trail_error err;
            start_flight(formats[f], HOUR_NS, (size_t)1 << 30);
            begin_only();
            if (in_call)
                trail_syscall_enter(&m, 0);
            trail_g_init(&only);
            assert_true(trail_start_sink(&beside, trace_append, &trace, &err));
            /* A generation in which the thread makes no call. */
            trail_advance();
            trail_go_create(&m, &only, 0, 0);
            if (in_call)
                trail_proc_start(&m, &p);
            assert_true(trail_go_start(&m, &only));
            assert_false(trail_stop(&err));
            assert_int_equal(err.code, TRAIL_USAGE);
            assert_non_null(strstr(err.message, "trail_go_end is missing"));
            read_good(&trace, NULL, NULL, "a goroutine that was lost before");
            trace.size = 0;
            assert_true(take_snapshot(&trace, &err));
            read_good(&trace, NULL, NULL, "a snapshot");
            end_only();
            trail_flight_stop();
            trace_free(&trace);
        }
    alone(false);
}

/* MARK: While the world is stopped */

/*
 * While the world is stopped no generation ends, so there is no snapshot, and a stream beside the
 * recorder does not end properly. Both are reported, without waiting for a reader that has nothing
 * to read. A hang is a failure.
 */
TEST(world_is_stopped)
{
    alone(true);
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
        trail_flight_options options = {
            .trace = {.format = formats[f], .generation_ns = HOUR_NS, .wait_ns = HOUR_NS}};
        trail_options beside = {.format = formats[f]};
        struct snapper other = {0};
        struct trace trace = {0};
        trail_error err;
        assert_true(trail_flight_start(&options, &err));
        assert_true(trail_start_sink(&beside, trace_append, &trace, &err));
        begin_only();
        assert_true(trail_stw_begin(&m, TRAIL_STW_GC_MARK_TERM, 0));
        assert_false(take_snapshot(&trace, &err));
        assert_non_null(strstr(err.message, "has stopped the world"));
        assert_int_equal(pthread_create(&other.thread, NULL, snap, &other), 0);
        pthread_join(other.thread, NULL);
        assert_false(other.done);
        assert_int_equal(other.err.code, TRAIL_USAGE);
        assert_non_null(strstr(other.err.message, "the world stays stopped"));
        assert_false(trail_stop(&err));
        assert_int_equal(err.code, TRAIL_TRUNCATED);
        assert_non_null(strstr(err.message, "the world stays stopped"));
        assert_true(trail_stw_end(&m));
        end_only();
        trace_free(&trace);
        assert_true(take_snapshot(&trace, &err));
        read_good(&trace, NULL, NULL, "after the pause");
        trail_flight_stop();
        trace_free(&trace);
    }
    alone(false);
}

int main(void)
{
    /* A hang is a failure. */
    alarm(880);
    return run_all_tests(NULL, NULL);
}
