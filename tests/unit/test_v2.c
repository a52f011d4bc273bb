/*
 * Reading v2: what the events of hand-written traces mean, in which order they come, and which
 * traces are refused. A case is a trace as text (docs/wire-text.md) and what the rules of the
 * format (§6.4-6.7) make of it, in the form of `trail print --format=go`.
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

/* A source that gives a byte at a time. */
static ssize_t trickle(void *context, void *buf, size_t size)
{
    size_t *given = context;
    if (size == 0 || *given == trace.size)
        return 0;
    memcpy(buf, trace.data + (*given)++, 1);
    return 1;
}

/* Reads a source into `printed` and closes it; returns the error's message, NULL if it is good. */
static const char *read_source(trail_source *source)
{
    static trail_error err;
    assert_non_null(source);
    trail_reader *reader = trail_reader_open(source, NULL, &err);
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

/* Batches that every generation needs; a tick is 1 ns. */
#define FREQUENCY(gen)                                                                             \
    "EventBatch gen=" gen " m=18446744073709551615 time=0 size=auto\nFrequency freq=1000000000\n"
#define BATCH(gen, m, time) "EventBatch gen=" gen " m=" m " time=" time " size=auto\n"
#define STRINGS(gen, list)                                                                         \
    "EventBatch gen=" gen " m=18446744073709551615 time=100 size=auto\nStrings\n" list
#define NAME(id, text) "String id=" id "\n\tdata=\"" text "\"\n"
#define RUNNING_ON(m, p, g)                                                                        \
    "ProcStatus dt=1 p=" p " pstatus=1\nGoStatus dt=1 g=" g " m=" m " gstatus=2\n"

#define SYNC_BATCH(gen)                                                                            \
    "EventBatch gen=" gen                                                                          \
    " m=18446744073709551615 time=1 size=auto\nSync\nFrequency freq=1000000000\n"                  \
    "ClockSnapshot dt=1 mono=1 sec=0 nsec=0\n"

#define SYNC(time, n) "M=-1 P=-1 G=-1 Sync Time=" time " N=" n "\n"

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

static void switching_goroutines_is_told_by_three_events(void **state)
{
    (void)state;
    expect(
        "Trace Go1.23\n" FREQUENCY("1") BATCH("1", "5", "10")
            RUNNING_ON("5", "0", "1") "GoCreateBlocked dt=1 new_g=2 new_stack=0 stack=0\n"
                                      "GoSwitch dt=10 g=2 g_seq=1\n"
                                      "GoSwitchDestroy dt=10 g=1 g_seq=1\n",
        NULL,
        SYNC(
            "1",
            "1") "M=5 P=-1 G=-1 StateTransition Time=11 ProcID=0 Undetermined->Running "
                 "Reason=\"\"\n"
                 "M=5 P=0 G=-1 StateTransition Time=12 GoID=1 Undetermined->Running Reason=\"\"\n"
                 "M=5 P=0 G=1 StateTransition Time=13 GoID=2 NotExist->Waiting Reason=\"\"\n"
                 "TransitionStack=\n\n" /* Go shows the start stack of a creation even if it has
                                           none */
                 "M=5 P=0 G=1 StateTransition Time=23 GoID=2 Waiting->Runnable Reason=\"\"\n"
                 "M=5 P=0 G=1 StateTransition Time=24 GoID=1 Running->Waiting Reason=\"\"\n"
                 "M=5 P=0 G=-1 StateTransition Time=25 GoID=2 Runnable->Running Reason=\"\"\n"
                 "M=5 P=0 G=2 StateTransition Time=33 GoID=1 Waiting->Runnable Reason=\"\"\n"
                 "M=5 P=0 G=2 StateTransition Time=34 GoID=2 Running->NotExist Reason=\"\"\n"
                 "M=5 P=0 G=-1 StateTransition Time=35 GoID=1 Runnable->Running Reason=\"\"\n" SYNC(
                     "36", "2"));
}

static void an_event_waits_for_the_one_that_its_sequence_follows(void **state)
{
    (void)state;
    /* By its clock M 6 starts goroutine 1 before M 5 has stopped it. */
    expect(
        "Trace Go1.22\n" FREQUENCY("1") BATCH("1", "5", "50")
            RUNNING_ON("5", "0", "1") "GoStop dt=1 reason_string=0 stack=0\n" BATCH(
                "1", "6", "10") "ProcStatus dt=1 p=1 pstatus=1\nGoStart dt=1 g=1 g_seq=1\n",
        NULL,
        SYNC(
            "1",
            "1") "M=6 P=-1 G=-1 StateTransition Time=11 ProcID=1 Undetermined->Running "
                 "Reason=\"\"\n"
                 "M=5 P=-1 G=-1 StateTransition Time=51 ProcID=0 Undetermined->Running "
                 "Reason=\"\"\n"
                 "M=5 P=0 G=-1 StateTransition Time=52 GoID=1 Undetermined->Running Reason=\"\"\n"
                 "M=5 P=0 G=1 StateTransition Time=53 GoID=1 Running->Runnable Reason=\"\"\n"
                 "M=6 P=1 G=-1 StateTransition Time=54 GoID=1 Runnable->Running Reason=\"\"\n" SYNC(
                     "55", "2"));
}

static void nothing_to_wait_for_is_an_error(void **state)
{
    (void)state;
    expect("Trace Go1.22\n" FREQUENCY("1") BATCH("1", "5", "50")
               RUNNING_ON("5", "0", "1") "GoUnblock dt=1 g=7 g_seq=1 stack=0\n",
           "failed to advance", NULL);
}

static void the_end_of_a_foreign_thread_steals_the_proc_it_holds_first(void **state)
{
    (void)state;
    expect(
        "Trace Go1.22\n" FREQUENCY("1")
            BATCH("1", "5", "10") "GoCreateSyscall dt=1 new_g=9\nProcStatus dt=1 p=0 pstatus=3\n"
                                  "GoDestroySyscall dt=1\n",
        NULL,
        SYNC(
            "1",
            "1") "M=5 P=-1 G=-1 StateTransition Time=11 GoID=9 NotExist->Syscall Reason=\"\"\n"
                 "M=5 P=-1 G=9 StateTransition Time=12 ProcID=0 Undetermined->Running Reason=\"\"\n"
                 "M=5 P=0 G=9 StateTransition Time=13 ProcID=0 Running->Idle Reason=\"\"\n"
                 "M=5 P=0 G=9 StateTransition Time=14 GoID=9 Syscall->NotExist Reason=\"\"\n" SYNC(
                     "15", "2"));
}

static void a_blocked_exit_waits_until_its_proc_was_stolen(void **state)
{
    (void)state;
    expect(
        "Trace Go1.22\n" FREQUENCY("1") BATCH("1", "5", "10") RUNNING_ON(
            "5", "0", "1") "GoSyscallBegin dt=1 p_seq=1 stack=0\nGoSyscallEndBlocked "
                           "dt=1\n" BATCH("1", "6", "90") "ProcSteal dt=1 p=0 p_seq=2 m=5\n",
        NULL,
        SYNC(
            "1",
            "1") "M=5 P=-1 G=-1 StateTransition Time=11 ProcID=0 Undetermined->Running "
                 "Reason=\"\"\n"
                 "M=5 P=0 G=-1 StateTransition Time=12 GoID=1 Undetermined->Running Reason=\"\"\n"
                 "M=5 P=0 G=1 StateTransition Time=13 GoID=1 Running->Syscall Reason=\"\"\n"
                 "M=6 P=-1 G=-1 StateTransition Time=91 ProcID=0 Running->Idle Reason=\"\"\n"
                 "M=5 P=-1 G=1 StateTransition Time=92 GoID=1 Syscall->Runnable Reason=\"\"\n" SYNC(
                     "93", "2"));
}

/* By its clock M 6 steals the P in its first system call, by its sequence in the second. */
static void a_proc_is_stolen_when_its_sequence_says(void **state)
{
    (void)state;
    expect(
        "Trace Go1.22\n" FREQUENCY("1") BATCH("1", "5", "10") RUNNING_ON(
            "5", "0", "1") "GoSyscallBegin dt=1 p_seq=1 stack=0\nGoSyscallEnd dt=20\n"
                           "GoSyscallBegin dt=1 p_seq=2 stack=0\nGoSyscallEndBlocked "
                           "dt=1\n" BATCH("1", "6", "20") "ProcSteal dt=1 p=0 p_seq=3 m=5\n",
        NULL,
        SYNC(
            "1",
            "1") "M=5 P=-1 G=-1 StateTransition Time=11 ProcID=0 Undetermined->Running "
                 "Reason=\"\"\n"
                 "M=5 P=0 G=-1 StateTransition Time=12 GoID=1 Undetermined->Running Reason=\"\"\n"
                 "M=5 P=0 G=1 StateTransition Time=13 GoID=1 Running->Syscall Reason=\"\"\n"
                 "M=5 P=0 G=1 StateTransition Time=33 GoID=1 Syscall->Running Reason=\"\"\n"
                 "M=5 P=0 G=1 StateTransition Time=34 GoID=1 Running->Syscall Reason=\"\"\n"
                 "M=6 P=-1 G=-1 StateTransition Time=35 ProcID=0 Running->Idle Reason=\"\"\n"
                 "M=5 P=-1 G=1 StateTransition Time=36 GoID=1 Syscall->Runnable Reason=\"\"\n" SYNC(
                     "37", "2"));
}

/* Events whose sequence nothing precedes wait for ever; each is good with the number before. */
static void numbers_that_are_left_out_are_waited_for(void **state)
{
    (void)state;
    static const struct {
        const char *events;
        int good; /* the number between */
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
            (void)snprintf(text, sizeof text, "%s%s%d%s\n",
                           "Trace Go1.23\n" FREQUENCY("1") BATCH("1", "5", "10")
                               RUNNING_ON("5", "0", "1"),
                           cases[i].events, cases[i].good + off, cases[i].rest);
            expect(text, off == 0 ? NULL : "failed to advance", NULL);
        }
    }
}

static void a_task_keeps_its_name_over_generations(void **state)
{
    (void)state;
    expect(
        "Trace Go1.22\n" FREQUENCY("1") BATCH("1", "5", "10") RUNNING_ON(
            "5", "0",
            "1") "UserTaskBegin dt=1 task=3 parent_task=0 name_string=1 "
                 "stack=0\n" STRINGS("1", NAME("1", "first")) FREQUENCY("2") BATCH("2", "5", "200")
                     RUNNING_ON("5", "0", "1") "UserTaskEnd dt=1 task=3 stack=0\n"
                                               "UserTaskEnd dt=1 task=4 stack=0\n" STRINGS(
                                                   "2", NAME("1", "other")),
        NULL,
        SYNC("1",
             "1") "M=5 P=-1 G=-1 StateTransition Time=11 ProcID=0 Undetermined->Running "
                  "Reason=\"\"\n"
                  "M=5 P=0 G=-1 StateTransition Time=12 GoID=1 Undetermined->Running Reason=\"\"\n"
                  "M=5 P=0 G=1 TaskBegin Time=13 ID=3 Parent=18446744073709551615 "
                  "Type=\"first\"\n" SYNC("14", "2") "M=5 P=0 G=1 StateTransition Time=201 "
                                                     "ProcID=0 Running->Running Reason=\"\"\n"
                                                     "M=5 P=0 G=1 StateTransition Time=202 GoID=1 "
                                                     "Running->Running Reason=\"\"\n"
                                                     "M=5 P=0 G=1 TaskEnd Time=203 ID=3 "
                                                     "Parent=18446744073709551615 Type=\"first\"\n"
                                                     "M=5 P=0 G=1 TaskEnd Time=204 ID=4 "
                                                     "Parent=18446744073709551615 Type=\"\"\n" SYNC(
                                                         "205", "3"));
}

static void ranges_are_told_with_their_scope(void **state)
{
    (void)state;
    expect(
        "Trace Go1.22\n" FREQUENCY("1") BATCH("1", "5", "10") RUNNING_ON(
            "5", "0",
            "1") "STWBegin dt=1 kind_string=1 stack=0\nSTWEnd dt=1\nGCBegin dt=1 gc_seq=7 stack=0\n"
                 "GCSweepBegin dt=1 stack=0\nGCSweepEnd dt=1 swept_value=8192 reclaimed_value=512\n"
                 "GCMarkAssistBegin dt=1 stack=0\nGCMarkAssistEnd dt=1\nGCEnd dt=1 "
                 "gc_seq=8\n" STRINGS("1", NAME("1", "why")),
        NULL,
        SYNC(
            "1",
            "1") "M=5 P=-1 G=-1 StateTransition Time=11 ProcID=0 Undetermined->Running "
                 "Reason=\"\"\n"
                 "M=5 P=0 G=-1 StateTransition Time=12 GoID=1 Undetermined->Running Reason=\"\"\n"
                 "M=5 P=0 G=1 RangeBegin Time=13 Name=\"stop-the-world (why)\" Scope=Goroutine(1)\n"
                 "M=5 P=0 G=1 RangeEnd Time=14 Name=\"stop-the-world (why)\" Scope=Goroutine(1) "
                 "Attributes=[]\n"
                 "M=5 P=0 G=1 RangeBegin Time=15 Name=\"GC concurrent mark phase\" Scope=None\n"
                 "M=5 P=0 G=1 RangeBegin Time=16 Name=\"GC incremental sweep\" Scope=Proc(0)\n"
                 "M=5 P=0 G=1 RangeEnd Time=17 Name=\"GC incremental sweep\" Scope=Proc(0) "
                 "Attributes=[\"bytes swept\"=Value{Uint64(8192)} \"bytes "
                 "reclaimed\"=Value{Uint64(512)}]\n"
                 "M=5 P=0 G=1 RangeBegin Time=18 Name=\"GC mark assist\" Scope=Goroutine(1)\n"
                 "M=5 P=0 G=1 RangeEnd Time=19 Name=\"GC mark assist\" Scope=Goroutine(1) "
                 "Attributes=[]\n"
                 "M=5 P=0 G=1 RangeEnd Time=20 Name=\"GC concurrent mark phase\" Scope=None "
                 "Attributes=[]\n" SYNC("21", "2"));
}

static void cpu_samples_come_at_their_time(void **state)
{
    (void)state;
    expect(
        "Trace Go1.22\n" FREQUENCY("1") BATCH("1", "5", "10") RUNNING_ON(
            "5", "0", "1") "EventBatch gen=1 m=18446744073709551615 time=0 size=auto\nCPUSamples\n"
                           "CPUSample time=30 m=5 p=0 g=1 stack=0\n"
                           "CPUSample time=12 m=5 p=18446744073709551615 g=0 stack=0\n",
        NULL,
        SYNC("1",
             "1") "M=5 P=-1 G=-1 StateTransition Time=11 ProcID=0 Undetermined->Running "
                  "Reason=\"\"\n"
                  "M=5 P=0 G=-1 StateTransition Time=12 GoID=1 Undetermined->Running Reason=\"\"\n"
                  "M=5 P=-1 G=-1 StackSample Time=13\n"
                  "M=5 P=0 G=1 StackSample Time=30\n" SYNC("31", "2"));
}

/* Traces that contradict themselves, each with the part of the message that names the
 * contradiction. */
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
        (void)snprintf(text, sizeof text, "%s%s",
                       "Trace Go1.22\n" FREQUENCY("1") BATCH("1", "5", "10")
                           RUNNING_ON("5", "0", "1"),
                       cases[i].events);
        expect(text, cases[i].error, NULL);
    }
}

/* What stands before the damage is delivered; up to 1.25 the error comes after the whole
 * generation. */
static void good_generations_come_before_the_error(void **state)
{
    (void)state;
    const char *first = SYNC(
        "1",
        "1") "M=5 P=-1 G=-1 StateTransition Time=11 ProcID=0 Undetermined->Running Reason=\"\"\n";
    char output[500];
    (void)snprintf(output, sizeof output, "%s%s", first, SYNC("12", "2"));
    expect("Trace Go1.22\n" FREQUENCY("1")
               BATCH("1", "5", "10") "ProcStatus dt=1 p=0 pstatus=1\n" BATCH(
                   "3", "5", "90") "ProcStatus dt=1 p=0 pstatus=1\n",
           "generations out of order", output);
    assemble("Trace Go1.22\n" FREQUENCY("1")
                 BATCH("1", "5", "10") "ProcStatus dt=1 p=0 pstatus=1\n");
    trace.data[trace.size++] = 1; /* a batch that has no more than its first byte */
    trace.data[trace.size] = 2;
    const char *message = read_back();
    assert_non_null(message);
    assert_non_null(strstr(message, "error reading batch gen"));
    assert_string_equal(printed.data, output);
}

/* A source that gives so many bytes, and fails then. */
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
        "Trace Go1.22\n" FREQUENCY("1") BATCH("1", "5", "10") RUNNING_ON("5", "0", "1"),
        "Trace Go1.26\n" SYNC_BATCH("1") BATCH("1", "5", "10")
            RUNNING_ON("5", "0", "1") "EndOfGeneration\n",
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

static void a_generation_of_1_26_without_its_end_is_lost(void **state)
{
    (void)state;
    expect(
        "Trace Go1.26\n" SYNC_BATCH("1")
            BATCH("1", "5", "10") "ProcStatus dt=1 p=0 pstatus=1\n"
                                  "EndOfGeneration\n" SYNC_BATCH("2")
                                      BATCH("2", "5", "90") "ProcStatus dt=1 p=0 pstatus=1\n",
        "incomplete generation found; trace likely truncated",
        "M=-1 P=-1 G=-1 Sync Time=1 N=1 Trace=2 Mono=1 Wall=1970-01-01T00:00:00Z\n"
        "M=5 P=-1 G=-1 StateTransition Time=11 ProcID=0 Undetermined->Running Reason=\"\"\n" SYNC(
            "12", "2"));
    expect("Trace Go1.26\n", NULL, SYNC("1", "1"));
}

static void tables_are_checked(void **state)
{
    (void)state;
    expect("Trace Go1.22\n" FREQUENCY("1") STRINGS("1", NAME("1", "a") NAME("1", "b")),
           "multiple strings with the same ID", SYNC("1", "1"));
    expect("Trace Go1.22\n" FREQUENCY("1") FREQUENCY("1"), "multiple frequency events", NULL);
    expect("Trace Go1.22\n" BATCH("1", "5", "1"), "no frequency event found", NULL);
    expect("Trace Go1.22\n" FREQUENCY(
               "1") "EventBatch gen=1 m=18446744073709551615 time=0 size=auto\nStacks\n"
                    "Stack id=1 nframes=1\n\tpc=1 func=5 file=0 line=1\n",
           "invalid func string ID 5 for stack 1", NULL);
    expect("Trace Go1.22\n" FREQUENCY("0"), "invalid generation number 0", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(switching_goroutines_is_told_by_three_events),
        cmocka_unit_test(an_event_waits_for_the_one_that_its_sequence_follows),
        cmocka_unit_test(nothing_to_wait_for_is_an_error),
        cmocka_unit_test(the_end_of_a_foreign_thread_steals_the_proc_it_holds_first),
        cmocka_unit_test(a_blocked_exit_waits_until_its_proc_was_stolen),
        cmocka_unit_test(a_proc_is_stolen_when_its_sequence_says),
        cmocka_unit_test(numbers_that_are_left_out_are_waited_for),
        cmocka_unit_test(a_task_keeps_its_name_over_generations),
        cmocka_unit_test(ranges_are_told_with_their_scope),
        cmocka_unit_test(cpu_samples_come_at_their_time),
        cmocka_unit_test(contradictions_are_refused),
        cmocka_unit_test(good_generations_come_before_the_error),
        cmocka_unit_test(a_source_that_fails_is_no_end),
        cmocka_unit_test(a_generation_of_1_26_without_its_end_is_lost),
        cmocka_unit_test(tables_are_checked),
    };
    setenv("TZ", "UTC", 1); /* wall clock times are shown in the local zone */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
