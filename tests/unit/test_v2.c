/*
 * Reading v2: the meaning and order of events in hand-written traces, and which traces are refused.
 *
 * A case is a file of tests/data/v2, named after the rule that it protects. It is an archive of
 * texts: a trace (docs/wire-text.md); its events by the rules of the format (§6.4-6.7), as `trail
 * print --format=go` prints them; or a part of the message with which it is refused; or both.
 *
 * usage: test_v2 CASE...
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <trail/export.h>

struct buffer {
    char data[100000];
    size_t size;
};

static bool keep(void *context, const void *data, size_t size)
{
    struct buffer *buffer = context;
    if (sizeof buffer->data - buffer->size <= size)
        return false;
    memcpy(buffer->data + buffer->size, data, size);
    buffer->size += size;
    buffer->data[buffer->size] = '\0';
    return true;
}

static struct buffer trace, printed;

static void assemble(const char *text)
{
    trail_error err = {0};
    trail_source *source = trail_source_open_memory(text, strlen(text), &err);
    trace.size = 0;
    if (trail_assemble(source, 0, &(trail_sink){keep, &trace}, &err) < 0)
        fail_msg("assembling: %s", err.message);
    trail_source_close(source);
}

/* A source that delivers one byte at a time. */
static ssize_t trickle(void *context, void *buf, size_t size)
{
    size_t *given = context;
    if (size == 0 || *given == trace.size)
        return 0;
    memcpy(buf, trace.data + (*given)++, 1);
    return 1;
}

/* Reads a source into `printed` and closes it; returns the error's message, NULL: no error. */
static const char *read_source(trail_source *source)
{
    static trail_error err;
    assert_non_null(source);
    const trail_reader_options strict = {.strict = true};
    trail_reader *reader = trail_reader_open(source, &strict, &err);
    assert_non_null(reader);
    printed.size = 0;
    printed.data[0] = '\0';
    trail_print_options options = {.format = TRAIL_FORMAT_GO};
    int result = trail_print(reader, &options, &(trail_sink){keep, &printed}, &err);
    trail_reader_close(reader);
    trail_source_close(source);
    return result < 0 ? err.message : NULL;
}

static const char *read_back(void)
{
    return read_source(trail_source_open_memory(trace.data, trace.size, NULL));
}

/* Goroutine 1 runs on P 0 of M 5 from time 12 on; a tick is 1 ns. */
#define RUNNING(version)                                                                           \
    "Trace Go1." version "\n"                                                                      \
    "EventBatch gen=1 m=18446744073709551615 time=0 size=auto\n"                                   \
    "Frequency freq=1000000000\n"                                                                  \
    "EventBatch gen=1 m=5 time=10 size=auto\n"                                                     \
    "ProcStatus dt=1 p=0 pstatus=1\n"                                                              \
    "GoStatus dt=1 g=1 m=5 gstatus=2\n"

static void expect(const char *text, const char *error, const char *output)
{
    assemble(text);
    const char *message = read_back();
    if (error && (!message || !strstr(message, error)))
        fail_msg("expected the error \"%s\", got \"%s\"", error, message ? message : "none");
    if (!error && message)
        fail_msg("expected no error, got \"%s\"", message);
    if (output)
        assert_string_equal(printed.data, output);
    /* How the bytes arrive makes no difference. */
    static struct buffer whole;
    size_t given = 0;
    whole = printed;
    const char *again = read_source(trail_source_open_callback(trickle, &given, NULL));
    assert_int_equal(again == NULL, message == NULL);
    assert_string_equal(printed.data, whole.data);
}

enum { TEXT = 10000 };

/* Returns the archive's text with that name, in the caller's memory; NULL: there is none. */
static const char *section(const char *archive, const char *name, char text[TEXT])
{
    char marker[30];
    int length = snprintf(marker, sizeof marker, "\n-- %s --\n", name);
    const char *begin = strstr(archive, marker);
    if (!begin)
        return NULL;
    begin += length;
    const char *end = strstr(begin - 1, "\n-- ");
    size_t size = end ? (size_t)(end + 1 - begin) : strlen(begin);
    assert_true(size < TEXT);
    memcpy(text, begin, size);
    text[size] = '\0';
    return text;
}

static void a_case(void **state)
{
    static char archive[20000], texts[2][TEXT];
    FILE *file = fopen(*state, "r");
    if (!file) {
        fail_msg("cannot open %s: %s", (char *)*state, strerror(errno));
        return;
    }
    archive[fread(archive, 1, sizeof archive - 1, file)] = '\0';
    assert_true(feof(file));
    (void)fclose(file);
    const char *events = section(archive, "events", texts[0]);
    char *error = texts[1];
    if (section(archive, "error", error))
        error[strcspn(error, "\n")] = '\0';
    else
        error = NULL;
    assert_true(events || error);
    expect(archive, error, events); /* the assembler extracts the trace from the archive */
}

/* Events whose sequence number has no predecessor wait forever; with the number before, each is
 * valid. */
static void numbers_that_are_left_out_are_waited_for(void **state)
{
    (void)state;
    static const struct {
        const char *events;
        int good; /* Traces that contradict themselves, each with a part of the expected message. */
        const char *rest;
    } cases[] = {
        {"GoSyscallBegin dt=1 p_seq=1 stack=0\nProcSteal dt=1 p=0 p_seq=", 2, " m=5"},
        {"ProcStop dt=1\nProcStart dt=1 p=0 p_seq=", 1, ""},
        {"GoStop dt=1 reason_string=0 stack=0\nGoStart dt=1 g=1 g_seq=", 1, ""},
        {"GoCreateBlocked dt=1 new_g=2 new_stack=0 stack=0\nGoSwitch dt=1 g=2 g_seq=", 1, ""},
        {"GoCreateBlocked dt=1 new_g=2 new_stack=0 stack=0\nGoUnblock dt=1 g=2 g_seq=", 1,
         " stack=0"},
        {"GCActive dt=1 gc_seq=7\nGCEnd dt=1 gc_seq=", 8, ""},
        {"GCBegin dt=1 gc_seq=7 stack=0\nGCEnd dt=1 gc_seq=", 8, ""},
        {"GCActive dt=1 gc_seq=1\nGCEnd dt=1 gc_seq=2\nGCBegin dt=1 gc_seq=", 3, " stack=0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int off = -1; off <= 1; off++) {
            char text[1000];
            (void)snprintf(text, sizeof text, RUNNING("23") "%s%d%s\n", cases[i].events,
                           cases[i].good + off, cases[i].rest);
            expect(text, off == 0 ? NULL : "failed to advance", NULL);
        }
    }
}

/* a batch that consists of its first byte */
static void contradictions_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *events, *error;
    } cases[] = {
        {"ProcStatus dt=1 p=1 pstatus=5\n", "invalid status for proc 1: 5"},
        {"GoStatus dt=1 g=2 m=5 gstatus=5\n", "invalid status for goroutine 2: 5"},
        {"ProcStatus dt=1 p=0 pstatus=2\n",
         "inconsistent status for proc 0: old Running vs. new Idle"},
        {"GoStatus dt=1 g=1 m=5 gstatus=4\n", "inconsistent status for goroutine 1"},
        {"GoStatus dt=1 g=2 m=18446744073709551615 gstatus=3\n", "in syscall without a thread"},
        {"GoCreate dt=1 new_g=1 new_stack=0 stack=0\n",
         "tried to create goroutine (1) that already exists"},
        {"GoCreateSyscall dt=1 new_g=2\n", "expected no goroutine but had one"},
        {"GoSyscallEnd dt=1\n", "event for goroutine that's not Syscall"},
        {"GoSyscallBegin dt=1 p_seq=2 stack=0\n", "can't make sequence"},
        {"GoSyscallBegin dt=1 p_seq=1 stack=0\nProcSteal dt=1 p=0 p_seq=2 m=6\n",
         "stole proc from non-existent thread 6"},
        {"ProcStop dt=1\nGoBlock dt=1 reason_string=0 stack=0\n",
         "expected a proc but didn't have one"},
        {"GoBlock dt=1 reason_string=9 stack=0\n", "invalid string ID 9 for event GoBlock"},
        {"GoBlock dt=1 reason_string=0 stack=9\n", "invalid stack ID 9 for event GoBlock"},
        {"GoBlock dt=1 reason_string=0 stack=0\nGoBlock dt=1 reason_string=0 stack=0\n",
         "expected a goroutine but didn't have one"},
        {"STWEnd dt=1\n", "tried to end event STWBegin, but not in-flight"},
        {"GCSweepBegin dt=1 stack=0\nGCSweepBegin dt=1 stack=0\n", "already in-flight"},
        {"GCEnd dt=1 gc_seq=1\n", "GC was in an undetermined state"},
        {"GCBegin dt=1 gc_seq=1 stack=0\nGCBegin dt=1 gc_seq=2 stack=0\n", "already in progress"},
        {"GCSweepActive dt=1 p=4\n", "unknown proc 4"},
        {"GCMarkAssistActive dt=1 g=4\n", "uninitialized goroutine 4"},
        {"UserTaskBegin dt=1 task=1 parent_task=0 name_string=0 stack=0\n"
         "UserTaskBegin dt=1 task=1 parent_task=0 name_string=0 stack=0\n",
         "task ID conflict: 1"},
        {"UserRegionBegin dt=1 task=1 name_string=0 stack=0\n"
         "UserRegionEnd dt=1 task=2 name_string=0 stack=0\n",
         "misuse of region in goroutine 1"},
        {"UserRegionBegin dt=1 task=1 name_string=7 stack=0\n", "invalid string ID 7"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1000];
        (void)snprintf(text, sizeof text, RUNNING("22") "%s", cases[i].events);
        expect(text, cases[i].error, NULL);
    }
}

static void a_generation_comes_before_the_batch_that_is_cut(void **state)
{
    (void)state;
    assemble("Trace Go1.22\n"
             "EventBatch gen=1 m=18446744073709551615 time=0 size=auto\n"
             "Frequency freq=1000000000\n"
             "EventBatch gen=1 m=5 time=10 size=auto\n"
             "ProcStatus dt=1 p=0 pstatus=1\n");
    trace.data[trace.size++] = 1; /* a batch that has no more than its first byte */
    trace.data[trace.size] = 2;
    const char *message = read_back();
    assert_non_null(message);
    assert_non_null(strstr(message, "error reading batch gen"));
    assert_string_equal(
        printed.data,
        "M=-1 P=-1 G=-1 Sync Time=10 N=1\n"
        "M=5 P=-1 G=-1 StateTransition Time=11 ProcID=0 Undetermined->Running Reason=\"\"\n"
        "M=-1 P=-1 G=-1 Sync Time=12 N=2\n");
}

/* A source that delivers this many bytes and then fails. */
static ssize_t give_and_fail(void *context, void *buf, size_t size)
{
    size_t *left = context;
    if (*left == 0) {
        errno = EIO;
        return -1;
    }
    size = size < *left ? size : *left;
    memcpy(buf, trace.data + trace.size - *left, size);
    *left -= size;
    return (ssize_t)size;
}

static void a_source_that_fails_is_no_end(void **state)
{
    (void)state;
    static const char *const texts[] = {
        RUNNING("22"),
        "Trace Go1.26\n"
        "EventBatch gen=1 m=18446744073709551615 time=1 size=auto\n"
        "Sync\n"
        "Frequency freq=1000000000\n"
        "ClockSnapshot dt=1 mono=1 sec=0 nsec=0\n"
        "EventBatch gen=1 m=5 time=10 size=auto\n"
        "ProcStatus dt=1 p=0 pstatus=1\n"
        "GoStatus dt=1 g=1 m=5 gstatus=2\n"
        "EndOfGeneration\n",
    };
    for (size_t i = 0; i < 2; i++) {
        assemble(texts[i]);
        assert_null(read_back());
        size_t left = trace.size;
        const char *message = read_source(trail_source_open_callback(give_and_fail, &left, NULL));
        assert_non_null(message);
        assert_non_null(strstr(message, "Input/output error"));
    }
}

/* Another trace behind the first one ends it, even if its first byte arrives alone. */
static void another_trace_ends_one(void **state)
{
    (void)state;
    assemble(RUNNING("22"));
    const size_t size = trace.size;
    keep(&trace, trace.data, size);
    size_t given = 0;
    trail_error err;
    trail_source *source = trail_source_open_callback(trickle, &given, &err);
    trail_reader *reader = trail_reader_open(source, NULL, &err);
    assert_non_null(reader);
    const trail_event *events;
    long count;
    while ((count = trail_reader_next_batch(reader, &events)) > 0)
        ;
    assert_int_equal(count, 0);
    trail_reader_stats stats;
    trail_reader_get_stats(reader, &stats);
    assert_int_equal(stats.next_trace, size);
    trail_reader_close(reader);
    trail_source_close(source);
}

int main(int argc, char **argv)
{
    enum { CASES = 64, OWN = 5 };
    struct CMUnitTest tests[OWN + CASES] = {
        cmocka_unit_test(numbers_that_are_left_out_are_waited_for),
        cmocka_unit_test(contradictions_are_refused),
        cmocka_unit_test(a_generation_comes_before_the_batch_that_is_cut),
        cmocka_unit_test(a_source_that_fails_is_no_end),
        cmocka_unit_test(another_trace_ends_one),
    };
    if (argc < 2 || argc > CASES) {
        (void)fprintf(stderr, "usage: test_v2 CASE...\n");
        return 2;
    }
    for (int i = 1; i < argc; i++) {
        const char *slash = strrchr(argv[i], '/');
        tests[OWN - 1 + i] = (struct CMUnitTest){
            .name = slash ? slash + 1 : argv[i], .test_func = a_case, .initial_state = argv[i]};
    }
    setenv("TZ", "UTC", 1); /* wall clock times are shown in the local zone */
    return cmocka_run_group_tests(tests, NULL, NULL); /* skips rows without a name */
}
