/* Every format records what made the trace: the host's words, the default for hosts that give none,
 * and in snapshots. */
#include "trace.h"

#include <sys/mman.h>
#include <unistd.h>

#include "../lib/unit.h"

static trail_maker maker_of(const struct trace *trace)
{
    trail_error err;
    trail_source *source = trail_source_open_memory(trace->data, trace->size, &err);
    trail_reader *reader = trail_reader_open(source, NULL, &err);
    const trail_event *event;
    trail_maker maker;

    assert_non_null(reader);
    assert_int_equal(trail_reader_maker(reader)->made_by, TRAIL_MADE_BY_GO);
    assert_int_equal(trail_reader_next(reader, &event), 1);
    maker = *trail_reader_maker(reader);
    trail_reader_close(reader);
    trail_source_close(source);
    return maker;
}

static void assert_word(const struct trace *trace, const char *word)
{
    trail_maker maker = maker_of(trace);

    assert_int_equal(maker.made_by, TRAIL_MADE_BY_HOST);
    assert_string_equal(maker.task_word, word);
}

static void record(const trail_options *options, struct trace *trace)
{
    trail_error err;

    if (!trail_start_sink(options, trace_append, trace, &err))
        fail_msg("%s", err.message);
    trail_log(0, "category", "message");
    if (!trail_stop(&err))
        fail_msg("%s", err.message);
}

TEST(every_format_has_the_hosts_word)
{
    for (size_t i = 0; i < FORMATS; i++) {
        trail_options options = {.format = all_formats[i], .task_word = "gr\xc3\xbcne fiber"};
        struct trace trace = {0};
        record(&options, &trace);
        assert_word(&trace, "gr\xc3\xbcne fiber");
        trace_free(&trace);
    }
}

static void each_none(void *context, void (*visit)(trail_g *g, void *arg), void *arg)
{
    (void)context;
    (void)visit;
    (void)arg;
}

TEST(a_host_without_a_word_has_tasks_and_no_host_has_threads)
{
    static const trail_host host = {.each_goroutine = each_none};
    struct trace trace = {0};

    record(NULL, &trace);
    assert_word(&trace, "thread");
    trace_free(&trace);
    trail_host_set(&host);
    record(NULL, &trace);
    assert_word(&trace, "task");
    trace_free(&trace);
    trail_host_set(NULL);
}

TEST(a_snapshot_has_the_word)
{
    trail_flight_options options = {.trace = {.task_word = "job"}};
    int fd = memfd_create("snapshot", 0);
    struct trace trace = {0};
    trail_error err;
    uint64_t bytes;

    assert_true(trail_flight_start(&options, &err));
    trail_log(0, "category", "message");
    /* The first snapshot does not begin at the start of recording. */
    trail_advance();
    trail_log(0, "category", "message");
    assert_true(trail_flight_snapshot(fd, &bytes, &err));
    trail_flight_stop();
    trace.data = malloc(bytes);
    trace.size = bytes;
    assert_int_equal(pread(fd, trace.data, bytes, 0), (ssize_t)bytes);
    close(fd);
    assert_word(&trace, "job");
    trace_free(&trace);
}

TEST(a_word_that_is_no_word_is_refused)
{
    static const char *const words[] = {"", "123456789012345678901234567890123"};
    struct trace trace = {0};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        trail_options options = {.task_word = words[i]};
        trail_error err;
        assert_false(trail_start_sink(&options, trace_append, &trace, &err));
        assert_int_equal(err.code, TRAIL_USAGE);
    }
}
