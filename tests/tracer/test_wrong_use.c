/*
 * Hosts that misuse the library: the trace is valid without the wrong calls, each is counted by
 * kind, the first is reported with its place, and nothing crashes or hangs. In all formats.
 *
 * TRAIL_TEST_FILTER names the test, TRAIL_TEST_KEEP names a file for a refused trace.
 */
#include "stress.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* MARK: A host of one thread */

enum { MAX_LISTED = 8 };

static trail_m m;
static trail_p p;
static trail_g *listed[MAX_LISTED];
static size_t listed_count;
static trail_misuse first; /* what the callback received, and the number of its calls */
static unsigned reported;

static void each_goroutine(void *context, void (*visit)(trail_g *g, void *arg), void *arg)
{
    (void)context;
    for (size_t i = 0; i < listed_count; i++)
        visit(listed[i], arg);
}

static void nothing(void *context)
{
    (void)context;
}

static void keep_misuse(void *context, const trail_misuse *misuse)
{
    (void)context;
    first = *misuse;
    reported++;
}

static void list(trail_g *g)
{
    listed[listed_count++] = g;
}

static void host_begin(void)
{
    static const trail_host host = {.each_goroutine = each_goroutine,
                                    .stop_world = nothing,
                                    .start_world = nothing,
                                    .misuse = keep_misuse};
    alone(true);
    listed_count = 0;
    reported = 0;
    trail_host_set(&host);
    trail_m_start(&m);
    trail_p_init(&p, 0);
    trail_proc_start(&m, &p);
}

static void host_end(void)
{
    trail_proc_stop(&m);
    trail_p_fini(&p);
    trail_m_exit(&m);
    trail_host_set(NULL);
    alone(false);
}

static void run_one(trail_g *g)
{
    trail_g_init(g);
    list(g);
    trail_go_create(&m, g, 0, 0);
    trail_go_start(&m, g);
    trail_log(0, "host", "runs");
    trail_go_end(&m);
    listed_count--;
}

/* What the reader finds in a trace. */
struct found {
    long logs, created;
    int64_t highest_proc, lowest_goroutine;
};

static void look(trail_reader *reader, const trail_event *event, void *context)
{
    struct found *found = context;
    (void)reader;
    found->logs += event->kind == TRAIL_LOG;
    if (event->proc > found->highest_proc)
        found->highest_proc = event->proc;
}

/* Stops the trace, which must be valid. Returns the number of wrong calls, all of which must be of
 * `kind`. */
static uint64_t stop_wrong(int format, struct trace *trace, struct found *found,
                           trail_misuse_kind kind, trail_error *err)
{
    uint64_t sum = 0;
    trail_stats stats;
    bool ok = trail_stop(err);
    trail_stats_get(&stats);
    for (int i = 0; i < TRAIL_MISUSE_KIND_COUNT; i++)
        sum += stats.misuse_of[i];
    assert_int_equal(sum, stats.misuse);
    assert_int_equal(stats.misuse_of[kind], stats.misuse);
    assert_int_equal(ok, stats.misuse == 0);
    *found = (struct found){.highest_proc = -1};
    read_good(trace, look, found, "wrong use");
    (void)format;
    return stats.misuse;
}

#define ALL_FORMATS(i) for (size_t i = 0; i < FORMATS; i++)

/* MARK: Identities */

/*
 * An ID below 0, the ID of one of the library's own Ps, and the ID of another P: the P is refused,
 * and so is every call with it.
 */
TEST(wrong_procs)
{
    static const int32_t ids[] = {-1, INT32_MIN, 10000, INT32_MAX, 0};
    struct trace trace = {0};
    trail_options options = {0};
    struct found found;
    trail_error err;
    host_begin();
    ALL_FORMATS(i)
    for (size_t j = 0; j < sizeof ids / sizeof *ids; j++) {
        trail_p wrong;
        trail_g g;
        options.format = all_formats[i];
        memset(&wrong, 0xee, sizeof wrong);
        trail_p_init(&wrong, ids[j]);
        start_good(&options, &trace);
        run_one(&g);
        trail_proc_stop(&m);
        assert_false(trail_proc_start(&m, &wrong));
        assert_false(trail_proc_steal(&m, &wrong));
        assert_null(m.p);
        trail_proc_start(&m, &p);
        run_one(&g);
        assert_int_equal(stop_wrong(all_formats[i], &trace, &found, TRAIL_MISUSE_OBJECT, &err), 2);
        assert_non_null(strstr(err.message, "trail_proc_start"));
        assert_int_equal(found.highest_proc, 0);
        assert_int_equal(found.logs, all_formats[i] >= 11 ? 2 : 0);
        trail_p_fini(&wrong);
    }
    host_end();
    trace_free(&trace);
}

/* A goroutine without trail_g_init, one whose ID was changed, and a copy: in all calls that take a
 * goroutine, and in the host's list. */
TEST(wrong_goroutines)
{
    struct trace trace = {0};
    trail_options options = {0};
    struct found found;
    trail_error err;
    host_begin();
    ALL_FORMATS(i)
    for (int kind = 0; kind < 4; kind++) {
        trail_g wrong, good;
        trail_g_init(&wrong);
        if (kind == 0)
            memset(&wrong, 0, sizeof wrong);
        else if (kind == 1)
            memset(&wrong, 0xee, sizeof wrong);
        else if (kind == 2)
            wrong.id = 0;
        else
            memcpy(&wrong, (trail_g_init(&good), &good), sizeof wrong);
        options.format = all_formats[i];
        start_good(&options, &trace);
        trail_g_init(&good);
        list(&good);
        trail_go_create(&m, &good, 0, 0);
        assert_false(trail_go_create(&m, &wrong, 0, 0));
        assert_false(trail_go_create_blocked(&m, &wrong, 0, 0));
        assert_false(trail_go_start(&m, &wrong));
        assert_null(m.g);
        assert_false(trail_go_unblock(&m, &wrong, 0));
        trail_g_set_name(&wrong, "name");
        trail_g_set_kind(&wrong, "kind");
        trail_go_start(&m, &good);
        assert_false(trail_go_switch(&m, &wrong));
        assert_ptr_equal(m.g, &good);
        trail_log(0, "host", "runs");
        trail_go_end(&m);
        listed_count = 0;
        assert_int_equal(stop_wrong(all_formats[i], &trace, &found, TRAIL_MISUSE_OBJECT, &err), 7);
        assert_non_null(strstr(err.message, "trail_go_create"));
        assert_int_equal(found.logs, all_formats[i] >= 11);
        /* In the host's list, which is walked at the start (v1) or the end. */
        list(&wrong);
        start_good(&options, &trace);
        assert_int_equal(stop_wrong(all_formats[i], &trace, &found, TRAIL_MISUSE_OBJECT, &err), 1);
        assert_non_null(strstr(err.message, "each_goroutine"));
        listed_count = 0;
    }
    host_end();
    trace_free(&trace);
}

/* A goroutine that ran on a thread before the trace, although it was not initialized. */
TEST(runs_before_start)
{
    struct trace trace = {0};
    trail_options options = {0};
    struct found found;
    trail_error err;
    host_begin();
    ALL_FORMATS(i)
    {
        trail_g wrong = {0};
        options.format = all_formats[i];
        trail_go_create(&m, &wrong, 0, 0);
        trail_go_start(&m, &wrong);
        start_good(&options, &trace);
        trail_log(0, "host", "not in a goroutine that exists");
        trail_go_end(&m);
        (void)trail_stop(&err);
        read_good(&trace, look, &found, "runs before the start");
        assert_int_equal(reported, i + 1);
    }
    host_end();
    trace_free(&trace);
}

/* MARK: Threads */

static struct {
    bool zeroed;
} guest;

/* Uses an M that was never started, then the main thread's. */
static void *use_others(void *arg)
{
    trail_m never;
    trail_g g;
    (void)arg;
    memset(&never, guest.zeroed ? 0 : 0xee, sizeof never);
    trail_g_init(&g);
    assert_false(trail_go_create(&never, &g, 0, 0));
    assert_false(trail_go_create(NULL, &g, 0, 0));
    assert_false(trail_go_create(&m, &g, 0, 0));
    assert_false(trail_proc_stop(&m));
    assert_false(trail_heap_alloc(&m, 1));
    assert_false(trail_gc_begin(&never, 0));
    return NULL;
}

TEST(wrong_threads)
{
    struct trace trace = {0};
    trail_options options = {0};
    struct found found;
    trail_error err;
    host_begin();
    ALL_FORMATS(i)
    for (int on = 0; on < 2; on++) {
        pthread_t thread;
        trail_g g;
        guest.zeroed = i % 2;
        options.format = all_formats[i];
        start_good(&options, &trace);
        run_one(&g);
        assert_int_equal(pthread_create(&thread, NULL, use_others, NULL), 0);
        pthread_join(thread, NULL);
        assert_ptr_equal(m.p, &p);
        run_one(&g);
        assert_int_equal(stop_wrong(all_formats[i], &trace, &found, TRAIL_MISUSE_THREAD, &err), 6);
        assert_non_null(strstr(err.message, "trail_go_create"));
        assert_non_null(strstr(err.message, "trail_m_start"));
        assert_int_equal(found.logs, all_formats[i] >= 11 ? 2 : 0);
    }
    host_end();
    trace_free(&trace);
}

/* Nothing is recorded: a call with an M that was never started neither crashes nor follows a pointer. */
TEST(never_started_while_off)
{
    trail_m never;
    trail_g g;
    trail_g_init(&g);
    memset(&never, 0xee, sizeof never);
    assert_false(trail_go_create(&never, &g, 0, 0));
    assert_false(trail_go_create(NULL, &g, 0, 0));
    assert_false(trail_gc_sweep_begin(&never));
}

/* MARK: Threads that end */

enum ending { RETURNS, HOLDS, RUNS };
static enum ending ending;

/* The M is on the stack of a function that the thread returns from. */
__attribute__((noinline)) static void use_stack(void)
{
    trail_m on_stack;
    trail_p *own = &p;
    static trail_g g;
    trail_m_start(&on_stack);
    trail_g_init(&g);
    trail_proc_start(&on_stack, own);
    trail_go_create(&on_stack, &g, 0, 0);
    trail_go_start(&on_stack, &g);
    trail_log(0, "stack", "runs");
    if (ending != RUNS)
        trail_go_end(&on_stack);
    if (ending == RETURNS)
        trail_proc_stop(&on_stack);
}

__attribute__((noinline)) static void overwrite_stack(int byte)
{
    volatile char waste[16384];
    for (size_t i = 0; i < sizeof waste; i++)
        waste[i] = (char)byte;
}

static void *leave_stack(void *byte)
{
    use_stack();
    overwrite_stack((int)(intptr_t)byte);
    /* A generation ends while the thread is alive and its M is gone. */
    trail_advance();
    return NULL;
}

/* trail_m_exit is missing, and the M's memory has other data when the thread ends. */
TEST(stack_is_gone)
{
    static const int bytes[] = {0, 1, 0xee, 0xff};
    struct trace trace = {0};
    host_begin();
    trail_proc_stop(&m);
    ALL_FORMATS(i)
    for (size_t j = 0; j < 4; j++)
        for (ending = RETURNS; ending <= RUNS; ending++) {
            trail_options options = {.format = all_formats[i]};
            struct found found;
            pthread_t thread;
            trail_error err;
            start_good(&options, &trace);
            assert_int_equal(pthread_create(&thread, NULL, leave_stack, (void *)(intptr_t)bytes[j]),
                             0);
            pthread_join(thread, NULL);
            assert_int_equal(stop_wrong(all_formats[i], &trace, &found, TRAIL_MISUSE_CONTEXT, &err),
                             ending == RETURNS ? 0 : 1);
            if (ending != RETURNS)
                assert_non_null(strstr(err.message, "trail_m_exit"));
            assert_int_equal(found.logs, all_formats[i] >= 11);
        }
    trail_proc_start(&m, &p);
    host_end();
    trace_free(&trace);
}

/* The library's own M: valid until the thread ends, the same at each call, and needs no
 * clean-up. */
static void *attach_and_run(void *arg)
{
    trail_m *own;
    trail_g g;
    (void)arg;
    /* It has annotated before, with a goroutine of the library's. */
    trail_log(0, "attached", "before");
    own = trail_m_attach();
    assert_non_null(own);
    assert_ptr_equal(trail_m_attach(), own);
    assert_ptr_equal(trail_m_current(), own);
    assert_int_equal(own->id, syscall(SYS_gettid));
    trail_proc_start(own, &p);
    assert_ptr_equal(own->p, &p);
    trail_g_init(&g);
    trail_go_create(own, &g, 0, 0);
    trail_go_start(own, &g);
    assert_ptr_equal(own->g, &g);
    trail_log(0, "attached", "runs");
    trail_go_end(own);
    trail_proc_stop(own);
    return NULL;
}

TEST(attached)
{
    struct trace trace = {0};
    host_begin();
    trail_proc_stop(&m);
    ALL_FORMATS(i)
    {
        trail_options options = {.format = all_formats[i]};
        struct found found;
        start_good(&options, &trace);
        for (int j = 0; j < 10; j++) {
            pthread_t thread;
            assert_int_equal(pthread_create(&thread, NULL, attach_and_run, NULL), 0);
            pthread_join(thread, NULL);
        }
        stop_good(&options);
        nothing_lost("attached");
        found = (struct found){0};
        read_good(&trace, look, &found, "attached");
        assert_int_equal(found.logs, all_formats[i] >= 11 ? 20 : 0);
    }
    trail_proc_start(&m, &p);
    host_end();
    trace_free(&trace);
}

/* MARK: Reports */

/* Not static, so that the loader can name it. */
void wrong_place(void);
__attribute__((noinline)) void wrong_place(void)
{
    trail_go_block(&m, TRAIL_BLOCK_SYNC, 0);
    __asm__ volatile("");
}

/* The first wrong call of each trace: its function, reason, thread and stack. */
TEST(first_is_named)
{
    struct trace trace = {0};
    host_begin();
    ALL_FORMATS(i)
    {
        trail_options options = {.format = all_formats[i]};
        struct found found;
        trail_error err;
        reported = 0;
        start_good(&options, &trace);
        wrong_place();
        trail_region_end(0, "none");
        wrong_place();
        (void)found;
        assert_false(trail_stop(&err));
        assert_int_equal(reported, 1);
        assert_string_equal(first.call, "trail_go_block");
        assert_string_equal(first.reason, "the thread runs no goroutine on a P");
        assert_int_equal(first.kind, TRAIL_MISUSE_CONTEXT);
        assert_int_equal(first.thread, syscall(SYS_gettid));
        assert_int_equal(first.proc, 0);
        assert_int_equal(first.goroutine, -1);
#if defined(__x86_64__) || defined(__aarch64__)
        Dl_info info;
        assert_true(first.frames >= 1);
        assert_true(dladdr((void *)(first.pcs[0] - 1), &info));
        assert_string_equal(info.dli_sname, "wrong_place");
        assert_non_null(strstr(err.message, "wrong_place+0x"));
#endif
        assert_int_equal(err.code, TRAIL_USAGE);
        assert_int_equal(err.thread, syscall(SYS_gettid));
        assert_non_null(strstr(err.message, "trail_go_block: the thread runs no goroutine"));
        assert_true(strncmp(err.message, "2 calls", 7) == 0);
        read_good(&trace, NULL, NULL, "named");
        /* The next trace is valid. */
        start_good(&options, &trace);
        stop_good(&options);
        trace.size = 0;
    }
    host_end();
    trace_free(&trace);
}

/*
 * An M that its thread gave up by starting another one. While nothing is recorded, calls with it
 * still change what the thread runs: here to a goroutine in a system call without a P.
 */
TEST(given_up_while_off)
{
    static trail_m given_up;
    static trail_g g;
    struct trace trace = {0};
    host_begin();
    for (size_t i = 0; i < FORMATS; i++) {
        trail_options options = {.format = all_formats[i]};
        trail_g_init(&g);
        list(&g);
        trail_proc_stop(&m);
        trail_m_start(&given_up);
        trail_m_start(&m);
        trail_m_exit(&m);
        start_good(&options, &trace);
        trail_log(0, "thread", "is not announced");
        stop_good(&options);
        trace.size = 0;
        trail_go_destroy_syscall(&given_up);
        trail_go_create_syscall(&given_up, &g);
        start_good(&options, &trace);
        trail_log(0, "in the call", "first");
        trail_log(0, "in the call", "second");
        stop_good(&options);
        read_good(&trace, NULL, NULL, "given up");
        trace.size = 0;
        trail_m_start(&m);
        trail_proc_start(&m, &p);
        listed_count--;
    }
    host_end();
    trace_free(&trace);
}

/* The callback may not stop the trace: it would wait for itself. */
static bool stopped_in_callback;

static void stop_in_callback(void *context, const trail_misuse *misuse)
{
    trail_error err;
    (void)context;
    (void)misuse;
    trail_log(0, "in", "a call");
    trail_advance();
    stopped_in_callback = trail_stop(&err) || trail_start(NULL, &err) ||
                          trail_flight_start(NULL, &err) || trail_read(NULL, &err) >= 0;
}

TEST(callback_cannot_stop)
{
    static const trail_host host = {.misuse = stop_in_callback};
    struct trace trace = {0};
    trail_stats stats;
    trail_error err;
    trail_m own;
    alone(true);
    trail_host_set(&host);
    trail_m_start(&own);
    stopped_in_callback = true;
    assert_true(trail_start_sink(NULL, trace_append, &trace, &err));
    trail_go_end(&own);
    assert_false(stopped_in_callback);
    assert_false(trail_stop(&err));
    trail_stats_get(&stats);
    assert_int_equal(stats.reentrant, 1);
    trail_m_exit(&own);
    trail_host_set(NULL);
    alone(false);
    trace_free(&trace);
}

/* MARK: Traces that end by themselves */

static trail_error ended_because;
static unsigned ended; /* atomic */

static void note_end(void *context, const trail_error *why)
{
    (void)context;
    ended_because = *why;
    __atomic_fetch_add(&ended, 1, __ATOMIC_RELEASE);
}

static bool refuse(void *context, const trail_chunk *chunk)
{
    (void)context;
    (void)chunk;
    return false;
}

static void wait_for_end(unsigned n)
{
    while (__atomic_load_n(&ended, __ATOMIC_ACQUIRE) < n)
        nanosleep(&(struct timespec){0, 100000}, NULL);
}

TEST(end_is_told)
{
    static const trail_host host = {.ended = note_end};
    struct trace trace = {0};
    alone(true);
    trail_host_set(&host);
    assert_int_equal(trail_state(), TRAIL_STATE_OFF);
    ALL_FORMATS(i)
    {
        trail_options options = {.format = all_formats[i]};
        trail_error err;
        ended = 0;
        assert_true(trail_start_sink(&options, refuse, NULL, &err));
        wait_for_end(1);
        assert_int_equal(trail_state(), TRAIL_STATE_ENDED);
        assert_non_null(strstr(ended_because.message, "ended it"));
        /* The new trace replaces it. */
        start_good(&options, &trace);
        assert_int_equal(trail_state(), TRAIL_STATE_ON);
        trail_log(0, "a", "b");
        stop_good(&options);
        assert_int_equal(trail_state(), TRAIL_STATE_OFF);
        read_good(&trace, NULL, NULL, "after an end");
        assert_int_equal(ended, 1);
    }
    trail_host_set(NULL);
    alone(false);
    trace_free(&trace);
}

/* A trace that is not read ends when its memory is full; the next start neither fails nor waits. */
TEST(unread_is_replaced)
{
    trail_options options = {.memory = 4 * 65536, .when_full = TRAIL_FULL_END, .wait_ns = HOUR_NS};
    struct trace trace = {0};
    trail_error err;
    alone(true);
    ALL_FORMATS(i)
    {
        if (all_formats[i] < 11) /* no event without a scheduler */
            continue;
        options.format = all_formats[i];
        assert_true(trail_start(&options, &err));
        assert_false(trail_start(&options, &err));
        while (trail_state() == TRAIL_STATE_ON)
            trail_log(0, "much", "text");
        assert_int_equal(trail_state(), TRAIL_STATE_ENDED);
        start_good(&options, &trace);
        stop_good(&options);
        read_good(&trace, NULL, NULL, "after an unread one");
    }
    alone(false);
    trace_free(&trace);
}

/* MARK: Regions over waits */

/* What the goroutine did, in order: "b" and "e" with the first letter of the name for the begin and
 * end of a region, and its starts. */
struct story {
    char text[256];
    size_t size;
    int64_t goroutine;
};

static void tell(trail_reader *reader, const trail_event *event, void *context)
{
    struct story *story = context;
    char kind = event->kind == TRAIL_REGION_BEGIN ? '(' : event->kind == TRAIL_REGION_END ? ')' : 0;
    if (event->goroutine != story->goroutine || !kind || story->size + 3 > sizeof story->text)
        return;
    story->text[story->size++] = kind;
    story->text[story->size++] = trail_reader_string(reader, event->region.type).data[0];
    story->text[story->size] = '\0';
}

/* Turns between the main thread (0) and another (1). */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int turn;
} turns = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};

static void give_turn(int to)
{
    pthread_mutex_lock(&turns.lock);
    turns.turn = to;
    pthread_cond_broadcast(&turns.changed);
    while (turns.turn == to)
        pthread_cond_wait(&turns.changed, &turns.lock);
    pthread_mutex_unlock(&turns.lock);
}

static void end_turn(int to)
{
    pthread_mutex_lock(&turns.lock);
    turns.turn = to;
    pthread_cond_broadcast(&turns.changed);
    pthread_mutex_unlock(&turns.lock);
}

static void wait_turn(int which)
{
    pthread_mutex_lock(&turns.lock);
    while (turns.turn != which)
        pthread_cond_wait(&turns.changed, &turns.lock);
    pthread_mutex_unlock(&turns.lock);
}

static trail_g walker;
static bool ends_there; /* the goroutine ends on the other thread before the scope does */

/* Continues the waiting goroutine while its scope on the main thread is open. */
static void *continue_goroutine(void *arg)
{
    trail_m *own = trail_m_attach();
    trail_p other;
    (void)arg;
    trail_p_init(&other, 1);
    wait_turn(1);
    trail_proc_start(own, &other);
    trail_go_unblock(own, &walker, 0);
    trail_go_start(own, &walker);
    trail_region_begin(0, "inner");
    if (ends_there) {
        trail_region_end(0, "inner");
        trail_go_end(own);
        listed_count = 0;
        memset(&walker, 0xee, sizeof walker);
    }
    /* The scope on the main thread ends now. */
    give_turn(0);
    if (!ends_there) {
        trail_region_end(0, "inner");
        trail_region_begin(0, "last");
        trail_region_end(0, "last");
        trail_go_end(own);
        listed_count = 0;
    }
    trail_proc_stop(own);
    trail_p_fini(&other);
    end_turn(0);
    return NULL;
}

static void wait_in_scope(void)
{
    TRAIL_REGION("scope");
    trail_go_block(&m, TRAIL_BLOCK_SYNC, 0);
    give_turn(1);
}

static void begin_walker(struct story *story)
{
    trail_g_init(&walker);
    list(&walker);
    *story = (struct story){.goroutine = (int64_t)walker.id};
    trail_go_create(&m, &walker, 0, 0);
    trail_go_start(&m, &walker);
}

static void expect_story(struct trace *trace, struct story *story, const trail_options *options,
                         const char *wanted)
{
    stop_good(options);
    nothing_lost("regions");
    read_good(trace, tell, story, "regions");
    assert_string_equal(story->text, options->format >= 11 ? wanted : "");
}

/*
 * The goroutine continues on another thread and is running there when the scope ends: its region
 * ends as soon as the inner one has. If the goroutine ends first, its region ends with it.
 */
TEST(scope_ends_elsewhere)
{
    struct trace trace = {0};
    host_begin();
    ALL_FORMATS(i)
    for (int there = 0; there < 2; there++) {
        trail_options options = {.format = all_formats[i]};
        struct story story;
        pthread_t thread;
        ends_there = there;
        turns.turn = 0;
        start_good(&options, &trace);
        begin_walker(&story);
        assert_int_equal(pthread_create(&thread, NULL, continue_goroutine, NULL), 0);
        wait_in_scope();
        end_turn(1);
        pthread_join(thread, NULL);
        expect_story(&trace, &story, &options, there ? "(s(i)i" : "(s(i)i)s(l)l");
    }
    host_end();
    trace_free(&trace);
}

/* The scope ends while the goroutine waits: the region includes the wait, and ends when the
 * goroutine runs again. */
static void block_in_scopes(void)
{
    TRAIL_REGION("outer");
    TRAIL_REGION("inner");
    trail_go_block(&m, TRAIL_BLOCK_SYNC, 0);
}

TEST(scope_ends_in_wait)
{
    struct trace trace = {0};
    host_begin();
    ALL_FORMATS(i)
    {
        trail_options options = {.format = all_formats[i]};
        struct story story;
        start_good(&options, &trace);
        begin_walker(&story);
        for (int j = 0; j < 2; j++) {
            block_in_scopes();
            /* Names have different IDs in the next generation. */
            trail_advance();
            trail_go_unblock(&m, &walker, 0);
            trail_go_start(&m, &walker);
        }
        trail_region_begin(0, "last");
        trail_region_end(0, "last");
        trail_go_end(&m);
        listed_count = 0;
        expect_story(&trace, &story, &options, "(o(i)i)o(o(i)i)o(l)l");
    }
    host_end();
    trace_free(&trace);
}

/* The goroutine ends within the scope: nothing is left for later, and nothing is misuse. */
static void end_in_scope(void)
{
    TRAIL_REGION("scope");
    trail_go_end(&m);
    listed_count = 0;
}

TEST(scope_outlives_goroutine)
{
    struct trace trace = {0};
    host_begin();
    ALL_FORMATS(i)
    {
        trail_options options = {.format = all_formats[i]};
        struct story story;
        start_good(&options, &trace);
        begin_walker(&story);
        end_in_scope();
        begin_walker(&story);
        trail_region_begin(0, "scope");
        trail_region_end(0, "scope");
        trail_go_end(&m);
        listed_count = 0;
        expect_story(&trace, &story, &options, "(s)s");
    }
    host_end();
    trace_free(&trace);
}

/* A scope of an earlier trace ends nothing in a later one, except where it began in this
 * goroutine. */
TEST(scope_of_earlier_trace)
{
    struct trace trace = {0};
    host_begin();
    ALL_FORMATS(i)
    {
        trail_options options = {.format = all_formats[i]};
        struct story story;
        start_good(&options, &trace);
        begin_walker(&story);
        {
            TRAIL_REGION("scope");
            trail_go_block(&m, TRAIL_BLOCK_SYNC, 0);
            stop_good(&options);
            trace.size = 0;
            start_good(&options, &trace);
        }
        trail_go_unblock(&m, &walker, 0);
        trail_go_start(&m, &walker);
        trail_region_begin(0, "scope");
        trail_go_sched(&m, 0);
        trail_go_start(&m, &walker);
        trail_region_begin(0, "inner");
        trail_region_end(0, "inner");
        trail_region_end(0, "scope");
        trail_go_end(&m);
        listed_count = 0;
        expect_story(&trace, &story, &options, "(s(i)i)s");
    }
    host_end();
    trace_free(&trace);
}

/* MARK: Sweeps */

static void count_sweeps(trail_reader *reader, const trail_event *event, void *context)
{
    (void)reader;
    *(long *)context += event->kind == TRAIL_RANGE_BEGIN;
}

/* Spans swept outside of a sweep event are not written and are not misuse, as in Go's allocator. */
TEST(spans_outside_of_sweeps)
{
    struct trace trace = {0};
    host_begin();
    ALL_FORMATS(i)
    {
        trail_options options = {.format = all_formats[i]};
        long sweeps = 0;
        trail_g g;
        start_good(&options, &trace);
        trail_g_init(&g);
        trail_go_create(&m, &g, 0, 0);
        trail_go_start(&m, &g);
        assert_true(trail_gc_sweep_span(&m, 8192, 100, 0));
        trail_gc_sweep_begin(&m);
        assert_true(trail_gc_sweep_span(&m, 8192, 100, 0));
        trail_gc_sweep_end(&m);
        assert_true(trail_gc_sweep_span(&m, 8192, 100, 0));
        trail_go_end(&m);
        stop_good(&options);
        nothing_lost("sweeps");
        read_good(&trace, count_sweeps, &sweeps, "sweeps");
        assert_int_equal(sweeps, 1);
    }
    host_end();
    trace_free(&trace);
}

static void count_range_ends(trail_reader *reader, const trail_event *event, void *context)
{
    (void)reader;
    *(long *)context += event->kind == TRAIL_RANGE_END;
}

/* MARK: What a call leaves behind for readers */

static trail_g one, two;

static void begin_two(const trail_options *options, struct trace *trace)
{
    start_good(options, trace);
    trail_g_init(&one);
    trail_g_init(&two);
    list(&one);
    list(&two);
    trail_go_create(&m, &one, 0, 0);
    trail_go_create(&m, &two, 0, 0);
    trail_go_start(&m, &one);
}

/* A stop-the-world pause belongs to the goroutine that began it, and ends with it at the latest. */
TEST(stop_on_other_goroutine)
{
    struct trace trace = {0};
    host_begin();
    ALL_FORMATS(i)
    for (int ends = 0; ends < 2; ends++) {
        trail_options options = {.format = all_formats[i]};
        struct found found;
        trail_error err;
        begin_two(&options, &trace);
        assert_true(trail_stw_begin(&m, TRAIL_STW_GC_MARK_TERM, 0));
        assert_false(trail_stw_begin(&m, TRAIL_STW_GC_MARK_TERM, 0));
        assert_true(ends ? trail_go_end(&m) : trail_go_sched(&m, 0));
        assert_true(trail_go_start(&m, &two));
        /* With the goroutine, the pause is over. */
        assert_int_equal(trail_stw_end(&m), ends);
        assert_int_equal(trail_stw_begin(&m, TRAIL_STW_GC_SWEEP_TERM, 0), ends);
        assert_int_equal(trail_stw_end(&m), ends);
        assert_true(trail_go_end(&m));
        if (!ends) {
            assert_true(trail_go_start(&m, &one));
            assert_true(trail_stw_end(&m));
            assert_true(trail_go_end(&m));
        }
        listed_count = 0;
        assert_int_equal(stop_wrong(options.format, &trace, &found, TRAIL_MISUSE_NESTING, &err),
                         ends ? 2 : 4);
    }
    host_end();
    trace_free(&trace);
}

/* A goroutine that a thread took while off, and that was never initialized, has no ID to stop the world by. */
TEST(stop_on_unknown_goroutine)
{
    struct trace trace = {0};
    host_begin();
    ALL_FORMATS(i)
    {
        trail_options options = {.format = all_formats[i]};
        trail_g never = {0};
        struct found found = {.highest_proc = -1};
        trail_error err;
        trail_go_start(&m, &never);
        start_good(&options, &trace);
        bool stopped = trail_stw_begin(&m, TRAIL_STW_GC_MARK_TERM, 0);
        assert_false(stopped && trail_stw_begin(&m, TRAIL_STW_GC_MARK_TERM, 0));
        assert_int_equal(stopped, trail_stw_end(&m) && stopped);
        trail_go_end(&m);
        (void)trail_stop(&err);
        read_good(&trace, look, &found, "wrong use");
    }
    host_end();
    trace_free(&trace);
}

/* One in a system call, which readers do not know, takes a P and then loses its memory: it has no end in the trace. */
TEST(unknown_goroutine_reused)
{
    struct trace trace = {0};
    host_begin();
    trail_proc_stop(&m);
    ALL_FORMATS(i)
    {
        trail_options options = {.format = all_formats[i]};
        trail_g never = {0};
        struct found found = {.highest_proc = -1};
        trail_error err;
        trail_go_create_syscall(&m, &never);
        start_good(&options, &trace);
        (void)trail_proc_start(&m, &p);
        trail_g_init(&never);
        list(&never);
        assert_true(trail_go_create(&m, &never, 0, 0));
        assert_true(trail_go_start(&m, &never));
        assert_true(trail_go_end(&m));
        trail_proc_stop(&m);
        listed_count = 0;
        (void)trail_stop(&err);
        read_good(&trace, look, &found, "wrong use");
    }
    host_end();
    trace_free(&trace);
}

/* The memory of a goroutine that runs, or is in a system call, is initialized again. */
TEST(running_goroutine_reused)
{
    struct trace trace = {0};
    host_begin();
    ALL_FORMATS(i)
    for (int in_call = 0; in_call < 2; in_call++) {
        trail_options options = {.format = all_formats[i]};
        struct found found;
        trail_error err;
        begin_two(&options, &trace);
        if (in_call) {
            trail_syscall_enter(&m, 0);
            trail_proc_stop(&m);
        }
        trail_g_init(&one);
        if (in_call)
            assert_true(trail_proc_start(&m, &p));
        assert_true(trail_go_create(&m, &one, 0, 0));
        assert_true(trail_go_start(&m, &one));
        assert_true(trail_go_end(&m));
        assert_true(trail_go_start(&m, &two));
        assert_true(trail_go_end(&m));
        listed_count = 0;
        assert_int_equal(stop_wrong(options.format, &trace, &found, TRAIL_MISUSE_OBJECT, &err), 1);
        assert_non_null(strstr(err.message, "trail_go_end is missing"));
    }
    host_end();
    trace_free(&trace);
}

/* A host that lists each goroutine twice: one that waits and one that runs. */
TEST(listed_twice)
{
    struct trace trace = {0};
    host_begin();
    ALL_FORMATS(i)
    {
        trail_options options = {.format = all_formats[i]};
        struct found found = {.highest_proc = -1};
        trail_g_init(&one);
        trail_g_init(&two);
        trail_go_create(&m, &one, 0, 0);
        trail_go_start(&m, &one);
        trail_go_block(&m, TRAIL_BLOCK_SYNC, 0);
        trail_go_create(&m, &two, 0, 0);
        trail_go_start(&m, &two);
        for (int times = 0; times < 2; times++) {
            list(&one);
            list(&two);
        }
        trace.size = 0;
        start_good(&options, &trace);
        assert_true(trail_go_unblock(&m, &one, 0));
        assert_true(trail_go_end(&m));
        assert_true(trail_go_start(&m, &one));
        assert_true(trail_go_end(&m));
        stop_good(&options);
        read_good(&trace, look, &found, "listed twice");
        listed_count = 0;
    }
    host_end();
    trace_free(&trace);
}

/* States of a goroutine, in order: the first letter of each, including the state at the start of
 * the trace. */
static void tell_states(trail_reader *reader, const trail_event *event, void *context)
{
    static const char letters[] = "?nrRws";
    struct story *story = context;
    (void)reader;
    if (event->kind != TRAIL_STATE_TRANSITION ||
        event->transition.resource != TRAIL_RESOURCE_GOROUTINE ||
        event->transition.id != story->goroutine || story->size + 2 > sizeof story->text)
        return;
    story->text[story->size++] = letters[event->transition.to];
    story->text[story->size] = '\0';
}

/*
 * A goroutine's state does not depend on the format of the previous trace: created waiting, which
 * formats before 23 show as runnable; waiting forever, which ends it in v1.
 */
TEST(states_outlast_formats)
{
    struct trace trace = {0};
    host_begin();
    ALL_FORMATS(i)
    ALL_FORMATS(j)
    for (int ever = 0; ever < 2; ever++) {
        trail_options before = {.format = all_formats[i]}, after = {.format = all_formats[j]};
        struct story story = {.size = 0};
        start_good(&before, &trace);
        trail_g_init(&one);
        list(&one);
        if (ever) {
            trail_go_create(&m, &one, 0, 0);
            trail_go_start(&m, &one);
            trail_go_block(&m, TRAIL_BLOCK_FOREVER, 0);
        } else {
            trail_go_create_blocked(&m, &one, 0, 0);
        }
        stop_good(&before);
        trace.size = 0;
        start_good(&after, &trace);
        story.goroutine = (int64_t)one.id;
        if (!ever) {
            assert_true(trail_go_unblock(&m, &one, 0));
            assert_true(trail_go_start(&m, &one));
            assert_true(trail_go_end(&m));
        }
        stop_good(&after);
        read_good(&trace, tell_states, &story, "states");
        /* v1 lists it as created, then as waiting. */
        assert_string_equal(story.text + (after.format < 22 && story.text[0] == 'r'),
                            ever ? "w" : "wrRn");
        listed_count = 0;
    }
    host_end();
    trace_free(&trace);
}

/* The end of a call from foreign code releases the P: it can be acquired at once, or taken from the
 * call first. */
TEST(call_releases_proc)
{
    struct trace trace = {0};
    host_begin();
    trail_proc_stop(&m);
    ALL_FORMATS(i)
    for (int on = 0; on < 4; on++) {
        trail_options options = {.format = all_formats[i]};
        if (on & 1)
            start_good(&options, &trace);
        trail_g_init(&one);
        list(&one);
        assert_true(trail_go_create_syscall(&m, &one));
        assert_true(trail_proc_start(&m, &p));
        assert_true(trail_syscall_exit_blocked(&m));
        assert_true(trail_go_start(&m, &one));
        assert_true(trail_syscall_enter(&m, 0));
        assert_true(trail_go_destroy_syscall(&m));
        listed_count = 0;
        if (on & 2)
            assert_true(trail_proc_steal(&m, &p));
        assert_true(trail_proc_start(&m, &p));
        assert_true(trail_proc_stop(&m));
        if (on & 1) {
            stop_good(&options);
            nothing_lost("calls");
            read_good(&trace, NULL, NULL, "calls");
        }
    }
    trail_proc_start(&m, &p);
    host_end();
    trace_free(&trace);
}

/* An assist in progress at the start is in the trace; an end without a begin is counted. */
TEST(assist_under_way)
{
    struct trace trace = {0};
    host_begin();
    ALL_FORMATS(i)
    {
        trail_options options = {.format = all_formats[i]};
        long ranges = 0;
        trail_g_init(&one);
        list(&one);
        trail_go_create(&m, &one, 0, 0);
        trail_go_start(&m, &one);
        assert_true(trail_gc_begin(&m, 0));
        assert_true(trail_gc_assist_begin(&m, 0));
        start_good(&options, &trace);
        assert_true(trail_gc_assist_end(&m));
        assert_true(trail_gc_end(&m));
        assert_true(trail_go_end(&m));
        listed_count = 0;
        stop_good(&options);
        nothing_lost("an assist");
        read_good(&trace, count_range_ends, &ranges, "an assist");
        assert_int_equal(ranges, options.format >= 22 ? 2 : options.format >= 11 ? 1 : 0);
    }
    host_end();
    trace_free(&trace);
}

/* Two threads hold the same P while nothing is recorded: the one that took it first does not
 * release it. */
static void *take_and_hold(void *arg)
{
    trail_m *own = trail_m_attach();
    trail_proc_start(own, &p);
    wait_turn(1);
    *(bool *)arg = trail_go_start(own, &one) && trail_go_end(own) && trail_proc_stop(own);
    end_turn(0);
    return NULL;
}

TEST(one_proc_twice)
{
    struct trace trace = {0};
    host_begin();
    ALL_FORMATS(i)
    {
        trail_options options = {.format = all_formats[i]};
        pthread_t thread;
        bool right = false;
        trail_g_init(&one);
        list(&one);
        turns.turn = 0;
        trail_proc_start(&m, &p);
        assert_int_equal(pthread_create(&thread, NULL, take_and_hold, &right), 0);
        while (trail_m_current() != &m ||
               __atomic_load_n(&p.inner_->m_, __ATOMIC_ACQUIRE) == m.inner_)
            nanosleep(&(struct timespec){0, 100000}, NULL);
        trail_go_create(&m, &one, 0, 0);
        trail_proc_stop(&m);
        start_good(&options, &trace);
        end_turn(1);
        pthread_join(thread, NULL);
        assert_true(right);
        listed_count = 0;
        stop_good(&options);
        read_good(&trace, NULL, NULL, "a P twice");
    }
    trail_proc_start(&m, &p);
    host_end();
    trace_free(&trace);
}

/* A thread takes a second P while nothing is recorded. When its first P is taken from it, it keeps
 * the second. */
TEST(second_proc_stays)
{
    struct trace trace = {0};
    trail_p second;
    host_begin();
    trail_p_init(&second, 1);
    ALL_FORMATS(i)
    {
        trail_options options = {.format = all_formats[i]};
        trail_g_init(&one);
        list(&one);
        trail_proc_start(&m, &p);
        trail_proc_start(&m, &second);
        trail_proc_steal(&m, &p);
        trail_go_create(&m, &one, 0, 0);
        start_good(&options, &trace);
        assert_true(trail_go_start(&m, &one));
        assert_true(trail_go_end(&m));
        assert_true(trail_proc_stop(&m));
        listed_count = 0;
        stop_good(&options);
        read_good(&trace, NULL, NULL, "two Ps");
    }
    trail_proc_start(&m, &p);
    trail_p_fini(&second);
    host_end();
    trace_free(&trace);
}

/* MARK: What is refused or counted */

TEST(options_out_of_range)
{
    static const struct {
        trail_options options;
        const char *message;
    } wrong[] = {
        {{.unwinder = (trail_unwinder)99}, "unwinder is 99"},
        {{.unwinder = (trail_unwinder)-1}, "unwinder is -1"},
        {{.when_full = (trail_when_full)77}, "when_full is 77"},
        {{.task_word = ""}, "task_word"},
        {{.task_word = "evil\nword"}, "task_word"},
        {{.task_word = "a\tb"}, "task_word"},
        {{.task_word = "a\x7f"}, "task_word"},
        {{.max_frames = TRAIL_MAX_FRAMES + 1}, "max_frames is 129"},
    };
    struct trace trace = {0};
    trail_error err;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_false(trail_start_sink(&wrong[i].options, trace_append, &trace, &err));
        assert_int_equal(err.code, TRAIL_USAGE);
        assert_non_null(strstr(err.message, wrong[i].message));
    }
    assert_false(trail_start_sink(NULL, NULL, NULL, &err));
    assert_non_null(strstr(err.message, "sink is NULL"));
}

/* A call without an event in the format is counted once; timer goroutines only if there are more
 * than the table holds. */
TEST(left_out_is_counted)
{
    static trail_g timers[65];
    struct trace trace = {0};
    trail_options options = {.format = 7};
    trail_stats stats;
    host_begin();
    begin_two(&options, &trace);
    for (int i = 0; i < 65; i++) {
        trail_g_init(&timers[i]);
        for (int again = 0; again < 3; again++)
            trail_timer_goroutine(&timers[i]);
    }
    trail_go_end(&m);
    trail_go_start_labelled(&m, &two, "label");
    trail_go_end(&m);
    listed_count = 0;
    stop_good(&options);
    trail_stats_get(&stats);
    assert_int_equal(stats.left_out[TRAIL_LEFT_OUT_TIMER], 3);
    assert_int_equal(stats.left_out[TRAIL_LEFT_OUT_LABEL], 1);
    assert_int_equal(stats.not_expressible, 4);
    read_good(&trace, NULL, NULL, "left out");
    host_end();
    trace_free(&trace);
}

/* Each returns false and is counted: ends without a begin, a steal of an idle P, an impossible
 * advance. */
TEST(false_is_counted)
{
    struct trace trace = {0};
    trail_p idle;
    host_begin();
    trail_p_init(&idle, 1);
    ALL_FORMATS(i)
    {
        trail_options options = {.format = all_formats[i]};
        struct found found;
        trail_error err;
        bool has_assists = options.format >= 11;
        begin_two(&options, &trace);
        assert_false(trail_gc_end(&m));
        assert_int_equal(trail_gc_assist_end(&m), !has_assists);
        assert_true(trail_stw_begin(&m, TRAIL_STW_GC_MARK_TERM, 0));
        trail_advance();
        assert_true(trail_stw_end(&m));
        assert_true(trail_go_end(&m));
        listed_count = 0;
        assert_int_equal(stop_wrong(options.format, &trace, &found, TRAIL_MISUSE_NESTING, &err),
                         2 + has_assists);
        start_good(&options, &trace);
        assert_false(trail_proc_steal(&m, &idle));
        assert_int_equal(stop_wrong(options.format, &trace, &found, TRAIL_MISUSE_STATE, &err), 1);
    }
    trail_p_fini(&idle);
    host_end();
    trace_free(&trace);
}

/* Returns the number of FutileWakeup records in the batches of a trace of format 7. */
static unsigned futile_records(const struct trace *trace)
{
    trail_error err;
    trail_source *source = trail_source_open_memory(trace->data, trace->size, &err);
    trail_walk *walk = trail_walk_open(source, &err);
    trail_batch batch;
    unsigned n = 0;
    assert_non_null(walk);
    while (trail_walk_next(walk, &batch) > 0) {
        const uint8_t *at = trail_walk_data(walk), *end = at + batch.size;
        while (batch.proc >= 0 && at < end) {
            unsigned type = *at & 63, values = (*at >> 6) + 1u;
            /* Strings, stacks and others without a time: the tables. */
            if (type == 2 || type == 3 || type == 37)
                break;
            n += type == 36;
            at++;
            if (values == 4)
                at += 1 + *at;
            for (; values < 4 && values > 0; values--) {
                while (*at & 0x80)
                    at++;
                at++;
            }
        }
    }
    trail_walk_close(walk);
    trail_source_close(source);
    return n;
}

/* Go 1.21 removes a futile wake-up only before some kinds of waits, and rejects a trace with
 * others. */
TEST(futile_where_readers_expect_it)
{
    trail_options options = {.format = 7};
    struct trace trace = {0};
    host_begin();
    for (unsigned reason = 0; reason < TRAIL_BLOCK_REASON_COUNT; reason++) {
        bool allowed = reason != TRAIL_BLOCK_NETWORK && reason != TRAIL_BLOCK_SLEEP &&
                       reason != TRAIL_BLOCK_FOREVER;
        begin_two(&options, &trace);
        trail_go_block(&m, TRAIL_BLOCK_SYNC, 0);
        trail_go_unblock(&m, &one, 0);
        trail_go_start(&m, &one);
        assert_true(trail_go_block_futile(&m, (trail_block_reason)reason, 0));
        stop_good(&options);
        listed_count = 0;
        assert_int_equal(futile_records(&trace), allowed);
        read_good(&trace, NULL, NULL, "futile");
    }
    host_end();
    trace_free(&trace);
}

/* MARK: Goroutines that are ended where they wait, regions of tasks, the heap without a P */

/* A suspended coroutine is destroyed by another one, by a thread between two coroutines, and by a
 * thread without a P. */
TEST(destroyed_while_suspended)
{
    struct trace trace = {0};
    host_begin();
    ALL_FORMATS(i)
    for (int ready = 0; ready < 2; ready++)
        for (int where = 0; where < 4; where++) {
            trail_options options = {.format = all_formats[i]};
            struct story story = {.size = 0};
            begin_two(&options, &trace);
            story.goroutine = (int64_t)one.id;
            assert_false(trail_go_destroy(&m, &one));
            trail_go_block(&m, TRAIL_BLOCK_SYNC, 0);
            if (ready)
                trail_go_unblock(&m, &one, 0);
            if (where >= 1)
                trail_go_start(&m, &two);
            if (where >= 2)
                trail_syscall_enter(&m, 0);
            if (where == 3)
                trail_proc_stop(&m);
            assert_true(trail_go_destroy(&m, &one));
            assert_false(trail_go_destroy(&m, &one));
            listed[0] = listed[1];
            listed_count = 1;
            trail_advance();
            if (where == 3) {
                assert_true(trail_syscall_exit_blocked(&m));
                assert_true(trail_proc_start(&m, &p));
                assert_true(trail_go_start(&m, &two));
            } else if (where == 2) {
                assert_true(trail_syscall_exit(&m));
            } else if (where == 0) {
                assert_true(trail_go_start(&m, &two));
            }
            assert_true(trail_go_end(&m));
            listed_count = 0;
            assert_false(trail_stop(NULL));
            read_good(&trace, tell_states, &story, "destroyed");
            assert_string_equal(story.text, "rRwrRn");
        }
    host_end();
    trace_free(&trace);
}

static void region_of_task(trail_reader *reader, const trail_event *event, void *context)
{
    (void)reader;
    if (event->kind == TRAIL_REGION_BEGIN || event->kind == TRAIL_REGION_END)
        *(uint64_t *)context = *(uint64_t *)context * 10 + event->region.task;
}

TEST(scopes_have_tasks)
{
    struct trace trace = {0};
    host_begin();
    ALL_FORMATS(i)
    {
        trail_options options = {.format = all_formats[i]};
        uint64_t tasks = 0;
        begin_two(&options, &trace);
        {
            TRAIL_TASK_REGION(7, "outer");
            TRAIL_REGION("inner");
        }
        trail_go_end(&m);
        listed_count = 0;
        stop_good(&options);
        read_good(&trace, region_of_task, &tasks, "tasks");
        /* Without a task, the number is 0. */
        assert_int_equal(tasks, options.format >= 11 ? 7007 : 0);
    }
    host_end();
    trace_free(&trace);
}

static void sum_heap(trail_reader *reader, const trail_event *event, void *context)
{
    (void)reader;
    if (event->kind == TRAIL_METRIC && (event->metric.metric == TRAIL_METRIC_HEAP_GOAL ||
                                        event->metric.metric == TRAIL_METRIC_HEAP_LIVE))
        *(uint64_t *)context += event->metric.value;
}

/* A thread reports the heap without a P, in a system call, and in one that has lost its P. */
TEST(heap_without_proc)
{
    struct trace trace = {0};
    host_begin();
    ALL_FORMATS(i)
    {
        trail_options options = {.format = all_formats[i]};
        uint64_t sum = 0;
        begin_two(&options, &trace);
        assert_true(trail_syscall_enter(&m, 0));
        assert_true(trail_heap_alloc(&m, 1));
        assert_true(trail_heap_goal(&m, 20));
        assert_true(trail_proc_stop(&m));
        assert_true(trail_heap_alloc(&m, 300));
        assert_true(trail_syscall_exit_blocked(&m));
        assert_true(trail_heap_alloc(&m, 4000));
        assert_true(trail_proc_start(&m, &p));
        assert_true(trail_go_start(&m, &one));
        assert_true(trail_go_end(&m));
        listed_count = 0;
        stop_good(&options);
        nothing_lost("heap");
        read_good(&trace, sum_heap, &sum, "heap");
        assert_int_equal(sum, 4321);
        /* The goal is kept after the trace. */
        assert_true(trail_heap_goal(&m, UINT64_MAX));
    }
    host_end();
    trace_free(&trace);
}

int main(void)
{
    /* A hang is a failure. */
    alarm(250);
    return run_all_tests(NULL, NULL);
}
