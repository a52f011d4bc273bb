/*
 * Starts and stops traces while another thread is between two given steps of a call. The library is
 * a variant that calls the test at the points of src/tracer/pause.h, where each test's hook makes
 * threads wait for one another.
 */
#include "stress.h"
#include "tracer/context.h"
#include "tracer/pause.h"
#include "tracer/roster.h"
#include "tracer/runnable.h"

#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const int v1_formats[] = {7, 11, 19, 21};
#define V1_FORMATS (sizeof v1_formats / sizeof *v1_formats)

#define HOUR (INT64_C(3600) * 1000000000)

/* MARK: The hook */

static void (*hook)(enum pause at); /* atomic */

void tracer_pause(enum pause at)
{
    void (*call)(enum pause) = __atomic_load_n(&hook, __ATOMIC_ACQUIRE);
    if (call)
        call(at);
}

static void hook_set(void (*to)(enum pause at))
{
    __atomic_store_n(&hook, to, __ATOMIC_RELEASE);
}

static bool is_set(const bool *flag)
{
    return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}

static void set(bool *flag)
{
    __atomic_store_n(flag, true, __ATOMIC_RELEASE);
}

static void wait_for(const bool *flag)
{
    while (!is_set(flag))
        sched_yield();
}

/* MARK: The other thread */

static __thread bool is_other;

static struct {
    pthread_t thread;
    trail_m m;
    trail_p p;
    trail_g g;
    void (*act)(void);    /* called when `go` is set */
    bool ready, go, over; /* atomic; `over`: act has returned */
    bool arrived;         /* atomic: it is at the point that the test waits for */
    bool quit;            /* atomic */
    unsigned waits;       /* how often it reached PAUSE_WAITS */
} other;

/* Announces itself, with an M, a P and a running goroutine. */
static void *be_announced(void *arg)
{
    (void)arg;
    is_other = true;
    trail_m_start(&other.m);
    trail_p_init(&other.p, 0);
    trail_proc_start(&other.m, &other.p);
    trail_g_init(&other.g);
    trail_go_create(&other.m, &other.g, 0, 0);
    trail_go_start(&other.m, &other.g);
    set(&other.ready);
    wait_for(&other.go);
    other.act();
    set(&other.over);
    wait_for(&other.quit);
    trail_go_end(&other.m);
    trail_proc_stop(&other.m);
    trail_p_fini(&other.p);
    trail_m_exit(&other.m);
    return NULL;
}

static void *be_unannounced(void *arg)
{
    (void)arg;
    is_other = true;
    set(&other.ready);
    wait_for(&other.go);
    other.act();
    set(&other.over);
    wait_for(&other.quit);
    return NULL;
}

static void each_goroutine(void *context, void (*visit)(trail_g *g, void *arg), void *arg)
{
    (void)context;
    visit(&other.g, arg);
}

static void other_begin(void *(*life)(void *arg), void (*act)(void))
{
    static const trail_host listing = {.each_goroutine = each_goroutine}, nothing;
    memset(&other, 0, sizeof other);
    other.act = act;
    trail_host_set(life == be_announced ? &listing : &nothing);
    assert_int_equal(pthread_create(&other.thread, NULL, life, NULL), 0);
    wait_for(&other.ready);
}

static void other_end(void)
{
    set(&other.quit);
    pthread_join(other.thread, NULL);
    trail_host_set(NULL);
}

/* The other thread stays where it is until the trace is on and threads are no longer held. */
static void arrive_until_on(void)
{
    set(&other.arrived);
    while (!trace_is_on() || __atomic_load_n(&tracer.held, __ATOMIC_ACQUIRE))
        sched_yield();
}

/* MARK: A call in the beginning of a v1 trace */

/* Without the first call, the second would contradict the trace. */
static void sched_and_start(void)
{
    trail_go_sched(&other.m, 0);
    trail_go_start(&other.m, &other.g);
}

static void go_and_wait(void)
{
    set(&other.go);
    wait_for(&other.arrived);
}

/* The call loads generation 0 after the list was made, and continues when the trace is on. */
static void enter_when_listed(enum pause at)
{
    if (!is_other && at == PAUSE_LISTED)
        go_and_wait();
    if (is_other && at == PAUSE_LOADED && !is_set(&other.arrived))
        arrive_until_on();
}

/* The call is waiting when the trace begins. A generation that it loaded while waiting was 0. */
static void wait_when_listed(enum pause at)
{
    if (!is_other && at == PAUSE_LISTED)
        go_and_wait();
    if (is_other && at == PAUSE_WAITS && ++other.waits == 3)
        set(&other.arrived);
    if (is_other && at == PAUSE_LOADED && other.waits && !is_set(&other.arrived))
        arrive_until_on();
}

struct seen {
    uint64_t metric[TRAIL_METRICS]; /* the last */
};

static void look(trail_reader *reader, const trail_event *event, void *context)
{
    struct seen *seen = context;
    (void)reader;
    if (event->kind == TRAIL_METRIC)
        seen->metric[event->metric.metric] = event->metric.value;
}

/* Starts a trace during whose start the other thread acts, and stops it afterwards. */
static void trace_act(int format, void (*hooked)(enum pause at), void (*act)(void),
                      struct seen *seen)
{
    trail_options options = {
        .format = format, .unwinder = TRAIL_UNWIND_FRAME_POINTERS, .no_symbols = true};
    struct trace trace = {0};
    char what[32];
    snprintf(what, sizeof what, "format %d", format);
    alone(true);
    other_begin(be_announced, act);
    hook_set(hooked);
    start_good(&options, &trace);
    wait_for(&other.over);
    hook_set(NULL);
    stop_good(&options);
    nothing_lost(what);
    read_good(&trace, look, seen, what);
    trace_free(&trace);
    other_end();
    alone(false);
}

/* A change after the list was made is in the trace, whenever the call loaded the generation. */
TEST(call_that_enters)
{
    for (size_t i = 0; i < V1_FORMATS; i++)
        trace_act(v1_formats[i], enter_when_listed, sched_and_start, &(struct seen){0});
}

TEST(call_that_waits)
{
    for (size_t i = 0; i < V1_FORMATS; i++)
        trace_act(v1_formats[i], wait_when_listed, sched_and_start, &(struct seen){0});
}

/* MARK: Calls that look at the generation, and others at trail_tracing_ */

/* Without the second call, the third would contradict the trace. */
static void name_and_sched(void)
{
    trail_g_set_name(&other.g, "named while a trace begins");
    trail_go_sched(&other.m, 0);
    while (!trail_enabled())
        sched_yield();
    trail_go_start(&other.m, &other.g);
}

/* Lets the other thread act between the two stores; anything that it must wait for comes after
 * them. */
static void act_when_switching(enum pause at)
{
    if (is_other || at != PAUSE_SWITCHES || !trace_is_on())
        return;
    set(&other.go);
    for (int i = 0; i < 1000 && !is_set(&other.over); i++)
        sched_yield();
}

/* A thread that has seen the generation does not change a state without writing an event. */
TEST(call_before_the_inline_ones)
{
    static const int formats[] = {7, 11, 19, 21, 22, 23, 26};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        trace_act(formats[i], act_when_switching, name_and_sched, &(struct seen){0});
}

/* MARK: Numbers that the beginning of a trace has */

static void change_numbers(void)
{
    trail_heap_goal(&other.m, 12345678);
    set(&other.arrived);
    trail_procs_change(&other.m, 77, 0);
}

static void change_procs(void)
{
    trail_procs_change(&other.m, 78, 0);
    set(&other.arrived);
    trail_heap_goal(&other.m, 23456789);
}

/* The call is in progress, or over, when the trace begins. */
static void act_when_listed(enum pause at)
{
    if (!is_other && at == PAUSE_LISTED)
        go_and_wait();
    if (is_other && at == PAUSE_WAITS)
        set(&other.arrived);
}

/* A number that changes after it was written is written again. */
TEST(numbers)
{
    for (size_t i = 0; i < V1_FORMATS; i++) {
        struct seen seen = {0};
        trace_act(v1_formats[i], act_when_listed, change_numbers, &seen);
        assert_int_equal(seen.metric[TRAIL_METRIC_HEAP_GOAL], 12345678);
        assert_int_equal(seen.metric[TRAIL_METRIC_GOMAXPROCS], 77);
        trace_act(v1_formats[i], act_when_listed, change_procs, &seen);
        assert_int_equal(seen.metric[TRAIL_METRIC_HEAP_GOAL], 23456789);
        assert_int_equal(seen.metric[TRAIL_METRIC_GOMAXPROCS], 78);
    }
}

/* MARK: The end of a trace, while a thread that is not announced comes into it */

static unsigned entered, end_at; /* at which of the calls that announce the thread the trace ends */
static uint64_t own_goroutine;

static void annotate(void)
{
    trail_log(0, "category", "message");
    if (current_m)
        own_goroutine = thread_own_goroutine(current_m)->id;
}

static void end_when_entered(enum pause at)
{
    if (!is_other || at != PAUSE_ENTERS || ++entered != end_at)
        return;
    set(&other.arrived);
    while (trace_is_on())
        sched_yield();
}

/* Checks the goroutine's state at the start of the trace. */
static void check_own(const struct trace *trace)
{
    trail_error err;
    trail_source *source = trail_source_open_memory(trace->data, trace->size, &err);
    trail_records *records = trail_records_open(source, &err);
    const trail_record *record;
    bool in_call = false, runs = false;
    while (trail_records_next(records, &record) > 0) {
        if (!record->args || record->arg[1] != own_goroutine)
            continue;
        in_call |= strcmp(record->name, "GoInSyscall") == 0;
        runs |= strcmp(record->name, "GoStart") == 0 || strcmp(record->name, "GoStartLocal") == 0;
    }
    trail_records_close(records);
    trail_source_close(source);
    assert_true(in_call);
    assert_false(runs);
}

/* Returns false if the thread enters fewer sections than `at`. */
static bool end_while_announced(int format, unsigned at)
{
    trail_options options = {
        .format = format, .unwinder = TRAIL_UNWIND_FRAME_POINTERS, .no_symbols = true};
    struct trace first = {0}, second = {0};
    bool reached;
    alone(true);
    entered = 0;
    end_at = at;
    other_begin(be_unannounced, annotate);
    hook_set(end_when_entered);
    start_good(&options, &first);
    set(&other.go);
    while (!is_set(&other.arrived) && !is_set(&other.over))
        sched_yield();
    stop_good(&options);
    reached = is_set(&other.arrived);
    wait_for(&other.over);
    hook_set(NULL);
    nothing_lost("the first");
    read_good(&first, NULL, NULL, "the first");
    start_good(&options, &second);
    stop_good(&options);
    nothing_lost("the second");
    check_own(&second);
    read_good(&second, NULL, NULL, "the second");
    trace_free(&first);
    trace_free(&second);
    other_end();
    alone(false);
    return reached;
}

/* Whenever the trace ends, the thread is in foreign code in the next one. */
TEST(announced_at_the_end)
{
    for (size_t i = 0; i < V1_FORMATS; i++) {
        unsigned at = 1;
        while (end_while_announced(v1_formats[i], at))
            at++;
        assert_true(at > 4);
    }
}

/* MARK: A fork while the modules are walked */

static pid_t forking; /* atomic: the thread inside fork() */

static void note_fork(void)
{
    __atomic_store_n(&forking, gettid(), __ATOMIC_RELEASE);
}

static int visit_module(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)info;
    (void)size;
    (void)context;
    return 1;
}

static int child_status;
static unsigned lines;

static void fork_and_walk(void)
{
    pid_t child = fork();
    if (child == 0) {
        /* A hang is a failure. */
        alarm(20);
        (void)dl_iterate_phdr(visit_module, NULL);
        _exit(0);
    }
    waitpid(child, &child_status, 0);
}

/* The walk continues when the other thread waits for the end of the walk, or already for the
 * child. */
static void fork_when_walked(enum pause at)
{
    /* Two lines are written before the walk. */
    if (is_other || at != PAUSE_LISTS || ++lines != 3)
        return;
    set(&other.go);
    pid_t tid;
    while ((tid = __atomic_load_n(&forking, __ATOMIC_ACQUIRE)) == 0 || thread_is_runnable(tid))
        sched_yield();
}

static void fork_at_end(int format)
{
    trail_options options = {.format = format, .unwinder = TRAIL_UNWIND_FRAME_POINTERS};
    struct trace trace = {0};
    alone(true);
    forking = 0;
    child_status = -1;
    lines = 0;
    other_begin(be_announced, fork_and_walk);
    start_good(&options, &trace);
    hook_set(fork_when_walked);
    stop_good(&options);
    hook_set(NULL);
    wait_for(&other.over);
    assert_int_equal(child_status, 0);
    read_good(&trace, NULL, NULL, "fork");
    trace_free(&trace);
    other_end();
    alone(false);
}

/* The child may use the loader, whose lock is held during the walk. */
TEST(fork_in_walk)
{
    /* Registered after the library's own handlers, so called before them. */
    trail_host_set(NULL);
    assert_int_equal(pthread_atfork(note_fork, NULL, NULL), 0);
    fork_at_end(21);
    fork_at_end(23);
}

/* MARK: Threads that begin and end while others are visited */

static unsigned newcomers; /* atomic */
static __thread bool is_newcomer;

/* Makes its first call and ends. It annotates, or has the host's M, because a v1 trace that starts
 * allows nothing else. */
static void *live_and_die(void *arg)
{
    trail_m m;
    (void)arg;
    is_newcomer = true;
    trail_log(0, "newcomer", "is there");
    trail_m_start(&m);
    trail_m_exit(&m);
    __atomic_fetch_add(&newcomers, 1, __ATOMIC_RELAXED);
    return NULL;
}

/* Whether the visited record belongs to a thread, so that no other thread takes it. */
static bool visits_living(void)
{
    const trail_m *m;
    for (uint32_t at = 0; (m = roster_next(&at)) != NULL;) {
        if (__atomic_load_n(&m->lock_, __ATOMIC_RELAXED))
            return true;
    }
    return false;
}

static void live_while_visited(enum pause at)
{
    pthread_t thread;
    if (is_newcomer || at != PAUSE_VISITS || !visits_living())
        return;
    assert_int_equal(pthread_create(&thread, NULL, live_and_die, NULL), 0);
    pthread_join(thread, NULL);
}

static void count_newcomers(trail_reader *reader, const trail_event *event, void *context)
{
    trail_string text;
    if (event->kind != TRAIL_LOG)
        return;
    text = trail_reader_string(reader, event->log.category);
    *(unsigned *)context += text.size == strlen("newcomer");
}

/*
 * Neither the first call of a thread nor its end waits for the thread that visits all others to
 * start, advance or stop a trace. What it wrote is in the trace, if one is on.
 */
TEST(no_thread_waits_for_a_visitor)
{
    for (size_t i = 0; i < FORMATS; i++) {
        trail_options options = {
            .format = all_formats[i], .no_symbols = true, .generation_ns = HOUR};
        bool v2 = options.format >= 22;
        struct trace trace = {0};
        unsigned logs = 0;
        char what[32];
        snprintf(what, sizeof what, "format %d", options.format);
        alone(true);
        newcomers = 0;
        trail_m_attach();
        hook_set(live_while_visited);
        start_good(&options, &trace);
        assert_true(newcomers > 0 || v2);
        trail_log(0, "main", "is there");
        trail_advance();
        assert_true(newcomers > 0);
        hook_set(NULL);
        stop_good(&options);
        nothing_lost(what);
        read_good(&trace, count_newcomers, &logs, what);
        if (v2)
            assert_int_equal(logs, newcomers);
        trace_free(&trace);
        trail_m_exit(trail_m_current());
        alone(false);
    }
}

/* MARK: Categories */

static const char *const lists[] = {"both,a,bbbbbbbbbbbbbbbb,c", "d,eeeeeeeeeeeeeeeeeeeeee,both"};
static unsigned looked_up, changes_left;

static void set_list(unsigned which)
{
    assert_true(trail_categories_set(lists[which], NULL));
}

/* Each list turns on one of the two, whichever list is in use. */
static void look_up_both(void)
{
    trail_category both = TRAIL_CATEGORY("both"), none = TRAIL_CATEGORY("none");
    assert_true(trail_category_enabled(&both));
    assert_false(trail_category_enabled(&none));
    looked_up++;
}

/* Acts like a signal handler that interrupts the change. */
static void look_up_while_stored(enum pause at)
{
    if (at == PAUSE_STORES)
        look_up_both();
}

/* Acts like other threads that change the list twice, into the memory that the look-up reads. */
static void change_while_copied(enum pause at)
{
    if (at != PAUSE_COPIES || !changes_left)
        return;
    changes_left--;
    set_list(changes_left % 2);
    set_list(!(changes_left % 2));
}

/* A look-up during a change sees one list or the other. */
TEST(categories_change)
{
    trail_options options = {.format = 23};
    struct trace trace = {0};
    alone(true);
    start_good(&options, &trace);
    set_list(0);
    hook_set(look_up_while_stored);
    set_list(1);
    set_list(0);
    assert_true(looked_up > 20);
    hook_set(change_while_copied);
    for (unsigned n = 1; n < 100; n++) {
        changes_left = n;
        look_up_both();
        assert_int_equal(changes_left, 0);
    }
    hook_set(NULL);
    assert_true(trail_categories_set(NULL, NULL));
    stop_good(&options);
    trace_free(&trace);
    alone(false);
}

int main(void)
{
    /* A hang is a failure. */
    alarm(880);
    return run_all_tests(NULL, NULL);
}
