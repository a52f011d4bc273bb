/*
 * Limits: goroutines whose snapshot exceeds a buffer, texts about as long as a buffer.
 *
 * TRAIL_TEST_COUNT scales the loops (in percent), TRAIL_TEST_FILTER names the test, TRAIL_TEST_KEEP
 * names a file for a refused trace.
 */
#include "one_thread.h"

#include <unistd.h>

/* MARK: Many goroutines */

enum { LEAST = 4950, MOST = 5049 };

static trail_g goroutines[MOST];
static size_t shown; /* number of goroutines that the host lists */

static void each_goroutine(void *context, void (*visit)(trail_g *g, void *arg), void *arg)
{
    (void)context;
    for (size_t i = 0; i < shown; i++)
        visit(&goroutines[i], arg);
}

/* Goroutine 0 runs; every third of the others waits. */
static void program_begin(void)
{
    thread_begin();
    for (size_t i = 0; i < MOST; i++) {
        trail_g_init(&goroutines[i]);
        if (i % 3 == 2)
            trail_go_create_blocked(&m, &goroutines[i], 0, TRAIL_NO_STACK);
        else
            trail_go_create(&m, &goroutines[i], 0, TRAIL_NO_STACK);
    }
    trail_go_start(&m, &goroutines[0]);
}

/* By goroutine: the last reported state. */
static uint8_t told[MOST];

static void note_state(trail_reader *reader, const trail_event *event, void *context)
{
    uint64_t first = goroutines[0].id, id = (uint64_t)event->transition.id;
    (void)reader;
    (void)context;
    if (event->kind == TRAIL_STATE_TRANSITION &&
        event->transition.resource == TRAIL_RESOURCE_GOROUTINE && id >= first && id < first + MOST)
        told[id - first] = event->transition.to;
}

static void check_states(const char *what)
{
    for (size_t i = 0; i < MOST; i++) {
        trail_go_state wanted = i >= shown   ? TRAIL_GO_UNDETERMINED
                                : i == 0     ? TRAIL_GO_RUNNING
                                : i % 3 == 2 ? TRAIL_GO_WAITING
                                             : TRAIL_GO_RUNNABLE;
        if (told[i] != wanted)
            fail_msg("%s: goroutine %zu is recorded as %s", what, i,
                     trail_go_state_name((trail_go_state)told[i]));
    }
}

/* Every goroutine is reported with its state, wherever in a buffer the snapshot ends. */
TEST(goroutines_of_every_number)
{
    struct trace trace = {0};
    program_begin();
    for (size_t i = 0; i < FORMATS; i++) {
        trail_options options = {.format = all_formats[i], .no_symbols = true};
        for (shown = LEAST; shown <= MOST; shown += 100 / how_many(100)) {
            char what[64];
            snprintf(what, sizeof what, "format %d, %zu goroutines", options.format, shown);
            memset(told, 0, sizeof told);
            start_good(&options, &trace);
            stop_good(&options);
            nothing_lost(what);
            read_good(&trace, note_state, NULL, what);
            check_states(what);
        }
    }
    shown = MOST;
    program_end();
    trace_free(&trace);
}

/* MARK: Long texts */

enum { SHORTEST = 63000, LONGEST = 70000, AT_ONCE = 40 };

/* The limits of record.h: v2 keeps 1,024 bytes; v1 "about 64,000", here between 64,000 and
 * 65,536. */
enum { V2_KEPT = 1024, V1_LEAST = 64000, V1_MOST = 65536 };

static char text[LONGEST + 1];

/* Begins with its length, so that all texts differ. */
static const char *make_text(size_t size)
{
    for (size_t i = 0; i < size; i++)
        text[i] = (char)('a' + i % 26);
    text[size] = '\0';
    memcpy(text,
           (char[]){(char)('0' + size / 10000), (char)('0' + size / 1000 % 10),
                    (char)('0' + size / 100 % 10), (char)('0' + size / 10 % 10),
                    (char)('0' + size % 10)},
           5);
    return text;
}

static void check_text(trail_string read, size_t size, int format, const char *what)
{
    size_t least = format >= 22 ? V2_KEPT : size < V1_LEAST ? size : V1_LEAST;
    size_t most = format >= 22 ? V2_KEPT : size < V1_MOST ? size : V1_MOST;
    if (read.size < least || read.size > most)
        fail_msg("format %d: of a %s of %zu bytes %zu are left", format, what, size, read.size);
    if (memcmp(read.data, make_text(size), read.size) != 0)
        fail_msg("format %d: a %s of %zu bytes is another one", format, what, size);
}

struct texts {
    int format;
    const size_t *sizes;
    size_t n, logs, regions, tasks, labels;
};

static void check_event(trail_reader *reader, const trail_event *event, void *context)
{
    struct texts *texts = context;
    switch ((trail_kind)event->kind) {
    case TRAIL_LOG:
        assert_true(texts->logs < texts->n);
        check_text(trail_reader_string(reader, event->log.category), texts->sizes[texts->logs],
                   texts->format, "category");
        check_text(trail_reader_string(reader, event->log.message), texts->sizes[texts->logs],
                   texts->format, "message");
        texts->logs++;
        break;
    case TRAIL_REGION_BEGIN:
        check_text(trail_reader_string(reader, event->region.type), texts->sizes[texts->regions++],
                   texts->format, "region");
        break;
    case TRAIL_TASK_BEGIN:
        check_text(trail_reader_string(reader, event->task.type), texts->sizes[texts->tasks++],
                   texts->format, "task");
        break;
    case TRAIL_LABEL:
        check_text(trail_reader_string(reader, event->label.text), texts->sizes[texts->labels++],
                   texts->format, "label");
        break;
    default:
        break;
    }
}

/* In v1 the first use of a name writes the string; the orders differ, so that each kind of use
 * comes first once. */
static void write_texts(size_t size)
{
    const char *same = make_text(size);
    static char label[LONGEST + 1]; /* the host never frees it */
    memcpy(label, same, size + 1);
    if (size % 3 == 0)
        trail_log(0, same, same);
    trail_task_end(trail_task_begin(0, same));
    if (size % 3 == 1)
        trail_log(0, same, same);
    trail_region_begin(0, same);
    trail_region_end(0, same);
    trail_go_sched(&m, TRAIL_NO_STACK);
    trail_go_start_labelled(&m, &goroutines[0], label);
    if (size % 3 == 2)
        trail_log(0, same, same);
}

static void some_texts(int format, const size_t *sizes, size_t n)
{
    trail_options options = {.format = format, .no_symbols = true};
    struct texts texts = {.format = format, .sizes = sizes, .n = n};
    struct trace trace = {0};
    start_good(&options, &trace);
    for (size_t i = 0; i < n; i++)
        write_texts(sizes[i]);
    stop_good(&options);
    nothing_lost("long texts");
    read_good(&trace, check_event, &texts, "long texts");
    assert_int_equal(texts.logs, n);
    assert_int_equal(texts.regions, n);
    assert_int_equal(texts.tasks, n);
    assert_int_equal(texts.labels, n);
    trace_free(&trace);
}

/* Every length near a buffer's, and some near the limits; complete or cut at the limit. */
TEST(texts_of_a_buffer)
{
    size_t step = 100 / how_many(100), n = 0, sizes[AT_ONCE];
    program_begin();
    shown = 1;
    for (size_t i = 0; i < FORMATS; i++) {
        if (all_formats[i] < 11)
            continue;
        for (size_t size = SHORTEST; size <= LONGEST;
             size += (size > 65336 && size < 65736) ? step : 97) {
            sizes[n++] = size;
            if (n == AT_ONCE) {
                some_texts(all_formats[i], sizes, n);
                n = 0;
            }
        }
        some_texts(all_formats[i], sizes, n);
        n = 0;
    }
    program_end();
}

int main(void)
{
    /* A hang is a failure. */
    alarm(880);
    return run_all_tests(NULL, NULL);
}
