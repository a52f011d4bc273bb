/*
 * The reader of v1 traces, on traces of a few records made here by hand. A tick is one nanosecond,
 * and the first event is at tick 1000: times in expectations are ticks minus 1000. Expectations are
 * derived from §3 and §4 of the description of the formats.
 *
 * Expected streams are texts with a line per event: time, type, P and goroutine.
 */
#include <stdlib.h>
#include <trail/read.h>

#include "../lib/unit.h"
#include "bytes.h"
#include "wire/wire.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* MARK: Making traces */

static struct bytes trace;

/* Records also have a length where it is optional, which readers accept. */
static bool with_lengths;

/* Appends a record of a type; `numbers` are all of its uvarints, time fields first. */
static void put_record(unsigned type, const uint64_t *numbers, size_t count, size_t time_fields)
{
    if (count < time_fields + 3 && !with_lengths) {
        bytes_byte(&trace, type | (unsigned)(count - time_fields) << 6);
    } else {
        bytes_byte(&trace, type | 3 << 6);
        size_t length = 0;
        for (size_t i = 0; i < count; i++)
            length += uvarint_size(numbers[i]);
        bytes_number(&trace, length);
    }
    for (size_t i = 0; i < count; i++)
        bytes_number(&trace, numbers[i]);
}

#define EV(type, ...)                                                                              \
    put_record(V1_##type, (const uint64_t[]){__VA_ARGS__},                                         \
               COUNT(((const uint64_t[]){__VA_ARGS__})), 1)
#define EV15(type, ...)                                                                            \
    put_record(V1_##type, (const uint64_t[]){__VA_ARGS__},                                         \
               COUNT(((const uint64_t[]){__VA_ARGS__})), 2)

static void put_string(uint64_t id, const char *text)
{
    bytes_byte(&trace, V1_String);
    bytes_number(&trace, id);
    bytes_number(&trace, strlen(text));
    bytes_put(&trace, text, strlen(text));
}

static void frequency(void)
{
    EV(Frequency, 1000000000);
}

/* Header, first batch on P 0 at tick 1000, the P running, goroutine 1 created and running. */
static void begin(int minor)
{
    bytes_header(&trace, minor);
    EV(Batch, 0, 1000);
    EV(ProcStart, 0, 7);
    EV(GoCreate, 0, 1, 0, 0);
    EV(GoStart, 0, 1, 1);
}

#define BEGUN_V1 "0 ProcStart p0 g0\n0 GoCreate p0 g0\n0 GoStart p0 g1\n"

/* MARK: Reading them */

struct run {
    char text[20000];
    size_t size;
    long result; /* of the last call: 0 or -1 */
    trail_error err;
    trail_reader_stats stats;
    trail_repair repair[16];
    size_t repairs;
    uint64_t events;
};

static struct run run;

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    run.size += (size_t)vsnprintf(run.text + run.size, sizeof run.text - run.size, format, args);
    va_end(args);
    assert_true(run.size < sizeof run.text);
}

static void say_view(const trail_v1_event *events, long count)
{
    for (long i = 0; i < count; i++)
        say("%lld %s p%lld g%lld\n", (long long)events[i].time_ns,
            trail_v1_type_get(events[i].type)->name, (long long)events[i].proc,
            (long long)events[i].goroutine);
}

static void say_events(const trail_reader *reader, const trail_event *events, long count)
{
    for (long i = 0; i < count; i++) {
        const trail_event *ev = &events[i];
        say("%lld %s p%lld g%lld", (long long)ev->time_ns, v2_types[ev->wire].name,
            (long long)ev->proc, (long long)ev->goroutine);
        if (ev->kind == TRAIL_STATE_TRANSITION)
            say(" %lld: %d>%d %s", (long long)ev->transition.id, ev->transition.from,
                ev->transition.to, trail_reader_string(reader, ev->transition.reason).data);
        if (ev->kind == TRAIL_RANGE_BEGIN || ev->kind == TRAIL_RANGE_END)
            say(" %s", trail_reader_string(reader, ev->range.name).data);
        say("\n");
    }
}

static void read_with(const trail_reader_options *options)
{
    memset(&run, 0, sizeof run);
    trail_source *source = trail_source_open_memory(trace.data, trace.size, NULL);
    assert_non_null(source);
    trail_reader *reader = trail_reader_open(source, options, &run.err);
    assert_non_null(reader);
    const trail_event *events = NULL;
    const trail_v1_event *view = NULL;
    bool v1 = options->view == TRAIL_VIEW_V1;
    while ((run.result = v1 ? trail_reader_next_v1_batch(reader, &view)
                            : trail_reader_next_batch(reader, &events)) > 0) {
        run.events += (uint64_t)run.result;
        if (v1)
            say_view(view, run.result);
        else
            say_events(reader, events, run.result);
    }
    run.err = *trail_reader_error(reader);
    trail_reader_get_stats(reader, &run.stats);
    const trail_repair *repairs;
    run.repairs = trail_reader_repairs(reader, &repairs);
    for (size_t i = 0; i < run.repairs && i < COUNT(run.repair); i++)
        run.repair[i] = repairs[i];
    trail_reader_close(reader);
    trail_source_close(source);
}

static const trail_reader_options plain,
    view = {.view = TRAIL_VIEW_V1, .strict = true}, strict = {.strict = true},
    only_verdict = {.verdict_only = true}, partial = {.partial = true},
    repair_view = {.view = TRAIL_VIEW_V1, .strict = true, .repair = true},
    partial_view = {.view = TRAIL_VIEW_V1, .partial = true},
    strict_partial_view = {.view = TRAIL_VIEW_V1, .partial = true, .strict = true};

static void expect_good(const trail_reader_options *options, const char *text)
{
    read_with(options);
    if (run.result < 0)
        fail_msg("%s", run.err.message);
    assert_string_equal(run.text, text);
}

static void expect_error(const trail_reader_options *options, trail_code code, const char *message)
{
    read_with(options);
    assert_int_equal(run.result, -1);
    if (!strstr(run.err.message, message))
        fail_msg("got \"%s\", want \"%s\"", run.err.message, message);
    assert_int_equal(run.err.code, code);
}

/* MARK: Order (§3.3) */

/* The start is earlier in the file and has the same time: only the state orders them. */
TEST(test_start_waits_for_creation)
{
    bytes_header(&trace, 11);
    EV(Batch, 1, 1000);
    EV(ProcStart, 0, 8);
    EV(GoStart, 10, 2, 1);
    EV(Batch, 0, 1000);
    EV(ProcStart, 1, 7);
    EV(GoCreate, 9, 2, 0, 0);
    frequency();
    expect_good(&view, "0 ProcStart p1 g0\n"
                       "1 ProcStart p0 g0\n"
                       "10 GoCreate p0 g0\n"
                       "10 GoStart p1 g2\n");
}

TEST(test_order_against_time_is_rejected)
{
    begin(11);
    EV(GoUnblock, 50, 2, 2, 0);
    EV(Batch, 1, 1010);
    EV(ProcStart, 0, 8);
    EV(GoCreate, 0, 2, 0, 0);
    EV(GoWaiting, 0, 2);
    EV(GoStart, 30, 2, 3);
    frequency();
    expect_error(&view, TRAIL_TIME_ORDER, "time stamps out of order");
    assert_int_equal(run.size, 0);
    assert_int_equal(run.err.goroutine, 2);
    assert_int_equal(run.err.time_ns, 40);

    expect_good(&repair_view, BEGUN_V1 "10 ProcStart p1 g0\n"
                                       "10 GoCreate p1 g0\n"
                                       "10 GoWaiting p1 g2\n"
                                       "50 GoUnblock p0 g1\n"
                                       "50 GoStart p1 g2\n");
    assert_int_equal(run.repairs, 1);
    assert_int_equal(run.repair[0].kind, TRAIL_REPAIR_TIME);
    assert_int_equal(run.repair[0].time_ns, 50);
    assert_int_equal(run.repair[0].shift_ns, 10);
}

TEST(test_gap_in_a_sequence)
{
    begin(11);
    EV(GoCreate, 5, 2, 0, 0);
    EV(HeapAlloc, 1, 10);
    size_t bad = trace.size;
    EV(GoUnblock, 5, 2, 4, 0);
    EV(GoEnd, 5);
    frequency();
    expect_error(&view, TRAIL_INCONSISTENT, "no consistent ordering of events possible");
    assert_int_equal(run.size, 0);
    assert_int_equal(run.err.offset, bad);
    assert_int_equal(run.err.proc, 0);
    assert_int_equal(run.stats.good_bytes, bad);

    read_with(&strict_partial_view);
    assert_int_equal(run.result, -1);
    assert_string_equal(run.text, BEGUN_V1 "5 GoCreate p0 g1\n6 HeapAlloc p0 g1\n");

    /* Repaired, then the error. */
    read_with(&partial_view);
    assert_int_equal(run.result, -1);
    assert_int_equal(run.err.offset, bad);
    assert_string_equal(run.text, BEGUN_V1 "5 GoCreate p0 g1\n"
                                           "6 HeapAlloc p0 g1\n"
                                           "11 GoUnblock p0 g1\n"
                                           "16 GoEnd p0 g1\n");

    /* Forced into the order; the check then finds that goroutine 2 is not waiting. */
    expect_good(&repair_view, BEGUN_V1 "5 GoCreate p0 g1\n"
                                       "6 HeapAlloc p0 g1\n"
                                       "11 GoUnblock p0 g1\n"
                                       "16 GoEnd p0 g1\n");
    assert_int_equal(run.stats.repairs, 2);
    assert_int_equal(run.repair[0].kind, TRAIL_REPAIR_SEQUENCE);
    assert_int_equal(run.repair[0].offset, bad);
    assert_int_equal(run.repair[1].kind, TRAIL_REPAIR_STATE);
}

/* The entry of a goroutine stays after GoEnd: its ID cannot be created again. */
TEST(test_an_ended_goroutine_stays_ended)
{
    begin(11);
    EV(GoEnd, 5);
    EV(GoCreate, 5, 1, 0, 0);
    frequency();
    expect_error(&view, TRAIL_INCONSISTENT, "no consistent ordering of events possible");
    assert_non_null(strstr(run.err.message, "GoCreate needs goroutine 1"));
}

TEST(test_gc_has_a_global_sequence)
{
    begin(11);
    EV(Batch, 1, 1020);
    EV(ProcStart, 0, 8);
    EV(GCStart, 10, 0, 0);
    EV(GCDone, 10);
    EV(Batch, 0, 1030);
    EV(GCStart, 20, 1, 0);
    frequency();
    expect_good(&view, BEGUN_V1 "20 ProcStart p1 g0\n"
                                "30 GCStart p1000004 g0\n"
                                "40 GCDone p1 g0\n"
                                "50 GCStart p1000004 g0\n");
    begin(11);
    EV(GCStart, 10, 3, 0);
    frequency();
    expect_error(&view, TRAIL_INCONSISTENT, "GCStart needs sequence 3 where 0 is next");
}

/* MARK: Exits of system calls (§3.3, end) */

static void begin_blocking_call(void)
{
    begin(11);
    EV(GoSysCall, 10, 0); /* 10 */
    EV(GoSysBlock, 10);   /* 20 */
    EV(ProcStop, 0);      /* 20 */
    EV(HeapAlloc, 10, 1); /* 30 */
    EV(HeapAlloc, 10, 2); /* 40 */
}

TEST(test_exit_moves_to_where_it_returned)
{
    begin_blocking_call();
    EV(GoSysExit, 60, 1, 2, 1030); /* written at 100 */
    frequency();
    expect_good(&view, BEGUN_V1 "10 GoSysCall p0 g1\n"
                                "20 GoSysBlock p0 g1\n"
                                "20 ProcStop p0 g0\n"
                                "30 HeapAlloc p0 g0\n"
                                "30 GoSysExit p1000003 g1\n"
                                "40 HeapAlloc p0 g0\n");
}

TEST(test_exit_without_a_time_stays)
{
    begin_blocking_call();
    EV(GoSysExit, 60, 1, 2, 0);
    frequency();
    expect_good(&view, BEGUN_V1 "10 GoSysCall p0 g1\n"
                                "20 GoSysBlock p0 g1\n"
                                "20 ProcStop p0 g0\n"
                                "30 HeapAlloc p0 g0\n"
                                "40 HeapAlloc p0 g0\n"
                                "100 GoSysExit p1000003 g1\n");
}

TEST(test_exit_before_its_block)
{
    begin_blocking_call();
    EV(GoSysExit, 60, 1, 2, 1019);
    frequency();
    expect_error(&view, TRAIL_TIME_ORDER, "time stamps out of order");
    read_with(&repair_view);
    assert_int_equal(run.result, 0);
    assert_non_null(strstr(run.text, "\n100 GoSysExit p1000003 g1\n"));
    assert_int_equal(run.repairs, 1);
    assert_int_equal(run.repair[0].kind, TRAIL_REPAIR_SYSCALL_EXIT);
    assert_int_equal(run.repair[0].shift_ns, 1100 - 1019);
}

/* Many goroutines return at different or equal times, not in their own order. */
TEST(test_exits_in_the_future_come_in_order_of_time)
{
    enum { GOROUTINES = 16 };
    static const unsigned factors[] = {1, 2, 3, 5, 6, 7, 10, 11, 12, 15, 16};
    for (size_t n = 0; n < COUNT(factors); n++) {
        begin(11);
        for (uint64_t g = 2; g < 2 + GOROUTINES; g++)
            EV(GoCreate, 0, g, 0, 0);
        EV(GoBlock, 0, 0);
        for (uint64_t g = 2; g < 2 + GOROUTINES; g++) {
            EV(GoStart, 1, g, 1);
            EV(GoSysCall, 1, 0);
            EV(GoSysBlock, 1);
        }
        char want[2000] = "";
        size_t size = 0;
        for (unsigned i = 0; i < GOROUTINES; i++) /* two multiples of 17 have one time */
            EV(GoSysExit, 0, 2 + i, 2, 1100 + i * factors[n] % 17 / 2);
        for (unsigned time = 0; time < 9; time++)
            for (unsigned i = 0; i < GOROUTINES; i++)
                if (i * factors[n] % 17 / 2 == time)
                    size += (size_t)snprintf(want + size, sizeof want - size,
                                             "%u GoSysExit p1000003 g%u\n", 100 + time, 2 + i);
        EV(HeapAlloc, 100, 1);
        frequency();
        read_with(&view);
        if (run.result < 0)
            fail_msg("%s", run.err.message);
        assert_non_null(strstr(run.text, want));
    }
}

/* A goroutine that waits for something else has never blocked in a call. */
TEST(test_stray_exit)
{
    begin(11);
    EV(GoBlock, 10, 0);
    EV(GoSysExit, 60, 1, 2, 1030);
    frequency();
    expect_error(&view, TRAIL_INCONSISTENT, "stray syscall exit");
}

/* Delayed until its time, and before other events of that time; a start before that is wrong. */
TEST(test_exit_in_the_future)
{
    begin_blocking_call();
    EV(GoSysExit, 10, 1, 2, 1070); /* written at 50 */
    EV(HeapAlloc, 10, 3);          /* 60 */
    EV(HeapAlloc, 10, 4);          /* 70 */
    size_t end = trace.size;
    frequency();
    read_with(&view);
    assert_int_equal(run.result, 0);
    assert_non_null(strstr(run.text, "\n"
                                     "60 HeapAlloc p0 g0\n"
                                     "70 GoSysExit p1000003 g1\n"
                                     "70 HeapAlloc p0 g0\n"));
    trace.size = end;
    EV(ProcStart, 0, 7);
    EV(GoStart, 0, 1, 3); /* at 70 too, but its exit comes before it */
    frequency();
    read_with(&view);
    assert_int_equal(run.result, 0);
    trace.size = end;
    trace.size -= 3;
    EV(ProcStart, 0, 7);
    EV(GoStart, 0, 1, 3); /* at 60 */
    frequency();
    expect_error(&view, TRAIL_INCONSISTENT, "g 1 is not runnable before start");
}

/* MARK: Futile wake-ups (§3.5) */

static void put_futile(int minor, bool blocks)
{
    begin(minor);
    EV(GoCreate, 1, 2, 0, 0);
    EV(GoBlockRecv, 1, 0);
    EV(GoStart, 1, 2, 1);
    EV(GoUnblock, 1, 1, 2, 0); /* in vain ... */
    EV(GoBlock, 1, 0);
    EV(GoStart, 1, 1, 3);
    EV(FutileWakeup, 1);
    if (blocks)
        EV(GoBlockRecv, 0, 0); /* ... to here */
    frequency();
}

TEST(test_a_futile_wakeup_is_not_seen)
{
    put_futile(7, true);
    expect_good(&view, BEGUN_V1 "1 GoCreate p0 g1\n"
                                "2 GoBlockRecv p0 g1\n"
                                "3 GoStart p0 g2\n"
                                "5 GoBlock p0 g2\n");
    put_futile(7, false);
    read_with(&view);
    assert_non_null(strstr(run.text, "6 GoStart p0 g1\n7 FutileWakeup p0 g1\n"));
    assert_non_null(strstr(run.text, "4 GoUnblock p0 g2\n"));
}

/* Go >= 1.23 removes nothing, and cannot convert the event; up to 1.10 other rules apply. */
TEST(test_futile_wakeups_and_conversion)
{
    put_futile(11, true);
    expect_error(&plain, TRAIL_INCONSISTENT, "unexpected event type 36");
    assert_non_null(strstr(run.text, "\n6 GoStatus p0 g1 1: 0>3 \n"));
    put_futile(10, true);
    expect_good(&plain, "-1 Sync p-1 g-1\n"
                        "0 ProcStatus p0 g-1 0: 0>2 \n"
                        "1 GoStatus p0 g1 1: 0>3 \n"
                        "2 GoBlock p0 g1 1: 3>4 chan receive\n"
                        "3 GoStatus p0 g2 2: 0>3 \n"
                        "5 GoBlock p0 g2 2: 3>4 \n"
                        "6 Sync p-1 g-1\n");
    put_futile(10, false);
    read_with(&plain);
    assert_int_equal(run.result, 0);
    put_futile(11, true);
    read_with(&(trail_reader_options){.verdict_only = true});
    assert_int_equal(run.result, -1);
    read_with(&(trail_reader_options){.verdict = TRAIL_VERDICT_GO121});
    assert_int_equal(run.result, 0);
}

/* MARK: Checks (§3.6) */

static void wrong_proc_start(void)
{
    EV(ProcStart, 1, 7);
}
static void wrong_proc_stop(void)
{
    EV(ProcStop, 1);
}
static void wrong_stop_of_stopped(void)
{
    EV(GoBlock, 1, 0);
    EV(ProcStop, 1);
    EV(ProcStop, 1);
}
static void wrong_gc(void)
{
    EV(GCStart, 1, 0, 0);
    EV(GCStart, 1, 1, 0);
}
static void wrong_gc_end(void)
{
    EV(GCDone, 1);
}
static void wrong_stw(void)
{
    EV(STWStart, 1, 0);
    EV(STWStart, 1, 0);
}
static void wrong_stw_end(void)
{
    EV(STWDone, 1);
}
static void wrong_sweep(void)
{
    EV(GCSweepStart, 1, 0);
    EV(GCSweepStart, 1, 0);
}
static void wrong_sweep_end(void)
{
    EV(GCSweepDone, 1, 0, 0);
}
static void wrong_mark_assist(void)
{
    EV(GCMarkAssistStart, 1, 0);
    EV(GCMarkAssistStart, 1, 0);
}
static void wrong_second_start(void)
{
    EV(GoCreate, 1, 2, 0, 0);
    EV(GoStart, 1, 2, 1);
}
static void wrong_call_of_g0(void)
{
    EV(GoBlock, 1, 0);
    EV(GoSysCall, 1, 0);
}
static void wrong_task(void)
{
    EV(UserTaskCreate, 1, 5, 0, 0, 0);
    EV(UserTaskCreate, 1, 5, 0, 0, 0);
}
static void wrong_region(void)
{
    put_string(1, "outer");
    put_string(2, "inner");
    EV(UserRegion, 1, 5, 0, 1, 0);
    EV(UserRegion, 1, 5, 0, 2, 0);
    EV(UserRegion, 1, 5, 1, 1, 0);
}
static void wrong_region_mode(void)
{
    EV(UserRegion, 1, 5, 2, 0, 0);
}
static void wrong_unblock(void)
{
    EV(GoCreate, 1, 2, 0, 0);
    EV(Batch, 1, 1002);
    EV(ProcStart, 0, 8);
    EV(GoStart, 1, 2, 1);
    EV(GoSysCall, 1, 0);
    EV(GoSysBlock, 1);
    EV(ProcStop, 1);
    EV(GoSysExit, 1, 2, 2, 0);
    EV(GoStart, 1, 2, 3);
    EV(GoEnd, 1);
    EV(GoEnd, 1);
}

/* Each is an error for Go; with repairs, every event is kept. */
TEST(test_contradictions)
{
    static const struct {
        void (*put)(void);
        const char *message;
    } cases[] = {
        {wrong_proc_start, "p 0 is running before start"},
        {wrong_proc_stop, "p 0 is running a goroutine 1 during stop"},
        {wrong_stop_of_stopped, "p 0 is not running before stop"},
        {wrong_gc, "previous GC is not ended before a new one"},
        {wrong_gc_end, "bogus GC end"},
        {wrong_stw, "previous STW is not ended before a new one"},
        {wrong_stw_end, "bogus STW end"},
        {wrong_sweep, "previous sweeping is not ended before a new one"},
        {wrong_sweep_end, "bogus sweeping end"},
        {wrong_mark_assist, "previous mark assist is not ended before a new one"},
        {wrong_second_start, "p 0 is already running g 1 while start g 2"},
        {wrong_call_of_g0, "g 0 did GoSysCall"},
        {wrong_task, "task id conflicts (id:5)"},
        {wrong_region, "misuse of region in goroutine 1"},
        {wrong_region_mode, "invalid user region mode"},
        {wrong_unblock, "g 0 did GoEnd"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        begin(11);
        cases[i].put();
        frequency();
        expect_error(&view, TRAIL_INCONSISTENT, cases[i].message);
        assert_int_equal(run.size, 0);
        assert_true(run.err.offset > 16);
        expect_error(&strict, TRAIL_INCONSISTENT, cases[i].message);
        read_with(&repair_view);
        assert_int_equal(run.result, 0);
        assert_int_equal(run.events, run.stats.wire_events);
        assert_true(run.stats.repairs > 0);
        assert_int_equal(run.repair[0].kind, TRAIL_REPAIR_STATE);
    }
}

/* An error for Go, kept by a reader that is not strict. A verdict delivers them, too. */
TEST(test_misused_annotations_end_nothing)
{
    static void (*const cases[])(void) = {wrong_task, wrong_region, wrong_region_mode};
    for (size_t i = 0; i < COUNT(cases); i++) {
        begin(11);
        cases[i]();
        EV(HeapAlloc, 1, 77);
        frequency();
        read_with(&plain);
        assert_int_equal(run.result, 0);
        assert_int_equal(run.stats.misused, 1);
        uint64_t events = run.events;
        assert_non_null(strstr(run.text, "HeapAlloc"));
        read_with(&only_verdict);
        assert_int_equal(run.result, 0);
        assert_int_equal(run.events, events);
    }
}

/* Valid, although it looks odd: ends of things that began before the trace; wake-ups and creations
 * by the scheduler. */
TEST(test_what_is_no_contradiction)
{
    begin(11);
    EV(GCMarkAssistDone, 1);
    EV(UserRegion, 1, 5, 1, 0, 0);
    EV(UserTaskEnd, 1, 9, 0);
    EV(GoBlockNet, 1, 0);
    EV(GoUnblock, 1, 1, 2, 0); /* by goroutine 0, of a goroutine that waited for the network */
    EV(GoCreate, 1, 2, 0, 0);
    frequency();
    expect_good(&view, BEGUN_V1 "1 GCMarkAssistDone p0 g1\n"
                                "2 UserRegion p0 g1\n"
                                "3 UserTaskEnd p0 g1\n"
                                "4 GoBlockNet p0 g1\n"
                                "5 GoUnblock p1000002 g0\n"
                                "6 GoCreate p0 g0\n");
}

TEST(test_timers_have_their_own_lane)
{
    begin(10);
    EV(GoCreate, 1, 2, 0, 0);
    EV(GoBlock, 1, 0);
    EV(GoStart, 1, 2, 1);
    EV(GoUnblock, 1, 1, 2, 0);
    frequency();
    EV(TimerGoroutine, 2);
    read_with(&view);
    assert_int_equal(run.result, 0);
    assert_non_null(strstr(run.text, "4 GoUnblock p1000001 g2\n"));
}

/* MARK: Conversion (§4) */

TEST(test_start_of_a_trace)
{
    bytes_header(&trace, 21);
    EV(Batch, 0, 1000);
    EV(GoCreate, 0, 1, 0, 0);
    EV(GoCreate, 1, 2, 0, 0);
    EV(GoWaiting, 1, 2);
    EV(GoCreate, 1, 3, 0, 0);
    EV(GoInSyscall, 1, 3);
    EV(GoCreate, 1, 4, 0, 0);
    EV(ProcStart, 1, 7);
    EV(GoStart, 1, 1, 1);
    EV(Gomaxprocs, 1, 4, 0);
    EV(Gomaxprocs, 1, 5, 0);
    EV(GoCreate, 1, 5, 0, 0);
    frequency();
    /* The first Sync is before the first event of the file, even if that is not delivered. */
    expect_good(&plain, "-1 Sync p-1 g-1\n"
                        "2 GoStatus p0 g2 2: 0>4 \n"
                        "4 GoStatus p0 g3 3: 0>5 \n"
                        "6 ProcStatus p0 g-1 0: 0>2 \n"
                        "7 GoStatus p0 g1 1: 0>3 \n"
                        "8 GoStatus p-1 g-1 4: 0>2 \n"
                        "9 ProcsChange p0 g1\n"
                        "10 GoCreate p0 g1 5: 1>2 \n"
                        "11 Sync p-1 g-1\n");
    uint64_t events = run.events;
    assert_int_equal(run.stats.events, events);
    read_with(&(trail_reader_options){.verdict_only = true});
    assert_int_equal(run.result, 0);
    assert_int_equal(run.stats.events, events);
}

TEST(test_calls_labels_and_ranges)
{
    begin(19);
    put_string(1, "GC (idle)");
    EV(Gomaxprocs, 5, 1, 0);    /* 5 */
    EV(GoSysCall, 5, 0);        /* 10 */
    EV(HeapAlloc, 0, 1);        /* 10 */
    EV(GoSysCall, 10, 0);       /* 20 */
    EV(GoSysBlock, 10);         /* 30 */
    EV(ProcStop, 10);           /* 40 */
    EV(ProcStart, 10, 8);       /* 50 */
    EV(GoSysExit, 10, 1, 2, 0); /* 60 */
    EV(GoStartLabel, 10, 1, 3, 1);
    EV(STWStart, 10, 1);
    EV(STWDone, 10);
    EV(GoStop, 10, 0);
    frequency();
    read_with(&plain);
    assert_int_equal(run.result, 0);
    assert_string_equal(run.text, "-1 Sync p-1 g-1\n"
                                  "0 ProcStatus p0 g-1 0: 0>2 \n"
                                  "1 GoStatus p0 g1 1: 0>3 \n"
                                  "10 GoSyscallBegin p0 g1 1: 3>5 \n"
                                  "11 GoSyscallEnd p0 g1 1: 5>3 \n"
                                  "12 HeapAlloc p0 g1\n"
                                  "20 GoSyscallBegin p0 g1 1: 3>5 \n"
                                  "40 ProcStop p0 g-1 0: 2>3 \n"
                                  "50 ProcStart p0 g-1 0: 3>2 \n"
                                  "60 GoSyscallEndBlocked p1000003 g1 1: 5>2 \n"
                                  "70 GoStart p0 g1 1: 2>3 \n"
                                  "71 GoLabel p0 g1\n"
                                  "80 STWBegin p0 g1 stop-the-world (GC sweep termination)\n"
                                  "90 STWEnd p0 g1 stop-the-world (GC sweep termination)\n"
                                  "100 GoBlock p0 g1 1: 3>4 forever\n"
                                  "101 Sync p-1 g-1\n");
}

/* Samples are not in the file in order of time. */
TEST(test_cpu_samples)
{
    begin(19);
    EV(HeapAlloc, 100, 1);
    EV(Batch, 0, 2000);
    EV(CPUSample, 0, 1060, 0, 1, 0);
    EV(CPUSample, 0, 1040, UINT64_MAX, 0, 0);
    frequency();
    expect_good(&view, BEGUN_V1 "40 CPUSample p-1 g0\n"
                                "60 CPUSample p0 g1\n"
                                "100 HeapAlloc p0 g1\n");
}

/* MARK: Formats */

/* Two leading numbers, batches with a sequence that orders them, and starts that name a PC. */
TEST(test_1_5)
{
    bytes_header(&trace, 5);
    EV15(Batch, 1, 10, 1020);
    EV15(ProcStart, 1, 0, 8); /* 11, 20 */
    EV15(GoStart, 2, 10, 2);  /* 13, 30 */
    EV15(Batch, 0, 1, 1000);
    EV15(ProcStart, 0, 0, 7);            /* 1, 0 */
    EV15(GoCreate, 11, 25, 2, 0x400, 0); /* 12, 25 */
    EV15(Frequency, 1000000000, 0);
    expect_good(&view, "0 ProcStart p0 g0\n"
                       "20 ProcStart p1 g0\n"
                       "25 GoCreate p0 g0\n"
                       "30 GoStart p1 g2\n");

    trail_source *source = trail_source_open_memory(trace.data, trace.size, NULL);
    trail_reader *reader = trail_reader_open(source, &view, NULL);
    const trail_v1_event *events;
    assert_int_equal(trail_reader_next_v1_batch(reader, &events), 4);
    size_t count;
    const trail_frame *frames = trail_reader_stack(reader, events[3].stack, &count);
    assert_int_equal(count, 1);
    assert_int_equal(frames[0].pc, 0x401);
    trail_reader_close(reader);
    trail_source_close(source);

    trace.data[17 + 1] = 9; /* P 1's batch now begins at sequence 9: creation after start */
    EV15(Batch, 2, 40, 1001);
    EV15(ProcStart, 0, 0, 9); /* 40, 1: later in sequence, earlier in time */
    EV15(Frequency, 1000000000, 0);
    expect_error(&view, TRAIL_TIME_ORDER, "time stamps out of order");
}

TEST(test_malformed_records)
{
    static const struct {
        const char *bytes;
        size_t size;
        trail_code code;
        const char *message;
    } cases[] = {
        {"\x00\x01", 2, TRAIL_CORRUPT, "unknown event type 0"},  /* a 0 alone may fill the file */
        {"\xf1\x00", 2, TRAIL_CORRUPT, "unknown event type 49"}, /* CPUSample: from 1.19 on */
        {"\x05\x00", 2, TRAIL_CORRUPT, "ProcStart has wrong number of arguments"},
        {"\x46\x80", 2, TRAIL_TRUNCATED, "offset 0x"},
        {"\x46", 1, TRAIL_TRUNCATED, "offset 0x"},
        {"\x06\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12, TRAIL_CORRUPT, "bad value"},
        {"\x25\x00\x01x", 4, TRAIL_CORRUPT, "invalid id 0"},
        {"\x25\x01\x00", 3, TRAIL_CORRUPT, "invalid length 0"},
        {"\x25\x01\x01x\x25\x01\x01y", 8, TRAIL_CORRUPT, "duplicate id 1"},
        {"\x25\x01\x05x", 4, TRAIL_TRUNCATED, "offset 0x"},
        {"\xc3\x02\x01\x01", 4, TRAIL_CORRUPT, "Stack has wrong number of arguments"},
        {"\xc3\x03\x01\xe9\x07", 5, TRAIL_CORRUPT, "bad number of frames"},
        {"\xc3\x81\x10", 3, TRAIL_CORRUPT, "limit is 2048"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        begin(11);
        frequency();
        size_t good = trace.size;
        bytes_put(&trace, cases[i].bytes, cases[i].size);
        expect_error(&plain, cases[i].code, cases[i].message);
        assert_true(run.err.offset >= (int64_t)good);
        /* Everything before it is complete; from there on, the states are unknown. */
        read_with(&partial);
        assert_int_equal(run.result, -1);
        assert_int_equal(run.err.code, cases[i].code);
        assert_string_equal(run.text, "-1 Sync p-1 g-1\n"
                                      "0 ProcStatus p0 g-1 0: 0>2 \n"
                                      "1 GoStatus p0 g1 1: 0>3 \n"
                                      "2 GoStatus p-1 g-1 1: 3>0 \n"
                                      "3 ProcStatus p-1 g-1 0: 2>0 \n");
    }
}

TEST(test_missing_parts)
{
    begin(11);
    expect_error(&plain, TRAIL_TRUNCATED, "no EvFrequency event");
    /* Its events are delivered, then the error that the end is missing. */
    read_with(&partial);
    assert_int_equal(run.result, -1);
    assert_int_equal(run.err.code, TRAIL_TRUNCATED);
    assert_true(run.stats.frequency_assumed && run.events > 0);
    bytes_header(&trace, 21);
    expect_error(&plain, TRAIL_TRUNCATED, "trace is empty");
    expect_error(&view, TRAIL_TRUNCATED, "trace is empty");
}

/* Go <= 1.21 assigns an event before any Batch to P 0; Go >= 1.23 does not. */
TEST(test_event_before_any_batch)
{
    bytes_header(&trace, 11);
    EV(ProcStart, 1000, 7);
    frequency();
    expect_error(&plain, TRAIL_CORRUPT, "P has no batches yet");
    expect_good(&view, "0 ProcStart p0 g0\n");
}

/* Stack IDs are last; a log's text is outside its length; padded numbers are accepted. */
static void put_turns(void)
{
    begin(21);
    for (unsigned i = 0; i < 40; i++) {
        EV(GoSched, 5, 0);
        EV(GoStart, 5, 1, i + 2);
    }
    EV(GoEnd, 5);
    frequency();
}

TEST(test_lengths_where_none_is_needed)
{
    static char wanted[sizeof run.text];
    put_turns();
    read_with(&view);
    assert_int_equal(run.result, 0);
    memcpy(wanted, run.text, sizeof wanted);
    with_lengths = true;
    put_turns();
    with_lengths = false;
    expect_good(&view, wanted);
}

/*
 * Two stacks with one ID, before and after the event that uses it: for any event, Go takes the last
 * one that has frames (parseEvents of internal/trace in Go 1.19).
 */
TEST(test_last_stack_of_an_id)
{
    static const unsigned pcs[] = {0x10, 0x20, 0x30};
    begin(11);
    for (int i = 0; i < 3; i++) {
        unsigned pc = pcs[i];
        bytes_put(&trace, "\xc3\x06\x01\x01", 4);
        bytes_number(&trace, pc);
        bytes_put(&trace, "\x00\x00\x07", 3);
        if (i == 0)
            EV(GoSched, 5, 1);
    }
    bytes_put(&trace, "\xc3\x02\x01\x00", 4); /* without frames: ignored */
    frequency();
    trail_source *source = trail_source_open_memory(trace.data, trace.size, NULL);
    trail_reader *reader = trail_reader_open(source, &view, NULL);
    const trail_v1_event *events;
    const trail_frame *frames;
    size_t count;
    long n = trail_reader_next_v1_batch(reader, &events);
    assert_true(n > 0);
    assert_int_equal(events[n - 1].type, V1_GoSched);
    frames = trail_reader_stack(reader, events[n - 1].stack, &count);
    assert_int_equal(count, 1);
    assert_int_equal(frames[0].pc, 0x30);
    trail_reader_close(reader);
    trail_source_close(source);
}

TEST(test_log_and_padding)
{
    begin(11);
    put_string(1, "key");
    EV(UserLog, 5, 3, 1, 0);
    bytes_number(&trace, 5);
    bytes_put(&trace, "hello", 5);
    bytes_byte(&trace, V1_HeapAlloc | 1 << 6);
    bytes_padded(&trace, 7);
    bytes_padded(&trace, 99);
    frequency();
    expect_good(&view, BEGUN_V1 "5 UserLog p0 g1\n12 HeapAlloc p0 g1\n");

    trail_source *source = trail_source_open_memory(trace.data, trace.size, NULL);
    trail_reader *reader = trail_reader_open(source, &view, NULL);
    const trail_v1_event *events;
    assert_int_equal(trail_reader_next_v1_batch(reader, &events), 5);
    trail_string category = trail_reader_string(reader, events[3].text[0]);
    trail_string message = trail_reader_string(reader, events[3].text[1]);
    assert_int_equal(category.size, 3);
    assert_memory_equal(category.data, "key", 3);
    assert_int_equal(message.size, 5);
    assert_memory_equal(message.data, "hello", 5);
    assert_int_equal(events[4].arg[0], 99);
    trail_reader_close(reader);
    trail_source_close(source);
}
