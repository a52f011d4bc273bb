/*
 * A host whose goroutines exist before anything is recorded; identity.py compares its output with
 * its traces.
 *
 *     identity-host FORMAT late|flight|job|rename N FILE
 *
 *   late     N goroutines in all states, then a trace in which one of ten acts
 *   flight   the same, with a snapshot that begins generations after their creation
 *   rename   changes of names and kinds while the trace is on, and texts that are truncated
 *   job      a worker runs jobs on its own stack, which wait and log there
 *
 * Prints a line for each goroutine: ID, start function, name, kind, separated by tabs. The host has
 * one thread, so its output is exact.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <trail/record.h>
#include <unistd.h>

enum { MAX = 10002 };

static trail_m m;
static trail_p p;
static trail_g goroutines[MAX];
static unsigned count;

/* MARK: Start functions: only their addresses and names matter to a trace */

#define START(name, value)                                                                         \
    __attribute__((noinline)) void name(void);                                                     \
    void name(void)                                                                                \
    {                                                                                              \
        __asm__ volatile("" : : "r"(value));                                                       \
    }
START(start_accept, 1)
START(start_parse, 2)
START(start_flush, 3)
START(start_main, 4)

static const struct {
    void (*function)(void);
    const char *name;
} starts[] = {
    {start_accept, "start_accept"}, {start_parse, "start_parse"}, {start_flush, "start_flush"}};

static void print(const trail_g *g, const char *start, const char *name, const char *kind)
{
    printf("%llu\t%s\t%s\t%s\n", (unsigned long long)g->id, start, name, kind);
}

/* MARK: The host */

static void each(void *context, void (*visit)(trail_g *g, void *arg), void *arg)
{
    (void)context;
    for (unsigned i = 0; i < count; i++)
        visit(&goroutines[i], arg);
}

static void nothing(void *context)
{
    (void)context;
}

static void check(bool good, const trail_error *err)
{
    if (!good) {
        fprintf(stderr, "identity-host: %s\n", err->message);
        exit(1);
    }
}

static trail_g *create(void (*function)(void), bool blocked)
{
    trail_g *g = &goroutines[count++];
    trail_g_init(g);
    if (blocked)
        trail_go_create_blocked(&m, g, (uintptr_t)function, 0);
    else
        trail_go_create(&m, g, (uintptr_t)function, 0);
    return g;
}

/* Every second goroutine waits, every third has a name, every fifth a kind. */
static void create_all(unsigned n)
{
    for (unsigned i = 1; i <= n; i++) {
        char name[32] = "", kind[32] = "";
        trail_g *g = create(starts[i % 3].function, i % 2);
        if (i % 3 == 0)
            snprintf(name, sizeof name, "client %u", i);
        if (i % 5 == 0)
            snprintf(kind, sizeof kind, "kind%u", i % 2);
        if (*name)
            trail_g_set_name(g, name);
        if (*kind)
            trail_g_set_kind(g, kind);
        print(g, starts[i % 3].name, name, kind);
    }
}

static void turn(trail_g *g, bool waits)
{
    if (waits)
        trail_go_unblock(&m, g, TRAIL_NO_STACK);
    trail_go_start(&m, g);
    trail_go_block(&m, TRAIL_BLOCK_COND, 0);
    trail_go_unblock(&m, g, TRAIL_NO_STACK);
    trail_go_start(&m, g);
    if (waits)
        trail_go_block(&m, TRAIL_BLOCK_COND, 0);
    else
        trail_go_sched(&m, TRAIL_NO_STACK);
}

/* Runs two of ten goroutines: a ready one and a waiting one. */
static void work(void)
{
    trail_g *self = m.g;
    trail_go_block(&m, TRAIL_BLOCK_SYNC, TRAIL_NO_STACK);
    for (unsigned i = 10; i + 1 < count; i += 10) {
        turn(&goroutines[i], false);
        turn(&goroutines[i + 1], true);
    }
    trail_go_unblock(&m, self, TRAIL_NO_STACK);
    trail_go_start(&m, self);
}

/* MARK: Runs */

static void late(int format, int fd)
{
    trail_options options = {.format = format, .unwinder = TRAIL_UNWIND_FRAME_POINTERS};
    trail_error err;
    check(trail_start_fd(&options, fd, &err), &err);
    work();
    trail_advance();
    trail_advance();
    check(trail_stop(&err), &err);
}

/* The recorder forgets all generations before the last. */
static void flight(int format, int fd)
{
    trail_flight_options options = {.trace = {.format = format,
                                              .unwinder = TRAIL_UNWIND_FRAME_POINTERS,
                                              .generation_ns = (int64_t)3600 * 1000000000},
                                    .min_age_ns = 1,
                                    .max_bytes = 1};
    trail_error err;
    check(trail_flight_start(&options, &err), &err);
    for (int i = 0; i < 5; i++) {
        work();
        trail_advance();
    }
    check(trail_flight_snapshot(fd, NULL, &err), &err);
    trail_flight_stop();
}

/* MARK: Names that change */

static trail_g *create_of(const char *name, void (*function)(void))
{
    trail_g *g = &goroutines[count++];
    trail_g_init(g);
    trail_g_set_name(g, name);
    trail_go_create(&m, g, (uintptr_t)function, TRAIL_NO_STACK);
    return g;
}

static trail_g *create_in_trace(const char *name)
{
    return create_of(name, start_parse);
}

/* In its only generation, only its creation describes it. */
static trail_g *short_life(const char *name, void (*function)(void))
{
    trail_g *self = m.g, *g = create_of(name, function);
    trail_go_block(&m, TRAIL_BLOCK_SYNC, TRAIL_NO_STACK);
    trail_go_start(&m, g);
    trail_go_end(&m);
    trail_go_unblock(&m, self, TRAIL_NO_STACK);
    trail_go_start(&m, self);
    return g;
}

/* A call from foreign code, which has no start function. */
static trail_g *foreign_call(void)
{
    trail_g *self = m.g, *g = &goroutines[count++];
    trail_g_init(g);
    trail_g_set_name(g, "foreign call");
    trail_go_block(&m, TRAIL_BLOCK_SYNC, TRAIL_NO_STACK);
    trail_proc_stop(&m);
    trail_go_create_syscall(&m, g);
    trail_go_destroy_syscall(&m);
    trail_proc_start(&m, &p);
    trail_go_unblock(&m, self, TRAIL_NO_STACK);
    trail_go_start(&m, self);
    return g;
}

static void rename_all(int format, int fd)
{
    static const char e31[] =
        "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"
        "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"
        "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"
        "\xc3\xa4";
    trail_options options = {.format = format, .unwinder = TRAIL_UNWIND_FRAME_POINTERS};
    trail_g *before = create(start_flush, true), *same, *later, *cut, *removed, *brief, *unknown,
            *foreign;
    char longer[sizeof e31 + 8];
    trail_error err;
    check(trail_start_fd(&options, fd, &err), &err);
    trail_advance();
    same = create_in_trace("first");
    trail_g_set_name(same, "second");
    later = create_in_trace(NULL);
    /* 62 bytes, and a character of which only the first byte fits. */
    snprintf(longer, sizeof longer, "%s\xc3\xb6", e31);
    cut = create_in_trace(longer);
    trail_g_set_kind(cut, "tab\there");
    removed = create_in_trace("removed");
    brief = short_life("short life", start_parse);
    unknown = short_life("no function", NULL);
    foreign = foreign_call();
    trail_advance();
    trail_g_set_name(later, "named later");
    trail_g_set_kind(later, "kind");
    trail_g_set_name(removed, NULL);
    trail_advance();
    trail_g_set_kind(before, "kind of old");
    check(trail_stop(&err), &err);
    print(before, "start_flush", "", "kind of old");
    print(same, "start_parse", "second", "");
    print(later, "start_parse", "named later", "kind");
    print(cut, "start_parse", e31, "tab here");
    print(removed, "start_parse", "", "");
    print(brief, "start_parse", "short life", "");
    print(unknown, "", "no function", "");
    print(foreign, "", "foreign call", "");
}

/* MARK: Jobs on a worker's stack */

__attribute__((noinline)) void job_inner(void);
void job_inner(void)
{
    trail_log(0, "job", "works");
    trail_go_block(&m, TRAIL_BLOCK_SLEEP, 0);
    __asm__ volatile("");
}

__attribute__((noinline)) void job_start(void);
void job_start(void)
{
    job_inner();
    __asm__ volatile("");
}

/* Frames that must not appear in stacks. */
__attribute__((noinline)) void worker_loop(trail_g *g, void (*volatile run)(void));
void worker_loop(trail_g *g, void (*volatile run)(void))
{
    g->stack_root = __builtin_frame_address(0);
    trail_go_start(&m, g);
    run();
    __asm__ volatile("");
}

static void job(int format, int fd)
{
    trail_options options = {.format = format};
    trail_g *self = m.g, *g = create(job_start, false);
    const char *unwinder = getenv("UNWINDER");
    trail_error err;
    if (unwinder)
        options.unwinder = (trail_unwinder)atoi(unwinder);
    print(g, "job_start", "", "");
    check(trail_start_fd(&options, fd, &err), &err);
    trail_go_block(&m, TRAIL_BLOCK_SYNC, TRAIL_NO_STACK);
    worker_loop(g, job_start);
    trail_go_unblock(&m, self, TRAIL_NO_STACK);
    trail_go_start(&m, self);
    trail_advance();
    trail_advance();
    check(trail_stop(&err), &err);
}

static const struct {
    const char *name;
    void (*run)(int format, int fd);
} runs[] = {{"late", late}, {"flight", flight}, {"rename", rename_all}, {"job", job}};

int main(int argc, char **argv)
{
    static const trail_host host = {
        .each_goroutine = each, .stop_world = nothing, .start_world = nothing};
    int fd = argc == 5 ? open(argv[4], O_RDWR | O_CREAT | O_TRUNC, 0600) : -1, format;
    unsigned n = argc == 5 ? (unsigned)atoi(argv[3]) : 0;
    if (fd < 0 || n > MAX - 2)
        return 2;
    format = atoi(argv[1]);
    trail_host_set(&host);
    trail_m_start(&m);
    trail_p_init(&p, 0);
    trail_proc_start(&m, &p);
    trail_go_start(&m, create(start_main, false));
    print(m.g, "start_main", "", "");
    create_all(n);
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        if (strcmp(argv[2], runs[i].name) == 0)
            runs[i].run(format, fd);
    }
    trail_go_end(&m);
    trail_proc_stop(&m);
    trail_p_fini(&p);
    trail_m_exit(&m);
    close(fd);
    return 0;
}
