/*
 * Stacks and strings in a trace are those of the host. Stacks have the functions that called each
 * other, leaf first, whichever unwinder is used; equal stacks are stored once, different ones
 * separately.
 *
 * The expected functions are not static, so that the loader can name them (the program exports its
 * symbols). It is compiled with frame pointers, without (NO_FRAME_POINTERS), and without libunwind
 * (NO_LIBUNWIND).
 *
 * TRAIL_TEST_COUNT scales how many different stacks and strings there are (in percent), TRAIL_TEST_FILTER
 * names the test.
 */
#include "trace.h"

#include <dlfcn.h>
#include <pthread.h>
#include <search.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "../lib/unit.h"
#include "host/unwind.h"
#include "tracer/stack.h"

/* clang does not clone functions. */
#if defined(__clang__)
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif
#define LONG INT64_C(3600000000000)

/* Keeps a call from becoming a jump, so that the caller has a frame. */
#define STAY() __asm__ volatile("" ::: "memory")

#if !defined(NO_FRAME_POINTERS) && (defined(__x86_64__) || defined(__aarch64__))
#define HAS_FRAME_POINTERS 1
#else
#define HAS_FRAME_POINTERS 0
#endif

#if defined(__has_feature)
#define THREAD_SANITIZED __has_feature(thread_sanitizer)
#define SANITIZED        (THREAD_SANITIZED || __has_feature(address_sanitizer))
#elif defined(__SANITIZE_THREAD__)
#define THREAD_SANITIZED 1
#define SANITIZED        1
#elif defined(__SANITIZE_ADDRESS__)
#define THREAD_SANITIZED 0
#define SANITIZED        1
#else
#define THREAD_SANITIZED 0
#define SANITIZED        0
#endif

/* MARK: Reading back */

struct seen {
    char text[64]; /* the log's message */
    size_t n;
    uint64_t pc[TRAIL_MAX_FRAMES + 1];
    char function[TRAIL_MAX_FRAMES + 1][48];
    char file[TRAIL_MAX_FRAMES + 1][128];
    uint64_t line[TRAIL_MAX_FRAMES + 1];
};

struct recording {
    struct trace trace;
    struct seen seen[40];
    size_t count;
};

static struct recording recording;

static void put_text(const trail_reader *reader, trail_string_handle handle, char *to, size_t size)
{
    trail_string text = trail_reader_string(reader, handle);
    snprintf(to, size, "%.*s", (int)text.size, text.data);
}

static struct seen *see(const trail_reader *reader, trail_stack_handle stack)
{
    struct seen *seen = &recording.seen[recording.count++];
    const trail_frame *frames = trail_reader_stack(reader, stack, &seen->n);
    assert_true(recording.count <= sizeof recording.seen / sizeof *recording.seen);
    assert_true(seen->n <= TRAIL_MAX_FRAMES);
    for (size_t i = 0; i < seen->n; i++) {
        seen->pc[i] = frames[i].pc;
        seen->line[i] = frames[i].line;
        put_text(reader, frames[i].function, seen->function[i], sizeof seen->function[i]);
        put_text(reader, frames[i].file, seen->file[i], sizeof seen->file[i]);
    }
    return seen;
}

/* Identifies logs by their message, and a goroutine that yields by "sched". */
static void see_event(trail_reader *reader, const trail_event *event, void *context)
{
    struct seen *seen;
    (void)context;
    if (event->kind == TRAIL_LOG) {
        seen = see(reader, event->stack);
        put_text(reader, event->log.message, seen->text, sizeof seen->text);
    } else if (event->kind == TRAIL_STATE_TRANSITION &&
               event->transition.from == TRAIL_GO_RUNNING &&
               event->transition.to == TRAIL_GO_RUNNABLE &&
               event->transition.resource == TRAIL_RESOURCE_GOROUTINE) {
        seen = see(reader, event->stack);
        snprintf(seen->text, sizeof seen->text, "sched");
    }
}

static void record(const trail_options *options)
{
    trail_error err;
    if (!trail_start_sink(options, trace_append, &recording.trace, &err))
        fail_msg("%s", err.message);
}

static void stop(trace_event_fn each)
{
    trail_error err;
    if (!trail_stop(&err))
        fail_msg("%s", err.message);
    recording.count = 0;
    if (trace_read(&recording.trace, each, NULL, &err) < 0)
        fail_msg("%s", err.message);
    trace_free(&recording.trace);
}

static const struct seen *find(const char *text)
{
    for (size_t i = 0; i < recording.count; i++) {
        if (strcmp(recording.seen[i].text, text) == 0)
            return &recording.seen[i];
    }
    fail_msg("no event '%s'", text);
    return NULL;
}

static bool has(const struct seen *seen, const char *function)
{
    for (size_t i = 0; i < seen->n; i++) {
        if (strcmp(seen->function[i], function) == 0)
            return true;
    }
    return false;
}

/* The innermost frames must be these functions. */
static void begins_with(const struct seen *seen, const char *const *functions)
{
    for (size_t i = 0; functions[i]; i++) {
        if (i >= seen->n || strcmp(seen->function[i], functions[i]) != 0)
            fail_msg("'%s': frame %zu of %zu is %s, not %s", seen->text, i, seen->n,
                     i < seen->n ? seen->function[i] : "not there", functions[i]);
    }
}

#define BEGINS_WITH(seen, ...) begins_with((seen), (const char *const[]){__VA_ARGS__, NULL})

/* No PC is a small number, or on the stack. */
static void has_possible_frames(const struct seen *seen)
{
    char here;
    for (size_t i = 0; i < seen->n; i++) {
        uint64_t pc = seen->pc[i], distance = pc - (uint64_t)(uintptr_t)&here;
        if (pc < 4096 || distance + (1 << 20) <= 2 << 20)
            fail_msg("'%s': frame %zu is 0x%llx, the stack near 0x%llx", seen->text, i,
                     (unsigned long long)pc, (unsigned long long)(uintptr_t)&here);
    }
}

/* And all are code. */
static void has_sane_frames(const struct seen *seen)
{
    has_possible_frames(seen);
    for (size_t i = 0; i < seen->n; i++) {
        Dl_info info;
        if (!dladdr((void *)(uintptr_t)seen->pc[i], &info))
            fail_msg("'%s': frame %zu, 0x%llx, is in no module", seen->text, i,
                     (unsigned long long)seen->pc[i]);
    }
}

/* MARK: Functions that call each other */

/* What the innermost function does, and with what. */
static trail_m *host_m;
static trail_g *host_g;

NOINLINE void say(const char *text);
NOINLINE void inner(const char *text);
NOINLINE void middle(const char *text);
NOINLINE void outer(const char *text);
NOINLINE void yield_g(int skip);
NOINLINE void inner_yield(int skip);
NOINLINE void middle_yield(int skip);
NOINLINE void outer_yield(int skip);
NOINLINE void deep(const char *text, unsigned frames);
NOINLINE void below_deep(const char *text, unsigned frames);

void say(const char *text)
{
    trail_log(0, "test", text);
    STAY();
}

void inner(const char *text)
{
    say(text);
    STAY();
}

void middle(const char *text)
{
    inner(text);
    STAY();
}

void outer(const char *text)
{
    middle(text);
    STAY();
}

void yield_g(int skip)
{
    trail_go_sched(host_m, skip);
    STAY();
}

void inner_yield(int skip)
{
    yield_g(skip);
    trail_go_start(host_m, host_g);
    STAY();
}

void middle_yield(int skip)
{
    inner_yield(skip);
    STAY();
}

void outer_yield(int skip)
{
    middle_yield(skip);
    STAY();
}

/* Calls deep `frames` times, then say once. */
void deep(const char *text, unsigned frames)
{
    if (frames > 1)
        deep(text, frames - 1);
    else
        say(text);
    STAY();
}

void below_deep(const char *text, unsigned frames)
{
    deep(text, frames);
    STAY();
}

/* MARK: Names, by every unwinder */

#ifdef NO_LIBUNWIND
/* The library finds this one, because it is linked into the program. */
void *dlopen(const char *name, int flags)
{
    void *(*next)(const char *, int);
    *(void **)&next = dlsym(RTLD_NEXT, "dlopen");
    return name && strstr(name, "libunwind") ? NULL : next(name, flags);
}
#endif

static bool libunwind_is_there(void)
{
    void *library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
    return library && dlsym(library, "unw_backtrace");
}

/* Whether the unwinder finds the callers of code without frame pointers. */
static bool has_tables(trail_unwinder unwinder)
{
    return unwinder == TRAIL_UNWIND_LIBUNWIND || unwinder == TRAIL_UNWIND_TABLES;
}

NOINLINE void names_by(trail_unwinder unwinder);
void names_by(trail_unwinder unwinder)
{
    for (size_t i = 0; i < FORMATS; i++) {
        trail_options options = {
            .format = all_formats[i], .generation_ns = LONG, .unwinder = unwinder};
        if (options.format < 11) /* has no logs */
            continue;
        record(&options);
        outer("names");
        stop(see_event);
        BEGINS_WITH(find("names"), "say", "inner", "middle", "outer", "names_by");
        /* Walks by frame pointers may end in cmocka, which is in between. */
        if (!HAS_FRAME_POINTERS || has_tables(unwinder))
            assert_true(has(find("names"), "main"));
        has_sane_frames(find("names"));
    }
}

TEST(names_by_frame_pointers)
{
    if (!HAS_FRAME_POINTERS) {
        print_message("# no frame pointers\n");
        return;
    }
    names_by(TRAIL_UNWIND_FRAME_POINTERS);
}

TEST(names_by_libunwind)
{
    if (!libunwind_is_there()) {
        print_message("# no libunwind.so.8\n");
        return;
    }
    names_by(TRAIL_UNWIND_LIBUNWIND);
}

/* On machines other than x86-64, the tables of libunwind. */
TEST(names_by_tables)
{
    names_by(TRAIL_UNWIND_TABLES);
}

/* Uses frame pointers if the program has them, otherwise not. */
TEST(names_by_backtrace)
{
    if (libunwind_is_there()) {
        print_message("# libunwind is there\n");
        return;
    }
    names_by(TRAIL_UNWIND_LIBUNWIND);
}

/* The stacks of a trace started by main itself are right, too: frame pointers may end there. */
TEST(names_by_what_works)
{
    names_by(TRAIL_UNWIND_AUTO);
}

TEST(no_stacks)
{
    trail_options options = {.unwinder = TRAIL_UNWIND_NONE, .generation_ns = LONG};
    record(&options);
    outer("none");
    stop(see_event);
    assert_int_equal(find("none")->n, 0);
}

static struct seen from_main;

static int stop_what_main_started(void **unused)
{
    (void)unused;
    stop(see_event);
    from_main = *find("from main");
    return 0;
}

/* The C library's function that calls it. */
TEST(started_by_main)
{
    BEGINS_WITH(&from_main, "say", "inner", "middle", "outer", "main");
    has_sane_frames(&from_main);
}

/* MARK: A thread's outermost frames */

NOINLINE void *thread_function(void *text);
void *thread_function(void *text)
{
    outer(text);
    STAY();
    return NULL;
}

static const trail_unwinder walks[] = {TRAIL_UNWIND_AUTO, TRAIL_UNWIND_TABLES,
                                       TRAIL_UNWIND_LIBUNWIND};
#define WALKS (sizeof walks / sizeof *walks)

TEST(the_start_of_a_thread_is_there)
{
    for (size_t i = 0; i < WALKS; i++) {
        trail_options options = {.unwinder = walks[i], .generation_ns = LONG};
        const struct seen *seen;
        pthread_t thread;
        record(&options);
        assert_int_equal(pthread_create(&thread, NULL, thread_function, "thread"), 0);
        pthread_join(thread, NULL);
        stop(see_event);
        seen = find("thread");
        BEGINS_WITH(seen, "say", "inner", "middle", "outer", "thread_function");
        /* Returns a PC in the library, which calls back; records a trace of its own. */
        assert_true(seen->n >= 6);
        if (!SANITIZED) /* whose runtimes lie between */
            assert_non_null(strstr(seen->file[5], "libc"));
        assert_false(has(seen, "main"));
        has_sane_frames(seen);
    }
}

/* MARK: Libraries */

static void say_in_library(void)
{
    say("library");
    STAY();
}

/* Returns a PC of the library, which calls; in a trace of its own. */
NOINLINE uint64_t visit_library(const char *path);
uint64_t visit_library(const char *path)
{
    trail_options options = {.unwinder = TRAIL_UNWIND_TABLES, .generation_ns = LONG};
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void (*call_back)(void (*)(void));
    assert_non_null(library);
    *(void **)&call_back = dlsym(library, "call_back");
    record(&options);
    call_back(say_in_library);
    stop(see_event);
    assert_int_equal(dlclose(library), 0);
    /* say, say_in_library, call_back and then its caller, if the library's frame is the right one. */
    assert_true(find("library")->n > 3);
    assert_string_equal(find("library")->function[3], "visit_library");
    return find("library")->pc[2];
}

/* The libraries are the same but for the size of a frame: where one was, the other comes to lie. */
TEST(code_in_the_place_of_other_code)
{
    const char *small = getenv("TRAIL_TEST_SMALL"), *large = getenv("TRAIL_TEST_LARGE");
    unsigned same = 0;
    if (!small || !large) {
        print_message("# only frame pointers here\n");
        return;
    }
    for (int i = 0; i < 4; i++) {
        uint64_t pc = visit_library(small);
        trace_free(&recording.trace);
        same += pc == visit_library(large);
        trace_free(&recording.trace);
    }
    if (same == 0)
        print_message("# they were never at the same address\n");
}

/* MARK: Skipping and cutting */

/* A goroutine that runs on the thread of the test, for calls that take an M. */
static trail_m own_m;
static trail_g own_g;
static trail_p own_p;
static trail_host host;

/* All is done by one thread. */
static void nothing(void *context)
{
    (void)context;
}

static void each_own(void *context, void (*visit)(trail_g *g, void *arg), void *arg)
{
    (void)context;
    if (host_g)
        visit(host_g, arg);
}

static void host_begin(void)
{
    host_m = &own_m;
    trail_m_start(host_m);
    trail_p_init(&own_p, 0);
    trail_proc_start(host_m, &own_p);
    trail_g_init(&own_g);
    trail_go_create(host_m, &own_g, 0, TRAIL_NO_STACK);
    host_g = &own_g;
    trail_go_start(host_m, host_g);
}

static void host_end(void)
{
    trail_go_end(host_m);
    host_g = NULL;
    trail_proc_stop(host_m);
    trail_p_fini(&own_p);
    trail_m_exit(host_m);
}

/* After each test, also one that failed. */
static int leave(void **unused)
{
    (void)unused;
    trail_stop(NULL);
    trace_free(&recording.trace);
    if (host_g)
        host_end();
    trail_host_set(&host);
    return 0;
}

static void skip_counts(trail_unwinder unwinder)
{
    static const char *const functions[] = {"yield_g", "inner_yield", "middle_yield",
                                            "outer_yield"};
    static const int skips[] = {0, 1, 2, 3, TRAIL_NO_STACK, 10000};
    trail_options options = {.unwinder = unwinder, .generation_ns = LONG};
    record(&options);
    for (size_t i = 0; i < 6; i++)
        outer_yield(skips[i]);
    stop(see_event);
    assert_int_equal(recording.count, 6);
    for (size_t i = 0; i < 4; i++) {
        BEGINS_WITH(&recording.seen[i], functions[i]);
        assert_int_equal(recording.seen[i].n, recording.seen[0].n - i);
        has_sane_frames(&recording.seen[i]);
    }
    assert_int_equal(recording.seen[3].pc[0], recording.seen[0].pc[3]);
    assert_int_equal(recording.seen[4].n, 0);
    assert_int_equal(recording.seen[5].n, 0);
}

TEST(skipped_frames_are_left_out)
{
    host_begin();
    if (HAS_FRAME_POINTERS)
        skip_counts(TRAIL_UNWIND_FRAME_POINTERS);
    skip_counts(TRAIL_UNWIND_TABLES);
    skip_counts(TRAIL_UNWIND_LIBUNWIND);
    skip_counts(TRAIL_UNWIND_AUTO);
    host_end();
}

/* Of more frames than a stack may have the outermost go. */
TEST(the_leaf_side_is_kept)
{
    for (size_t i = 0; i < WALKS * FORMATS; i++) {
        trail_options options = {
            .format = all_formats[i / WALKS], .unwinder = walks[i % WALKS], .generation_ns = LONG};
        const struct seen *seen;
        if (options.format < 11)
            continue;
        record(&options);
        below_deep("300", 300);
        below_deep("126", 126);
        stop(see_event);
        seen = find("300");
        /* v1: as many as fit in 2,048 bytes; see the_longest_stack_of_v1. */
        assert_int_equal(seen->n, TRAIL_MAX_FRAMES);
        BEGINS_WITH(seen, "say", "deep", "deep");
        for (size_t j = 1; j < seen->n; j++)
            assert_string_equal(seen->function[j], "deep");
        seen = find("126");
        assert_int_equal(seen->n, TRAIL_MAX_FRAMES);
        assert_string_equal(seen->function[126], "deep");
        assert_string_equal(seen->function[127], "below_deep");
    }
}

TEST(no_more_than_max_frames)
{
    static const unsigned limits[] = {1, 2, 5, 127, 128};
    trail_options wrong = {.max_frames = TRAIL_MAX_FRAMES + 1};
    trail_error err;
    assert_false(trail_start(&wrong, &err));
    assert_int_equal(err.code, TRAIL_USAGE);
    host_begin();
    for (size_t i = 0; i < WALKS * sizeof limits / sizeof *limits; i++) {
        unsigned limit = limits[i / WALKS];
        trail_options options = {
            .max_frames = limit, .unwinder = walks[i % WALKS], .generation_ns = LONG};
        record(&options);
        below_deep("deep", 200);
        /* Frames that are skipped do not count. */
        middle_yield(1);
        stop(see_event);
        assert_int_equal(find("deep")->n, limit);
        BEGINS_WITH(find("deep"), "say");
        BEGINS_WITH(find("sched"), "inner_yield");
        if (limit <= 2)
            assert_int_equal(find("sched")->n, limit);
    }
    host_end();
}

/* MARK: CPU samples */

static uintptr_t sampled[TRAIL_MAX_FRAMES];
static size_t samples;

static void take_sample(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    samples = stack_of_context(host_m->inner_, context, sampled, TRAIL_MAX_FRAMES);
}

NOINLINE void interrupted(void);
void interrupted(void)
{
    raise(SIGUSR1); /* in the C library, which has no frame pointers */
    STAY();
}

NOINLINE void calls_interrupted(void);
void calls_interrupted(void)
{
    interrupted();
    STAY();
}

static size_t index_of(const char *function)
{
    Dl_info info;
    for (size_t i = 0; i < samples; i++) {
        if (dladdr((void *)(sampled[i] - 1), &info) && info.dli_sname &&
            strcmp(info.dli_sname, function) == 0)
            return i;
    }
    return SIZE_MAX;
}

TEST(a_sample_has_its_callers_by_tables)
{
    trail_options options = {.unwinder = TRAIL_UNWIND_TABLES, .generation_ns = LONG};
    struct sigaction taking = {.sa_sigaction = take_sample, .sa_flags = SA_SIGINFO}, former;
    size_t at;
    if (!UNWIND_HAS_TABLES) {
        print_message("# samples have frame pointers' callers here\n");
        return;
    }
    assert_int_equal(sigaction(SIGUSR1, &taking, &former), 0);
    host_begin();
    record(&options);
    calls_interrupted();
    stop(see_event);
    host_end();
    assert_int_equal(sigaction(SIGUSR1, &former, NULL), 0);
    at = index_of("interrupted");
    assert_in_range(at, 1, samples - 2);
    assert_int_equal(index_of("calls_interrupted"), at + 1);
    assert_int_not_equal(index_of("main"), SIZE_MAX);
}

/* MARK: The host walks */

struct callers {
    uintptr_t pc[200];
    size_t n, claims; /* how many it says that there are */
    size_t max;       /* as it was asked */
};

static size_t host_callers(void *context, uintptr_t *pcs, size_t max)
{
    struct callers *callers = context;
    size_t n = callers->n < max ? callers->n : max;
    callers->max = max;
    memcpy(pcs, callers->pc, n * sizeof *pcs);
    return callers->claims ? callers->claims : n;
}

TEST(the_host_walks)
{
    trail_options options = {
        .unwinder = TRAIL_UNWIND_HOST, .generation_ns = LONG, .max_frames = 10};
    static struct callers callers;
    trail_host walks_itself = {.context = &callers,
                               .callers = host_callers,
                               .each_goroutine = each_own,
                               .stop_world = nothing,
                               .start_world = nothing};
    for (size_t i = 0; i < 200; i++)
        callers.pc[i] = UINT64_C(0x600000001000) + i;
    trail_host_set(&walks_itself);
    host_begin();
    record(&options);
    callers.n = 200;
    say("many");
    assert_int_equal(callers.max, 10);
    callers.n = 3;
    say("three");
    callers.claims = 1000;
    callers.n = 200;
    say("lies");
    callers.claims = 0;
    callers.n = 0;
    say("none");
    callers.n = 3;
    middle_yield(2);
    middle_yield(3);
    stop(see_event);
    host_end();
    trail_host_set(&host);

    assert_int_equal(find("many")->n, 10);
    assert_int_equal(find("lies")->n, 10);
    assert_int_equal(find("three")->n, 3);
    assert_int_equal(find("none")->n, 0);
    for (size_t i = 0; i < 10; i++)
        assert_int_equal(find("many")->pc[i], callers.pc[i]);
    assert_int_equal(recording.count, 6);
    assert_int_equal(recording.seen[4].n, 1);
    assert_int_equal(recording.seen[4].pc[0], callers.pc[2]);
    assert_int_equal(recording.seen[5].n, 0);
}

/* Asked for it, and without a host that can: what works is taken. */
TEST(a_host_that_cannot_walk)
{
    names_by(TRAIL_UNWIND_HOST);
}

/* MARK: A goroutine on a stack of its own */

#define OWN_STACK ((size_t)256 << 10)

static ucontext_t thread_context, own_context;

NOINLINE void coroutine(void);
void coroutine(void)
{
    outer("own stack");
    below_deep("own deep", 300);
    STAY();
}

NOINLINE void resume(void);
void resume(void)
{
    swapcontext(&thread_context, &own_context);
    STAY();
}

/* The pages around it cannot be read: an access outside ends the program. */
static char *own_stack(char **whole)
{
    *whole = mmap(NULL, 3 * OWN_STACK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(*whole, MAP_FAILED);
    assert_int_equal(mprotect(*whole + OWN_STACK, OWN_STACK, PROT_READ | PROT_WRITE), 0);
    return *whole + OWN_STACK;
}

static void walk_of_own_stack(trail_unwinder unwinder, bool known)
{
    trail_options options = {.unwinder = unwinder, .generation_ns = LONG};
    char *whole, *stack = own_stack(&whole);
    const struct seen *seen;
    host_begin();
    getcontext(&own_context);
    own_context.uc_stack.ss_sp = stack;
    own_context.uc_stack.ss_size = OWN_STACK;
    own_context.uc_link = &thread_context;
    makecontext(&own_context, coroutine, 0);
    if (known) {
        own_g.stack_low = stack;
        own_g.stack_high = stack + OWN_STACK;
    }
    record(&options);
    resume();
    stop(see_event);
    host_end();
    munmap(whole, 3 * OWN_STACK);

    seen = find("own stack");
    BEGINS_WITH(seen, "say");
    assert_false(has(seen, "resume"));
    assert_false(has(seen, "main"));
    if (known || has_tables(unwinder)) {
        BEGINS_WITH(seen, "say", "inner", "middle", "outer", "coroutine");
        BEGINS_WITH(find("own deep"), "say", "deep", "deep", "deep");
        assert_int_equal(find("own deep")->n, TRAIL_MAX_FRAMES);
    } else {
        assert_int_equal(seen->n, 1);
    }
    has_sane_frames(seen);
}

TEST(a_walk_stays_on_its_goroutines_stack)
{
    walk_of_own_stack(TRAIL_UNWIND_LIBUNWIND, false);
    walk_of_own_stack(TRAIL_UNWIND_TABLES, true);
    /* Of unknown bounds libunwind's, if it is there, else the leaf only. TSan's build does not load it. */
    if (libunwind_is_there() && !THREAD_SANITIZED)
        walk_of_own_stack(TRAIL_UNWIND_TABLES, false);
    if (!HAS_FRAME_POINTERS)
        return;
    walk_of_own_stack(TRAIL_UNWIND_AUTO, true);
    walk_of_own_stack(TRAIL_UNWIND_FRAME_POINTERS, true);
    walk_of_own_stack(TRAIL_UNWIND_FRAME_POINTERS, false);
}

/* MARK: Frame pointers that are none */

#if HAS_FRAME_POINTERS

/* Calls function(arg) with `garbage` in the frame pointer's register, as code without frame pointers does. */
void call_with(uintptr_t garbage, void (*function)(const char *arg), const char *arg);
#if defined(__x86_64__)
__asm__(".text\n"
        ".globl call_with\n"
        ".type call_with, @function\n"
        "call_with:\n"
        "    .cfi_startproc\n"
        "    pushq %rbp\n"
        "    .cfi_def_cfa_offset 16\n"
        "    .cfi_offset %rbp, -16\n"
        "    movq %rdi, %rbp\n"
        "    movq %rdx, %rdi\n"
        "    callq *%rsi\n"
        "    popq %rbp\n"
        "    .cfi_def_cfa_offset 8\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size call_with, . - call_with\n");
#else
__asm__(".text\n"
        ".globl call_with\n"
        ".type call_with, %function\n"
        "call_with:\n"
        "    .cfi_startproc\n"
        "    stp x29, x30, [sp, -16]!\n"
        "    .cfi_def_cfa_offset 16\n"
        "    .cfi_offset x29, -16\n"
        "    .cfi_offset x30, -8\n"
        "    mov x29, x0\n"
        "    mov x0, x2\n"
        "    blr x1\n"
        "    ldp x29, x30, [sp], 16\n"
        "    .cfi_def_cfa_offset 0\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size call_with, . - call_with\n");
#endif

/* Words on the stack that look like frames: { caller's frame, return address }. */
struct fake {
    uintptr_t caller, pc;
};

TEST(garbage_in_the_frame_pointer)
{
    trail_options options = {.unwinder = TRAIL_UNWIND_FRAME_POINTERS, .generation_ns = LONG};
    struct fake fake[8] = {{0}};
    uintptr_t here = (uintptr_t)fake, low, high, code = (uintptr_t)&call_with + 4;
    pthread_attr_t attr;
    void *base, *unreadable = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t size, n = 0;
    pthread_getattr_np(pthread_self(), &attr);
    pthread_attr_getstack(&attr, &base, &size);
    pthread_attr_destroy(&attr);
    low = (uintptr_t)base;
    high = low + size;
    fake[0] = (struct fake){0, 2};                          /* as of argc */
    fake[1] = (struct fake){here, code};                    /* goes down */
    fake[2] = (struct fake){here + 2 * sizeof *fake, code}; /* is its own caller */
    fake[3] = (struct fake){0, here};                       /* an address on the stack is no code */
    fake[4] = (struct fake){high - 8, code};                /* half outside */
    fake[5] = (struct fake){0, UINTPTR_MAX};
    fake[6] = (struct fake){0, 4095};
    {
        const uintptr_t garbage[] = {
            0,
            1,
            7,
            8,
            4096,
            UINTPTR_MAX,
            UINTPTR_MAX - 7,
            UINTPTR_MAX / 2 + 1,
            (uintptr_t)unreadable,
            low,
            low - 16,
            high,
            high - 8,
            high - 16,
            high + 8,
            here + 1,
            here + 4,
            (uintptr_t)&options + 3,
            here,
            (uintptr_t)&fake[1],
            (uintptr_t)&fake[2],
            (uintptr_t)&fake[3],
            (uintptr_t)&fake[4],
            (uintptr_t)&fake[5],
            (uintptr_t)&fake[6],
            (uintptr_t)&host,
        };
        record(&options);
        for (size_t i = 0; i < sizeof garbage / sizeof *garbage; i++, n++)
            call_with(garbage[i], inner, "garbage");
        stop(see_event);
    }
    munmap(unreadable, 4096);
    assert_int_equal(recording.count, n);
    for (size_t i = 0; i < n; i++) {
        BEGINS_WITH(&recording.seen[i], "say", "inner", "call_with");
        has_possible_frames(&recording.seen[i]);
    }
}

#endif

/* MARK: De-duplication */

struct tables {
    size_t stacks, strings;
    bool twice; /* the same contents under two IDs */
};

/* Raw records: what the file has, before any reader makes one of two. */
static struct tables tables_of(const struct trace *trace)
{
    struct tables tables = {0};
    struct {
        uint64_t sum;
        char kind;
    } all[512];
    size_t n = 0;
    trail_error err;
    trail_source *source = trail_source_open_memory(trace->data, trace->size, &err);
    trail_records *records = trail_records_open(source, &err);
    const trail_record *r;
    while (trail_records_next(records, &r) > 0) {
        bool stack = strcmp(r->name, "Stack") == 0, string = strcmp(r->name, "String") == 0;
        uint64_t sum = UINT64_C(0xcbf29ce484222325);
        if (!stack && !string)
            continue;
        tables.stacks += stack;
        tables.strings += string;
        for (size_t i = 0; stack && i < r->frames; i++)
            sum = (sum ^ r->frame[i * r->frame_fields]) * UINT64_C(0x100000001b3);
        for (size_t i = 0; string && i < r->data.size; i++)
            sum = (sum ^ (uint8_t)r->data.data[i]) * UINT64_C(0x100000001b3);
        for (size_t i = 0; i < n; i++)
            tables.twice |= all[i].sum == sum && all[i].kind == "st"[stack];
        assert_true(n < 512);
        all[n].sum = sum;
        all[n++].kind = "st"[stack];
    }
    trail_records_close(records);
    trail_source_close(source);
    return tables;
}

TEST(equal_stacks_and_strings_are_one)
{
    for (size_t i = 1; i < FORMATS; i++) {
        trail_options options = {.format = all_formats[i], .generation_ns = LONG};
        struct tables once, often;
        char copy[16];
        trail_error err;
        for (unsigned n = 1; n <= 1000; n += 999) {
            record(&options);
            for (unsigned j = 0; j < n; j++) {
                /* From two addresses, and at one that has other contents in between. */
                snprintf(copy, sizeof copy, "region %u", j % 2);
                trail_region_begin(0, copy);
                trail_region_begin(0, "region 1");
                trail_region_end(0, "region 1");
                trail_region_end(0, copy);
                snprintf(copy, sizeof copy, "region 1");
                trail_region_begin(0, copy);
                trail_region_end(0, copy);
            }
            assert_true(trail_stop(&err));
            often = tables_of(&recording.trace);
            if (n == 1)
                once = often;
            assert_false(often.twice);
            trace_free(&recording.trace);
        }
        assert_int_equal(often.stacks, once.stacks);
        assert_int_equal(often.strings, once.strings);
        assert_true(once.stacks >= 6);
    }
}

static void see_region(trail_reader *reader, const trail_event *event, void *context)
{
    struct seen *seen;
    (void)context;
    if (event->kind != TRAIL_REGION_BEGIN)
        return;
    seen = see(reader, event->stack);
    put_text(reader, event->region.type, seen->text, sizeof seen->text);
}

NOINLINE void one_region(const char *name);
void one_region(const char *name)
{
    trail_region_begin(0, name);
    trail_region_end(0, name);
    STAY();
}

/* A thread remembers what it has lately written: of its generation, and of its trace, only. */
TEST(every_generation_has_its_own)
{
    for (size_t i = 1; i < FORMATS; i++) {
        trail_options options = {.format = all_formats[i], .generation_ns = LONG};
        for (int again = 0; again < 2; again++) {
            record(&options);
            for (int j = 0; j < 9; j++) {
                one_region("the same");
                one_region("and another");
                trail_advance();
                if (j == 4)
                    trail_advance();
            }
            stop(see_region);
            assert_int_equal(recording.count, 18);
            for (size_t j = 0; j < 18; j++) {
                assert_string_equal(recording.seen[j].text, j % 2 ? "and another" : "the same");
                BEGINS_WITH(&recording.seen[j], "one_region");
            }
        }
    }
}

/* MARK: Many */

#if defined(NO_FRAME_POINTERS) || defined(NO_LIBUNWIND)
#define MANY 2000 /* for them it is nothing else */
#else
#define MANY 100000
#endif

/* Stack i differs from the others somewhere, not always at its leaf. */
static size_t many_callers(void *context, uintptr_t *pcs, size_t max)
{
    unsigned i = *(unsigned *)context;
    size_t n = 3 + i % 5;
    (void)max;
    for (size_t j = 0; j < n; j++)
        pcs[j] = 0x600000001000 + j;
    pcs[i % n] = UINT64_C(0x600000100000) + i;
    return n;
}

static void see_many(trail_reader *reader, const trail_event *event, void *context)
{
    unsigned *expected = context;
    char name[32];
    trail_string text;
    const trail_frame *frames;
    size_t n;
    if (event->kind != TRAIL_REGION_BEGIN)
        return;
    snprintf(name, sizeof name, "region number %u", *expected);
    text = trail_reader_string(reader, event->region.type);
    if (text.size != strlen(name) || memcmp(text.data, name, text.size) != 0)
        fail_msg("'%.*s', not '%s'", (int)text.size, text.data, name);
    frames = trail_reader_stack(reader, event->stack, &n);
    assert_int_equal(n, 3 + *expected % 5);
    for (size_t j = 0; j < n; j++)
        assert_int_equal(frames[j].pc, j == *expected % n ? UINT64_C(0x600000100000) + *expected
                                                          : UINT64_C(0x600000001000) + j);
    ++*expected;
}

TEST(many_different_ones)
{
    static const int formats[] = {11, 21, 22, 23, 26};
    unsigned n = how_many(MANY), at;
    trail_host many = {
        .context = &at, .callers = many_callers, .stop_world = nothing, .start_world = nothing};
    trail_host_set(&many);
    for (size_t i = 0; i < 5; i++) {
        trail_options options = {
            .format = formats[i], .unwinder = TRAIL_UNWIND_HOST, .generation_ns = LONG};
        unsigned expected = 0;
        trail_stats stats;
        trail_error err;
        record(&options);
        for (at = 0; at < n; at++) {
            char name[32];
            snprintf(name, sizeof name, "region number %u", at);
            trail_region_begin(0, name);
            trail_region_end(0, name);
        }
        at = 0;
        if (!trail_stop(&err))
            fail_msg("%s", err.message);
        if (trace_read(&recording.trace, see_many, &expected, &err) < 0)
            fail_msg("format %d: %s", formats[i], err.message);
        trace_free(&recording.trace);
        assert_int_equal(expected, n);
        trail_stats_get(&stats);
        assert_int_equal(stats.lost_stacks + stats.lost_strings + stats.lost_events, 0);
    }
    trail_host_set(&host);
}

/* MARK: Strings */

struct text {
    char *data;
    size_t size;
};

struct texts {
    struct text text[32];
    size_t count;
};

static void see_texts(trail_reader *reader, const trail_event *event, void *context)
{
    struct texts *texts = context;
    trail_string_handle handle = event->kind == TRAIL_REGION_BEGIN ? event->region.type
                                 : event->kind == TRAIL_LOG        ? event->log.message
                                                                   : 0;
    trail_string text = trail_reader_string(reader, handle);
    if (event->kind != TRAIL_REGION_BEGIN && event->kind != TRAIL_LOG)
        return;
    assert_true(texts->count < 32);
    texts->text[texts->count++] = (struct text){strndup(text.data, text.size), text.size};
}

static void free_texts(struct texts *texts)
{
    for (size_t i = 0; i < texts->count; i++)
        free(texts->text[i].data);
    *texts = (struct texts){0};
}

/* Sizes around the limits; the first bytes stay, to the limit. */
TEST(long_texts_are_cut)
{
    static const size_t sizes[] = {0, 1, 1023, 1024, 1025, 2048, 5000, 60000, 65536, 200000};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    char *longest = malloc(200001);
    for (size_t i = 0; i < 200000; i++)
        longest[i] = (char)('a' + i % 25);
    for (size_t i = 1; i < FORMATS; i++) {
        trail_options options = {.format = all_formats[i], .generation_ns = LONG};
        /* "about 64,000 in v1": what fits in a buffer of 64 KiB with the records around it. */
        size_t least = options.format < 22 ? 64000 : 1024,
               most = options.format < 22 ? 65536 : 1024;
        struct texts texts = {0};
        trail_error err;
        record(&options);
        for (size_t j = 0; j < SIZES; j++) {
            char end = longest[sizes[j]];
            longest[sizes[j]] = '\0';
            trail_region_begin(0, longest);
            trail_log(0, "size", longest);
            trail_region_end(0, longest);
            longest[sizes[j]] = j + 1 < SIZES ? end : '\0';
        }
        assert_true(trail_stop(&err));
        if (trace_read(&recording.trace, see_texts, &texts, &err) < 0)
            fail_msg("%s", err.message);
        trace_free(&recording.trace);
        assert_int_equal(texts.count, (size_t)2 * SIZES);
        for (size_t j = 0; j < (size_t)2 * SIZES; j++) {
            size_t whole = sizes[j / 2], size = texts.text[j].size;
            if (whole <= least)
                assert_int_equal(size, whole);
            assert_true(size <= most && size <= whole && size >= (whole < least ? whole : least));
            assert_memory_equal(texts.text[j].data, longest, size);
        }
        free_texts(&texts);
    }
    free(longest);
}

TEST(no_text_is_the_empty_text)
{
    for (size_t i = 1; i < FORMATS; i++) {
        trail_options options = {.format = all_formats[i], .generation_ns = LONG};
        struct texts texts = {0};
        trail_error err;
        uint64_t task;
        record(&options);
        task = trail_task_begin(0, NULL);
        trail_region_begin(task, NULL);
        trail_region_end(task, "");
        trail_log(task, NULL, "");
        trail_log(task, "", NULL);
        trail_task_end(task);
        assert_true(trail_stop(&err));
        if (trace_read(&recording.trace, see_texts, &texts, &err) < 0)
            fail_msg("%s", err.message);
        trace_free(&recording.trace);
        assert_int_equal(texts.count, 3);
        for (size_t j = 0; j < 3; j++)
            assert_int_equal(texts.text[j].size, 0);
        free_texts(&texts);
    }
}

/* MARK: Names from the host */

/* Names of the PCs of many_callers, in a buffer that the next call uses again. */
static bool host_symbolize(void *context, uintptr_t pc, trail_pc_name *name)
{
    static char function[32];
    (void)context;
    if (pc >= 0x600000001000 && pc < 0x600000001002) {
        snprintf(function, sizeof function, "named %d", (int)(pc - 0x600000001000));
        name->function = function;
        name->file = "script.x";
        name->line = 10 + (unsigned)(pc - 0x600000001000);
        return true;
    }
    if (pc == 0x600000001002) {
        name->line = 3; /* no names: texts that are not there are empty */
        return true;
    }
    return false;
}

TEST(the_host_names_frames)
{
    static struct callers callers = {
        .pc = {0x600000001000, 0x600000001001, 0x600000001002, 0x600000001003}, .n = 5};
    trail_host names = {.context = &callers,
                        .callers = host_callers,
                        .symbolize = host_symbolize,
                        .stop_world = nothing,
                        .start_world = nothing};
    callers.pc[4] = (uintptr_t)&lfind + 1;
    trail_host_set(&names);
    for (size_t i = 1; i < FORMATS; i++) {
        trail_options options = {
            .format = all_formats[i], .unwinder = TRAIL_UNWIND_HOST, .generation_ns = LONG};
        const struct seen *seen;
        record(&options);
        say("named");
        stop(see_event);
        seen = find("named");
        assert_int_equal(seen->n, 5);
        for (unsigned j = 0; j < 2; j++) {
            assert_string_equal(seen->function[j], j ? "named 1" : "named 0");
            assert_string_equal(seen->file[j], "script.x");
            assert_int_equal(seen->line[j], 10 + j);
        }
        assert_string_equal(seen->function[2], "");
        assert_int_equal(seen->line[2], 3);
        assert_string_equal(seen->function[3], "");
        assert_int_equal(seen->line[3], 0);
        /* Those that it does not know are asked of the loader. */
        assert_string_equal(seen->function[4], "lfind");
    }
    trail_host_set(&host);
}

TEST(no_names_if_they_are_not_wanted)
{
    trail_options options = {.no_symbols = true, .generation_ns = LONG};
    record(&options);
    outer("bare");
    stop(see_event);
    assert_true(find("bare")->n >= 6);
    assert_string_equal(find("bare")->function[0], "");
    assert_string_equal(find("bare")->file[0], "");
}

int main(void)
{
    trail_options options = {.generation_ns = LONG};
    /* A hang is a failure. */
    alarm(250);
    host = (trail_host){.each_goroutine = each_own, .stop_world = nothing, .start_world = nothing};
    trail_host_set(&host);
    if (!trail_start_sink(&options, trace_append, &recording.trace, NULL))
        return 1;
    outer("from main");
    each_test(NULL, leave);
    return run_all_tests(stop_what_main_started, NULL);
}
