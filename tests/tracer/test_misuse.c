/*
 * What calls in an impossible order do: the usual build counts them and leaves the trace good, the checking
 * one (-Dcheck=true) says what was wrong and ends the program.
 *
 * TRAIL_TEST_SEED repeats one history, TRAIL_TEST_COUNT scales how many there are (in percent), TRAIL_TEST_FILTER names
 * the test.
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

static struct world world;
static trail_g goroutines[GOROUTINES];
static uint64_t state;
static bool in_history;

static struct op any_call(void)
{
    static const char *const names[] = {"one", "two", "", "three"};
    struct op op = {
        .call = (enum call)random_below(&state, CALLS),
        .g = &goroutines[random_below(&state, GOROUTINES)],
        .p = &world.procs[random_below(&state, PROCS)],
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
    return op;
}

static void calls(unsigned n, int format)
{
    for (unsigned i = 0; i < n; i++) {
        struct op op = any_call();
        world_do(&world, random_below(&state, THREADS), &op);
        if (format >= 22 && random_below(&state, 60) == 0)
            trail_advance();
    }
}

/* An ID that another goroutine has already is no misuse but a lie: each creation gets a new one. */
static void begin(uint64_t seed)
{
    if (in_history)
        skip();
    in_history = true;
    state = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
    world_begin(&world);
    for (int i = 0; i < GOROUTINES; i++) {
        trail_g_init(&goroutines[i]);
        world.goroutines[world.goroutine_count++] = &goroutines[i];
    }
}

static void history(uint64_t seed, int format)
{
    trail_options options = {
        .format = format, .generation_ns = INT64_C(3600000000000), .alloc_free = format >= 23};
    struct trace trace = {0};
    trail_error err;
    begin(seed);
    calls(random_below(&state, 50), 0);
    for (int i = 0; i < 3; i++) {
        if (!trail_start_sink(&options, trace_append, &trace, &err))
            fail_msg("%s", err.message);
        calls(random_below(&state, 200), format);
        if (!trail_stop(&err) && err.code != TRAIL_USAGE)
            fail_msg("seed %llu, format %d: %s", (unsigned long long)seed, format, err.message);
        trace_keep(&trace);
        if (trace_read(&trace, NULL, NULL, &err) < 0)
            fail_msg("seed %llu, format %d, trace %d: %s", (unsigned long long)seed, format, i,
                     err.message);
        trace_free(&trace);
    }
    world_end(&world);
    in_history = false;
}

static void any_calls(int format)
{
    const char *seed = getenv("TRAIL_TEST_SEED");
    for (uint64_t i = 0; i < how_many(60); i++)
        history(seed ? strtoull(seed, NULL, 10) : i, format);
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
