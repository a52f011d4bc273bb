/*
 * What calls in an impossible order do: the usual build counts them and leaves the trace good, the checking
 * one (-Dcheck=true) says what was wrong and ends the program.
 *
 * TRAIL_TEST_SEED repeats one history and prints its calls, TRAIL_TEST_COUNT scales how many there are (in percent) and
 * TRAIL_TEST_FIRST is the first seed, TRAIL_TEST_FILTER names the test, TRAIL_TEST_FOLDER receives all traces.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "trace.h"
#include "world.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define GOROUTINES 12
#define SCOPES     4

static struct world world;
static trail_g goroutines[GOROUTINES];
static struct trail_scope_ scopes[SCOPES];
static uint64_t state, seed_now;
static bool in_history;

/* MARK: What was right
 *
 * For each goroutine, the states to which calls that returned true brought it while the trace was on, in
 * their order; and for logs, the numbers that are their texts. The trace must have them in this order,
 * perhaps with others between them: those of calls that the library makes itself.
 */

struct step {
    int64_t goroutine; /* 0: a log */
    unsigned to;       /* a trail_go_state, or the number of the log */
    bool found;
};

static struct {
    struct step step[4096];
    size_t count;
    bool on, blocked[GOROUTINES]; /* created waiting, by a format that shows it as runnable */
    int format;
    uint64_t logs;
} right;

static void right_step(int64_t goroutine, unsigned to)
{
    if (right.on && right.count < sizeof right.step / sizeof *right.step)
        right.step[right.count++] = (struct step){goroutine, to, false};
}

/* The goroutine that the thread runs before a call, and what the call makes of it. */
static void right_call(const struct op *op, int64_t before)
{
    int64_t id = op->g ? (int64_t)op->g->id : 0;
    bool *blocked = &right.blocked[op->g >= goroutines ? op->g - goroutines : 0];
    if (op->call == G_INIT)
        *blocked = false;
    if (!op->ok || op->m)
        return;
    switch (op->call) {
    case GO_CREATE:
        right_step(id, TRAIL_GO_RUNNABLE);
        break;
    case GO_CREATE_BLOCKED:
        *blocked = right.format < 23;
        right_step(id, *blocked ? TRAIL_GO_RUNNABLE : TRAIL_GO_WAITING);
        break;
    case GO_START:
    case GO_START_LABELLED:
    case GO_SWITCH:
    case GO_SWITCH_END:
        right_step(id, TRAIL_GO_RUNNING);
        break;
    case GO_END:
        right_step(before, TRAIL_GO_NOT_EXIST);
        break;
    case GO_SCHED:
    case GO_PREEMPT:
        right_step(before, TRAIL_GO_RUNNABLE);
        break;
    case GO_BLOCK:
        right_step(before, TRAIL_GO_WAITING);
        break;
    case GO_UNBLOCK:
        if (!*blocked)
            right_step(id, TRAIL_GO_RUNNABLE);
        *blocked = false;
        break;
    default:
        break;
    }
}

static void find_step(trail_reader *reader, const trail_event *event, void *context)
{
    bool is_log = event->kind == TRAIL_LOG;
    int64_t goroutine = is_log ? 0 : event->transition.id;
    unsigned to = is_log ? 0 : (unsigned)event->transition.to;
    (void)context;
    if (is_log) {
        trail_string text = trail_reader_string(reader, event->log.message);
        if (text.size != 8 || memcmp(text.data, "text", 4) != 0)
            return;
        for (size_t i = 4; i < 8; i++)
            to = to * 10 + (unsigned)(text.data[i] - '0');
    } else if (event->kind != TRAIL_STATE_TRANSITION ||
               event->transition.resource != TRAIL_RESOURCE_GOROUTINE ||
               event->transition.from == TRAIL_GO_UNDETERMINED) {
        return;
    }
    for (size_t i = 0; i < right.count; i++) {
        struct step *step = &right.step[i];
        if (step->found || step->goroutine != goroutine)
            continue;
        step->found = step->to == to;
        return;
    }
}

/* MARK: Calls */

static bool annotates(enum call call)
{
    return (call >= TASK_BEGIN && call <= CPU_SAMPLE) || call == SCOPE_BEGIN || call == SCOPE_END ||
           call == SET_NAME || call == SET_KIND;
}

static struct op any_call(void)
{
    static const char *const names[] = {"one", "two", "", "three"};
    struct op op = {
        .call = (enum call)random_below(&state, CALLS),
        .g = &goroutines[random_below(&state, GOROUTINES)],
        .p = &world.procs[random_below(&state, PROCS)],
        .scope = &scopes[random_below(&state, SCOPES)],
        .kind = random_below(&state, 20),
        .task = random_below(&state, 5),
        .value = random_below(&state, 1000),
        .name = names[random_below(&state, 4)],
        .text = names[random_below(&state, 4)],
        .skip = random_below(&state, 2) ? 0 : TRAIL_NO_STACK,
    };
    /* The scheduler's calls more often than the rest. */
    if (random_below(&state, 2))
        op.call = (enum call)random_below(&state, PROC_STEAL + 1);
    /* Those that take objects away, less often. */
    if (op.call >= TIMER_GOROUTINE && op.call <= ADVANCE && random_below(&state, 4))
        op.call = LOG;
    if (random_below(&state, 50) == 0)
        op.m = &world.workers[random_below(&state, THREADS)].m;
    return op;
}

/* Calls that were counted as wrong, or whose events were lost. */
static uint64_t refused(void)
{
    trail_stats stats;
    trail_stats_get(&stats);
    return stats.misuse + stats.lost_events + stats.reentrant;
}

static void one_call(void)
{
    uint64_t refused_before = refused();
    struct op op = any_call();
    unsigned thread = random_below(&state, THREADS);
    const trail_m *m = &world.workers[thread].m;
    int64_t before = m->g ? (int64_t)m->g->id : 0;
    char text[16];
    if (op.call == LOG || op.call == LOGF) {
        snprintf(text, sizeof text, "text%04u", (unsigned)(right.logs % 10000));
        op.text = text;
    }
    if (annotates(op.call) && random_below(&state, 8) == 0)
        world_call(NULL, &op);
    else
        world_do(&world, thread, &op);
    op.ok &= refused() == refused_before;
    if (getenv("TRAIL_TEST_SEED"))
        print_message("%s thread %u: call %d, G%lld (before G%lld), P%d, kind %u, M%ld: %s\n",
                      right.on ? "on " : "off", thread, (int)op.call,
                      op.g ? (long long)op.g->id : 0, (long long)before, op.p->id, op.kind,
                      op.m ? (long)((char *)op.m - (char *)world.workers) : -1L,
                      op.ok ? "ok" : "refused");
    if ((op.call == LOG || op.call == LOGF) && right.format >= 11 && op.ok)
        right_step(0, (unsigned)(right.logs % 10000));
    right.logs++;
    right_call(&op, before);
}

static void calls(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        one_call();
}

/* An ID that another goroutine has already is no misuse but a lie: each creation gets a new one. */
static void begin(uint64_t seed)
{
    if (in_history)
        skip();
    in_history = true;
    seed_now = seed;
    state = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
    memset(&right, 0, sizeof right);
    memset(scopes, 0, sizeof scopes);
    world_begin(&world);
    for (int i = 0; i < GOROUTINES; i++) {
        trail_g_init(&goroutines[i]);
        world.goroutines[world.goroutine_count++] = &goroutines[i];
    }
}

/* MARK: Traces */

static trail_options any_options(int format)
{
    static const trail_unwinder unwinders[] = {TRAIL_UNWIND_AUTO, TRAIL_UNWIND_NONE,
                                               TRAIL_UNWIND_FRAME_POINTERS};
    return (trail_options){
        .format = format,
        .generation_ns = INT64_C(3600000000000),
        .alloc_free = format >= 23 && random_below(&state, 2),
        .unwinder = unwinders[random_below(&state, 3)],
        .max_frames = random_below(&state, 4),
        .memory = random_below(&state, 2) ? 1 : 0,
        .when_full =
            format >= 22 && random_below(&state, 3) == 0 ? TRAIL_FULL_DROP_OLDEST : TRAIL_FULL_WAIT,
        .no_symbols = random_below(&state, 2),
    };
}

/* Where Go's readers find it: $TRAIL_TEST_FOLDER. */
static void save(const struct trace *trace, int format, int which)
{
    const char *folder = getenv("TRAIL_TEST_FOLDER");
    char path[512];
    FILE *file;
    if (!folder)
        return;
    snprintf(path, sizeof path, "%s/%llu-%d.%d.trace", folder, (unsigned long long)seed_now, which,
             format);
    file = fopen(path, "wb");
    if (!file)
        fail_msg("cannot write %s", path);
    (void)fwrite(trace->data, 1, trace->size, file);
    (void)fclose(file);
}

struct recording {
    trail_options options;
    struct trace trace;
    trail_error err;
    bool ok;
};

static void do_start(void *context)
{
    struct recording *recording = context;
    recording->ok =
        trail_start_sink(&recording->options, trace_append, &recording->trace, &recording->err);
}

static void do_stop(void *context)
{
    struct recording *recording = context;
    recording->ok = trail_stop(&recording->err);
}

/* On a thread of the world, or on that of the test, which has no M. */
static void anywhere(void (*job)(void *context), void *context)
{
    unsigned at = random_below(&state, THREADS + 1);
    if (at < THREADS)
        world_run(&world, at, job, context);
    else
        job(context);
}

static void check_trace(const struct recording *recording, int format, int which)
{
    trail_error err;
    save(&recording->trace, format, which);
    if (trace_read(&recording->trace, find_step, NULL, &err) < 0)
        fail_msg("seed %llu, format %d, trace %d: %s", (unsigned long long)seed_now, format, which,
                 err.message);
    /* v1's readers move the end of a system call, and 1.7's forget wake-ups in vain. */
    for (size_t i = 0; i < right.count && format != 7; i++) {
        const struct step *step = &right.step[i];
        if (!step->found)
            fail_msg("seed %llu, format %d, trace %d: step %zu is missing: goroutine %lld, %u",
                     (unsigned long long)seed_now, format, which, i, (long long)step->goroutine,
                     step->to);
    }
}

static void one_trace(int format, int which)
{
    struct recording recording = {.options = any_options(format)};
    anywhere(do_start, &recording);
    if (!recording.ok)
        fail_msg("seed %llu: %s", (unsigned long long)seed_now, recording.err.message);
    right.on = true;
    right.format = format;
    right.count = 0;
    calls(random_below(&state, 200));
    right.on = false;
    anywhere(do_stop, &recording);
    if (!recording.ok && recording.err.code != TRAIL_USAGE)
        fail_msg("seed %llu, format %d: %s", (unsigned long long)seed_now, format,
                 recording.err.message);
    check_trace(&recording, format, which);
    trace_free(&recording.trace);
}

/* With format 0, each trace has any. */
static void history(uint64_t seed, int format)
{
    begin(seed);
    calls(random_below(&state, 50));
    for (int i = 0; i < 3; i++) {
        one_trace(format ? format : all_formats[random_below(&state, FORMATS)], i);
        calls(random_below(&state, 20));
    }
    world_end(&world);
    in_history = false;
}

static void any_calls(int format)
{
    const char *seed = getenv("TRAIL_TEST_SEED");
    const char *first = getenv("TRAIL_TEST_FIRST");
    uint64_t from = first ? strtoull(first, NULL, 10) : 0, n = how_many(60);
    if (seed)
        history(strtoull(seed, NULL, 10), format);
    for (uint64_t i = from; !seed && i < from + n; i++)
        history(i, format);
}

#define FORMAT_TEST(format)                                                                        \
    static void any_calls_##format(void **unused)                                                  \
    {                                                                                              \
        (void)unused;                                                                              \
        any_calls(format);                                                                         \
    }
FORMAT_TEST(7)
FORMAT_TEST(11)
FORMAT_TEST(19)
FORMAT_TEST(21)
FORMAT_TEST(22)
FORMAT_TEST(23)
FORMAT_TEST(26)

/* -Dcheck=true: it says what was wrong, and ends the program. */
static void misuse_aborts(void **unused)
{
    char text[4096];
    size_t size = 0;
    ssize_t got;
    int ends[2], status;
    pid_t child;
    (void)unused;
    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        static trail_m m;
        dup2(ends[1], STDERR_FILENO);
        trail_m_start(&m);
        if (!trail_start(NULL, NULL))
            _exit(2);
        trail_go_block(&m, TRAIL_BLOCK_SYNC, 0);
        _exit(3);
    }
    close(ends[1]);
    while (size < sizeof text - 1 && (got = read(ends[0], text + size, sizeof text - 1 - size)) > 0)
        size += (size_t)got;
    text[size] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    assert_non_null(strstr(text, "trail_go_block"));
    assert_non_null(strstr(text, "runs no goroutine"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest usual[] = {
        cmocka_unit_test(any_calls_7),  cmocka_unit_test(any_calls_11),
        cmocka_unit_test(any_calls_19), cmocka_unit_test(any_calls_21),
        cmocka_unit_test(any_calls_22), cmocka_unit_test(any_calls_23),
        cmocka_unit_test(any_calls_26),
    };
    const struct CMUnitTest checking[] = {cmocka_unit_test(misuse_aborts)};
    /* A hang is a failure. */
    alarm(250);
    cmocka_set_test_filter(getenv("TRAIL_TEST_FILTER"));
    if (argc > 1 && strcmp(argv[1], "check") == 0)
        return cmocka_run_group_tests(checking, NULL, NULL);
    return cmocka_run_group_tests(usual, NULL, NULL);
}
