/*
 * Calls in an impossible order: the usual build counts them and the trace stays valid; the checking
 * build (-Dcheck=true) prints what was wrong and aborts.
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
#include <sys/mman.h>
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
 * What calls that returned true did while the trace was on, as events. Those about one thing must be in the trace in
 * their order, perhaps with others between them: those of calls that the library makes itself.
 */

enum what {
    STATE_OF_G,
    STATE_OF_P,
    LOGGED,
    TASK_OF,
    REGION_OF,
    HEAP_OF,
    RANGE_OF,
    LABEL_OF,
    SAMPLED
};

struct step {
    enum what what;
    int64_t of; /* ID of the goroutine, P, task or metric; or the first letters of the range */
    /* The state, the log's number, the event's kind, or the first letter of a text. */
    uint64_t value;
    bool found;
};

static struct {
    struct step step[4096];
    size_t count;
    bool on, in_session;          /* a trace is on; in that trace, or in the recorder */
    bool blocked[GOROUTINES + 1]; /* created waiting, in a format that shows it as runnable */
    bool ended[GOROUTINES + 1];   /* waits forever, which v1 shows as its end */
    int format;
    uint64_t logs;
    unsigned categories;
} right;

static void right_step(enum what what, int64_t of, uint64_t value)
{
    if (right.on && right.count < sizeof right.step / sizeof *right.step)
        right.step[right.count++] = (struct step){what, of, value, false};
}

static void right_state(int64_t goroutine, unsigned to)
{
    right_step(STATE_OF_G, goroutine, to);
}

/* Returns the first four letters of a range's name, as a number. */
static int64_t range_name(const char *name, size_t size)
{
    int64_t letters = 0;
    for (size_t i = 0; i < 4 && i < size; i++)
        letters = letters << 8 | name[i];
    return letters;
}
#define GC    range_name("GC c", 4) /* concurrent mark phase */
#define MARK  range_name("GC m", 4) /* mark assist */
#define PAUSE range_name("stop", 4) /* -the-world */

static const char *const categories[] = {NULL, "-one", "one,tw*"};

static bool category_is_recorded(const char *name)
{
    if (right.categories == 0)
        return true;
    if (right.categories == 1)
        return strcmp(name, "one") != 0;
    return strcmp(name, "one") == 0 || strcmp(name, "two") == 0;
}

static uint64_t region_step(trail_kind kind, const char *name)
{
    return (uint64_t)kind << 8 | (uint8_t)*name;
}

/* What the thread ran and held before a call. */
struct before {
    int64_t goroutine, proc; /* 0, -1: none */
};

static size_t index_of(const trail_g *g)
{
    return g >= goroutines && g < goroutines + GOROUTINES ? (size_t)(g - goroutines) : GOROUTINES;
}

static size_t index_of_id(int64_t id)
{
    size_t i = 0;
    while (i < GOROUTINES && (int64_t)goroutines[i].id != id)
        i++;
    return i;
}

static void right_goroutine(const struct op *op, int64_t before)
{
    int64_t id = (int64_t)op->g->id;
    size_t g = index_of(op->g), own = index_of_id(before);
    bool v2 = right.format >= 22;
    switch (op->call) {
    case GO_CREATE:
        right_state(id, TRAIL_GO_RUNNABLE);
        break;
    case GO_CREATE_BLOCKED:
        right.blocked[g] = right.format < 23;
        right_state(id, right.blocked[g] ? TRAIL_GO_RUNNABLE : TRAIL_GO_WAITING);
        break;
    case GO_SWITCH:
    case GO_SWITCH_END:
        right_state(before, op->call == GO_SWITCH ? TRAIL_GO_WAITING : TRAIL_GO_NOT_EXIST);
        right.blocked[g] = false;
        right_state(id, TRAIL_GO_RUNNING);
        break;
    case GO_START:
        right_state(id, TRAIL_GO_RUNNING);
        break;
    case GO_START_LABELLED:
        right_state(id, TRAIL_GO_RUNNING);
        if (v2)
            right_step(LABEL_OF, id, (uint8_t)*op->name);
        break;
    case GO_END:
        right_state(before, TRAIL_GO_NOT_EXIST);
        break;
    case GO_DESTROY:
        if (!right.ended[g])
            right_state(id, TRAIL_GO_NOT_EXIST);
        right.blocked[g] = right.ended[g] = false;
        break;
    case GO_SCHED:
    case GO_PREEMPT:
        right_state(before, TRAIL_GO_RUNNABLE);
        break;
    case GO_BLOCK:
    case GO_BLOCK_FUTILE:
        right_state(before, TRAIL_GO_WAITING);
        right.ended[own] = !v2 && op->kind == TRAIL_BLOCK_FOREVER;
        break;
    case GO_UNBLOCK:
        if (!right.blocked[g])
            right_state(id, TRAIL_GO_RUNNABLE);
        right.blocked[g] = false;
        break;
    default:
        break;
    }
}

/* v1's readers move the ends of system calls, and see those of Ps only through their threads. */
static void right_v2(const struct op *op, const struct before *before)
{
    switch (op->call) {
    case SYSCALL_ENTER:
        right_state(before->goroutine, TRAIL_GO_SYSCALL);
        break;
    case SYSCALL_EXIT:
        right_state(before->goroutine, TRAIL_GO_RUNNING);
        break;
    case SYSCALL_EXIT_BLOCKED:
        right_state(before->goroutine, TRAIL_GO_RUNNABLE);
        break;
    case GO_CREATE_SYSCALL:
        right_state((int64_t)op->g->id, TRAIL_GO_SYSCALL);
        break;
    case GO_DESTROY_SYSCALL:
        right_state(before->goroutine, TRAIL_GO_NOT_EXIST);
        break;
    case PROC_START:
        right_step(STATE_OF_P, op->p->id, TRAIL_PROC_RUNNING);
        break;
    case PROC_STOP:
        /* -1: trail_p_fini has released the host's P, but the thread still holds it. */
        if (before->proc >= 0)
            right_step(STATE_OF_P, before->proc, TRAIL_PROC_IDLE);
        break;
    case GO_LABEL:
        right_step(LABEL_OF, before->goroutine, (uint8_t)*op->name);
        break;
    default:
        break;
    }
}

static void right_annotation(const struct op *op)
{
    switch (op->call) {
    case TASK_BEGIN:
        right_step(TASK_OF, (int64_t)op->result, TRAIL_TASK_BEGIN);
        break;
    case TASK_END:
        if (op->task)
            right_step(TASK_OF, (int64_t)op->task, TRAIL_TASK_END);
        break;
    case SCOPE_BEGIN_IN:
        if (!category_is_recorded(op->category->name))
            break;
        /* fall through */
    case SCOPE_BEGIN:
    case REGION_BEGIN:
        right_step(REGION_OF, (int64_t)op->task, region_step(TRAIL_REGION_BEGIN, op->name));
        break;
    case REGION_END:
        right_step(REGION_OF, (int64_t)op->task, region_step(TRAIL_REGION_END, op->name));
        break;
    case LOG:
    case LOGF:
    case LOG_FIELDS:
        if (category_is_recorded(op->name))
            right_step(LOGGED, 0, right.logs % 10000);
        break;
    default:
        break;
    }
}

static void right_rest(const struct op *op)
{
    switch (op->call) {
    case HEAP_ALLOC:
        right_step(HEAP_OF, TRAIL_METRIC_HEAP_LIVE, op->value);
        break;
    case HEAP_GOAL:
        right_step(HEAP_OF, TRAIL_METRIC_HEAP_GOAL, op->value);
        break;
    case GC_BEGIN:
        right_step(RANGE_OF, GC, TRAIL_RANGE_BEGIN);
        break;
    case STW_BEGIN:
        right_step(RANGE_OF, PAUSE, TRAIL_RANGE_BEGIN);
        break;
    case ASSIST_BEGIN:
        right_step(RANGE_OF, MARK, TRAIL_RANGE_BEGIN);
        break;
    case CPU_SAMPLE:
        if (right.format >= 19)
            right_step(SAMPLED, 0, 0);
        break;
    default:
        break;
    }
}

static void right_call(const struct op *op, const struct before *before)
{
    if (op->call == G_INIT)
        right.blocked[index_of(op->g)] = right.ended[index_of(op->g)] = false;
    if (!op->ok || op->m || !right.in_session)
        return;
    /* Readers of format 7 remove futile wake-ups. */
    if (right.format != 7)
        right_goroutine(op, before->goroutine);
    if (right.format >= 22)
        right_v2(op, before);
    if (right.format >= 11)
        right_annotation(op);
    right_rest(op);
}

/* MARK: What is in the trace */

static bool step_of_state(const trail_event *event, struct step *step)
{
    if (event->transition.resource == TRAIL_RESOURCE_PROC)
        *step = (struct step){STATE_OF_P, event->transition.id, event->transition.to, false};
    else
        *step = (struct step){STATE_OF_G, event->transition.id, event->transition.to, false};
    return event->transition.from != 0;
}

static bool step_of_log(trail_string text, struct step *step)
{
    const char *at =
        text.size > 4 && text.data[0] == 't' && text.data[4] == '=' ? text.data + 6 : text.data;
    uint64_t number = 0;
    if (text.size < 8 || memcmp(at, "text", 4) != 0)
        return false;
    for (size_t i = 4; i < 8; i++)
        number = number * 10 + (uint64_t)(at[i] - '0');
    *step = (struct step){LOGGED, 0, number, false};
    return true;
}

static uint8_t first_letter(trail_reader *reader, trail_string_handle text)
{
    trail_string string = trail_reader_string(reader, text);
    return string.size ? (uint8_t)*string.data : 0;
}

/* Returns false if the event belongs to no call under test. */
static bool step_of(trail_reader *reader, const trail_event *event, struct step *step)
{
    trail_string name;
    switch (event->kind) {
    case TRAIL_STATE_TRANSITION:
        return step_of_state(event, step);
    case TRAIL_LOG:
        return step_of_log(trail_reader_string(reader, event->log.message), step);
    case TRAIL_TASK_BEGIN:
    case TRAIL_TASK_END:
        *step = (struct step){TASK_OF, (int64_t)event->task.id, event->kind, false};
        return true;
    case TRAIL_REGION_BEGIN:
    case TRAIL_REGION_END:
        *step = (struct step){REGION_OF, (int64_t)event->region.task,
                              (uint64_t)event->kind << 8 | first_letter(reader, event->region.type),
                              false};
        return true;
    case TRAIL_METRIC:
        *step = (struct step){HEAP_OF, event->metric.metric, event->metric.value, false};
        return true;
    case TRAIL_RANGE_BEGIN:
        name = trail_reader_string(reader, event->range.name);
        *step = (struct step){RANGE_OF, range_name(name.data, name.size), event->kind, false};
        return true;
    case TRAIL_LABEL:
        *step = (struct step){LABEL_OF, event->label.goroutine,
                              first_letter(reader, event->label.text), false};
        return true;
    case TRAIL_STACK_SAMPLE:
        *step = (struct step){SAMPLED, 0, 0, false};
        return true;
    default:
        return false;
    }
}

static void find_step(trail_reader *reader, const trail_event *event, void *context)
{
    struct step seen;
    (void)context;
    if (!step_of(reader, event, &seen))
        return;
    for (size_t i = 0; i < right.count; i++) {
        struct step *step = &right.step[i];
        if (step->found || step->what != seen.what || step->of != seen.of)
            continue;
        step->found = step->value == seen.value;
        return;
    }
}

/* MARK: Calls */

static bool annotates(enum call call)
{
    return (call >= TASK_BEGIN && call <= CPU_SAMPLE) ||
           (call >= SCOPE_BEGIN && call <= SET_CATEGORIES);
}

/* One was never initialized; the other is a copy of an initialized one. */
static trail_g never_g, moved_g;
static trail_p never_p, moved_p;

static trail_g *any_goroutine(void)
{
    trail_g *g = &goroutines[random_below(&state, GOROUTINES)];
    unsigned wrong = random_below(&state, 100);
    if (wrong == 1)
        moved_g = *g;
    return wrong == 0 ? &never_g : wrong == 1 ? &moved_g : g;
}

static trail_p *any_proc(void)
{
    trail_p *p = &world.procs[random_below(&state, PROCS)];
    unsigned wrong = random_below(&state, 100);
    if (wrong == 1)
        moved_p = *p;
    return wrong == 0 ? &never_p : wrong == 1 ? &moved_p : p;
}

static struct op any_call(void)
{
    static const char *const names[] = {"one", "two", "", "three"};
    static trail_category in[] = {TRAIL_CATEGORY("one"), TRAIL_CATEGORY("three")};
    struct op op = {
        .call = (enum call)random_below(&state, CALLS),
        .g = any_goroutine(),
        .p = any_proc(),
        .scope = &scopes[random_below(&state, SCOPES)],
        .kind = random_below(&state, 20),
        .task = random_below(&state, 5),
        .value = random_below(&state, 1000),
        .name = names[random_below(&state, 4)],
        .text = names[random_below(&state, 4)],
        .category = &in[random_below(&state, 2)],
        .skip = random_below(&state, 2) ? 0 : TRAIL_NO_STACK,
    };
    /* The scheduler's calls occur more often than the others. */
    if (random_below(&state, 2))
        op.call = (enum call)random_below(&state, PROC_STEAL + 1);
    /* Calls that remove objects occur less often. */
    if (op.call >= SET_CATEGORIES && op.call <= ADVANCE && random_below(&state, 4))
        op.call = LOG;
    if (random_below(&state, 50) == 0)
        op.m = &world.workers[random_below(&state, THREADS)].m;
    return op;
}

/* Calls counted as misuse, and calls whose events were lost. */
static uint64_t refused(void)
{
    trail_stats stats;
    trail_stats_get(&stats);
    return stats.misuse + stats.lost_events + stats.reentrant + stats.lost_samples;
}

/* The same, plus calls for which the format has no event. */
static uint64_t counted(void)
{
    trail_stats stats;
    trail_stats_get(&stats);
    return refused() + stats.lost_strings + stats.lost_stacks + stats.not_expressible;
}

static void one_call(void)
{
    uint64_t refused_before = refused(), counted_before = counted();
    struct op op = any_call();
    unsigned thread = random_below(&state, THREADS);
    const trail_m *m = &world.workers[thread].m;
    if (op.m == m)
        op.m = NULL;
    /* A P may have been finished and initialized again while the thread still holds the old one. */
    bool holds = m->p && m->inner_ && m->inner_->p == m->p->inner_;
    struct before before = {m->g ? (int64_t)m->g->id : 0, holds ? m->p->id : -1};
    char text[16];
    if (op.call >= LOG && op.call <= LOG_FIELDS) {
        snprintf(text, sizeof text, "text%04u", (unsigned)(right.logs % 10000));
        op.text = text;
    }
    if (op.call == SET_CATEGORIES) {
        right.categories = random_below(&state, 3);
        op.categories = categories[right.categories];
    }
    /* Only goroutines initialized by trail_g_init have a number. */
    if (op.call == G_INIT && index_of(op.g) == GOROUTINES)
        op.g = &goroutines[0];
    if (op.call == P_INIT && (op.p == &never_p || op.p == &moved_p))
        op.p = &world.procs[0];
    if (annotates(op.call) && random_below(&state, 8) == 0)
        world_call(NULL, &op);
    else
        world_do(&world, thread, &op);
    if (!op.ok && trail_enabled() && counted() == counted_before)
        fail_msg("seed %llu, format %d: call %d is false, and not counted",
                 (unsigned long long)seed_now, right.format, (int)op.call);
    op.ok &= refused() == refused_before;
    if (getenv("TRAIL_TEST_SEED"))
        print_message(
            "%s thread %u (M %llu): call %d, G%lld (before G%lld), P%d, kind %u, M%ld: %s\n",
            right.on ? "on " : "off", thread, (unsigned long long)world.workers[thread].m.id,
            (int)op.call, op.g ? (long long)op.g->id : 0, (long long)before.goroutine, op.p->id,
            op.kind, op.m ? (long)((char *)op.m - (char *)world.workers) : -1L,
            op.ok ? "ok" : "refused");
    right_call(&op, &before);
    right.logs++;
}

static void calls(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        one_call();
}

/* An ID that another goroutine already has is not counted as misuse: each creation gets a new
 * one. */
static void begin(uint64_t seed)
{
    if (in_history)
        skip();
    in_history = true;
    seed_now = seed;
    state = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
    memset(&right, 0, sizeof right);
    memset(scopes, 0, sizeof scopes);
    (void)trail_categories_set(NULL, NULL);
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
                                               TRAIL_UNWIND_FRAME_POINTERS, TRAIL_UNWIND_TABLES};
    return (trail_options){
        .format = format,
        .generation_ns = INT64_C(3600000000000),
        .alloc_free = format >= 23 && random_below(&state, 2),
        .unwinder = unwinders[random_below(&state, 4)],
        .max_frames = random_below(&state, 4),
        .memory = random_below(&state, 2) ? 1 : 0,
        .when_full =
            format >= 22 && random_below(&state, 3) == 0 ? TRAIL_FULL_DROP_OLDEST : TRAIL_FULL_WAIT,
        .cpu_hz = format >= 19 && random_below(&state, 8) == 0 ? 1000 : 0,
        .no_symbols = random_below(&state, 2),
        .task_word = random_below(&state, 2) ? "job" : NULL,
    };
}

/* Makes one option wrong. */
static void spoil(trail_options *options)
{
    switch (random_below(&state, 6)) {
    case 0:
        options->format = 8 + (int)random_below(&state, 3);
        break;
    case 1:
        options->unwinder = (trail_unwinder)99;
        break;
    case 2:
        options->when_full = (trail_when_full)77;
        break;
    case 3:
        options->max_frames = TRAIL_MAX_FRAMES + 1;
        break;
    case 4:
        options->task_word = "two\nlines";
        break;
    default:
        options->format = 7 + 4 * (int)random_below(&state, 2);
        options->cpu_hz = 100;
    }
}

/* Go's readers find the traces in $TRAIL_TEST_FOLDER. */
static void save(const struct trace *trace, int format, unsigned which)
{
    const char *folder = getenv("TRAIL_TEST_FOLDER");
    char path[512];
    FILE *file;
    if (!folder)
        return;
    snprintf(path, sizeof path, "%s/%llu-%u.%d.trace", folder, (unsigned long long)seed_now, which,
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

/* On a thread of the world, or on the test's own, which has no M. */
static void anywhere(void (*job)(void *context), void *context)
{
    unsigned at = random_below(&state, THREADS + 1);
    if (at < THREADS)
        world_run(&world, at, job, context);
    else
        job(context);
}

static unsigned traces; /* of the history */

static void check_trace(const struct trace *trace, int format, bool has_all)
{
    trail_error err;
    save(trace, format, traces);
    if (trace_read(trace, has_all ? find_step : NULL, NULL, &err) < 0)
        fail_msg("seed %llu, format %d, trace %u: %s", (unsigned long long)seed_now, format, traces,
                 err.message);
    for (size_t i = 0; i < right.count && has_all; i++) {
        const struct step *step = &right.step[i];
        if (!step->found)
            fail_msg("seed %llu, format %d, trace %u: step %zu is missing: %d of %lld: %llu",
                     (unsigned long long)seed_now, format, traces, i, (int)step->what,
                     (long long)step->of, (unsigned long long)step->value);
    }
    traces++;
}

/* A start is refused while a trace is on, or with a wrong option. */
static void start_in_vain(int format, bool spoiled)
{
    struct recording recording = {.options = any_options(format)};
    trail_trace_state before = trail_state();
    if (spoiled)
        spoil(&recording.options);
    anywhere(do_start, &recording);
    if (recording.ok || recording.err.code != TRAIL_USAGE || trail_state() != before)
        fail_msg("seed %llu, format %d: a start that must fail: %s", (unsigned long long)seed_now,
                 format, recording.err.message);
}

/* While the world is stopped, no generation ends or begins: beside a flight recorder, no trace
 * starts. */
static bool cannot_be(const struct recording *recording, bool beside)
{
    return beside && !recording->ok && strstr(recording->err.message, "the world stays stopped");
}

static void begin_session(int format)
{
    right.in_session = true;
    right.format = format;
    memset(right.blocked, 0, sizeof right.blocked);
    memset(right.ended, 0, sizeof right.ended);
}

static void calls_of_trace(int format, bool beside)
{
    if (!beside)
        begin_session(format);
    right.on = true;
    right.count = 0;
    calls(random_below(&state, 200));
    if (random_below(&state, 8) == 0)
        start_in_vain(format, !beside && random_below(&state, 2));
    if (random_below(&state, 4) == 0)
        world_replace(&world, random_below(&state, THREADS));
    calls(random_below(&state, 50));
    right.on = false;
    right.in_session = beside;
}

static void one_trace(int format, bool beside)
{
    struct recording recording = {.options = any_options(format)};
    if (!beside && random_below(&state, 8) == 0)
        start_in_vain(format, true);
    anywhere(do_start, &recording);
    if (cannot_be(&recording, beside))
        return;
    if (!recording.ok)
        fail_msg("seed %llu: %s", (unsigned long long)seed_now, recording.err.message);
    calls_of_trace(format, beside);
    anywhere(do_stop, &recording);
    if (!cannot_be(&recording, beside)) {
        if (!recording.ok && recording.err.code != TRAIL_USAGE)
            fail_msg("seed %llu, format %d: %s", (unsigned long long)seed_now, format,
                     recording.err.message);
        check_trace(&recording.trace, format, true);
    }
    trace_free(&recording.trace);
    anywhere(do_stop, &recording);
    assert_true(recording.ok);
}

/* MARK: The flight recorder */

static void do_flight_start(void *context)
{
    struct recording *recording = context;
    trail_flight_options options = {
        .trace = recording->options, .min_age_ns = 1, .max_bytes = 1 << 20};
    recording->ok = trail_flight_start(&options, &recording->err);
}

static void do_snapshot(void *context)
{
    struct recording *recording = context;
    uint64_t bytes = 0;
    int fd = memfd_create("snapshot", 0);
    recording->ok = fd >= 0 && trail_flight_snapshot(fd, &bytes, &recording->err);
    recording->trace.data = malloc(bytes + 1);
    recording->trace.size = (size_t)pread(fd, recording->trace.data, bytes, 0);
    close(fd);
}

static void do_flight_stop(void *context)
{
    (void)context;
    trail_flight_stop();
}

static void one_snapshot(struct recording *recording)
{
    anywhere(do_snapshot, recording);
    if (recording->ok)
        check_trace(&recording->trace, recording->options.format, false);
    else if (!strstr(recording->err.message, "stopped"))
        fail_msg("seed %llu: %s", (unsigned long long)seed_now, recording->err.message);
    trace_free(&recording->trace);
}

/* Snapshots at any time, and a trace beside the flight recorder. */
static void one_flight(int format)
{
    struct recording recording = {.options = any_options(format)};
    anywhere(do_flight_start, &recording);
    if (!recording.ok)
        fail_msg("seed %llu: %s", (unsigned long long)seed_now, recording.err.message);
    begin_session(format);
    calls(random_below(&state, 100));
    one_snapshot(&recording);
    if (random_below(&state, 2))
        one_trace(format, true);
    calls(random_below(&state, 100));
    one_snapshot(&recording);
    anywhere(do_flight_stop, NULL);
    right.in_session = false;
}

/* Format 0: each trace has a random one. */
static void history(uint64_t seed, int format)
{
    begin(seed);
    traces = 0;
    calls(random_below(&state, 50));
    for (int i = 0; i < 3; i++) {
        int with = format ? format : all_formats[random_below(&state, FORMATS)];
        if (with >= 22 && random_below(&state, 4) == 0)
            one_flight(with);
        else
            one_trace(with, false);
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

/* -Dcheck=true: prints what was wrong, and aborts. */
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
