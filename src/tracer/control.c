/* Starting and ending sessions: see control.h and tracer.h. */
#include "tracer/control.h"

#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tracer/barrier.h"
#include "tracer/misuse.h"
#include "tracer/pause.h"
#include "tracer/read.h"
#include "tracer/regions.h"
#include "tracer/roster.h"
#include "tracer/sample.h"
#include "tracer/stack.h"
#include "tracer/tables.h"
#include "tracer/tsan.h"
#include "wire/wire.h"

#define DEFAULT_MEMORY        ((size_t)64 << 20)
#define DEFAULT_WAIT_NS       ((int64_t)10 * 1000000000)
#define DEFAULT_GENERATION_NS ((int64_t)1000000000)
#define DEFAULT_LIVE_NS       ((int64_t)100000000)
/*
 * Buffers that the entries of a table's block can fill: a word of a stack takes up to 22 bytes, a
 * string no more than its entry. Some room is left at the end of each buffer.
 */
#define STACK_BUFFERS  4
#define STRING_BUFFERS 2
#define LEAST_MEMORY   ((size_t)4 * BUFFER_SIZE)

bool record_fail(trail_error *err, trail_code code, const char *format, ...)
{
    va_list args;
    if (!err)
        return false;
    *err = (trail_error){.code = code,
                         .offset = TRAIL_NOWHERE,
                         .generation = TRAIL_NOWHERE,
                         .batch = TRAIL_NOWHERE,
                         .thread = TRAIL_NOWHERE,
                         .proc = TRAIL_NOWHERE,
                         .goroutine = TRAIL_NOWHERE,
                         .time_ns = TRAIL_NOWHERE};
    va_start(args, format);
    (void)vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    return false;
}

struct timespec deadline_after(int64_t ns)
{
    uint64_t at = clock_ns(CLOCK_MONOTONIC) + (uint64_t)(ns > 0 ? ns : 0);
    return (struct timespec){(time_t)(at / 1000000000), (long)(at % 1000000000)};
}

bool library_thread(pthread_t *thread, void *(*run)(void *), void *context, const char *what,
                    trail_error *err)
{
    sigset_t all, old;
    int status;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    status = pthread_create(thread, NULL, run, context);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return status == 0 || record_fail(err, TRAIL_NO_MEMORY, "cannot create the thread that %s: %s",
                                      what, strerror(status));
}

/* MARK: The switch */

static void set_tracing(bool on)
{
    __atomic_store_n(&trail_tracing_, tracing_bits(on), __ATOMIC_RELEASE);
}

/*
 * Once a call of a thread has seen the generation, its inline calls, which read trail_tracing_,
 * must not change a state without an event. So trail_tracing_ is set before the generation and
 * cleared after it (docs/models/status.pml).
 */
static bool exchange_generation(uint64_t from, uint64_t to)
{
    if (tracer.failed)
        return false;
    if (to)
        set_tracing(true);
    tracer_pause(PAUSE_SWITCHES);
    /* Pairs with the load in section_enter. */
    if (!__atomic_compare_exchange_n(&tracer.generation, &from, to, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
        return false;
    tracer_pause(PAUSE_SWITCHES);
    if (!to)
        set_tracing(false);
    return true;
}

bool set_generation(uint64_t from, uint64_t to)
{
    bool changes;
    tsan_release(&tracer.generation);
    pthread_mutex_lock(&tracer.lock);
    changes = exchange_generation(from, to);
    pthread_mutex_unlock(&tracer.lock);
    barrier_all_threads();
    tracer_pause(PAUSE_SWITCHED);
    return changes;
}

void wait_for_sections(void)
{
    const trail_m *m;
    for (uint32_t at = 0; (m = roster_next(&at)) != NULL;) {
        /* Pairs with the store in section_leave. */
        for (unsigned spins = 0; __atomic_load_n(&m->busy_, __ATOMIC_ACQUIRE); spins++) {
            if (spins > 100)
                sched_yield();
        }
    }
}

void hold_threads(bool hold)
{
    pthread_mutex_lock(&tracer.lock);
    __atomic_store_n(&tracer.holder, current_m, __ATOMIC_RELAXED);
    __atomic_store_n(&tracer.held, hold, __ATOMIC_RELEASE);
    set_tracing(__atomic_load_n(&tracer.generation, __ATOMIC_RELAXED) != 0);
    pthread_mutex_unlock(&tracer.lock);
    if (!hold)
        return;
    /* Afterwards each thread has set busy_ or sees that it is held. */
    barrier_all_threads();
    tracer_pause(PAUSE_HELD);
    wait_for_sections();
}

void session_fail(void)
{
    if (tracer.failed)
        return;
    __atomic_store_n(&tracer.failed, true, __ATOMIC_RELAXED);
    __atomic_store_n(&tracer.generation, 0, __ATOMIC_RELEASE);
    set_tracing(false);
    if (tracer.queued >= tracer.limit)
        (void)record_fail(&tracer.error, TRAIL_NO_MEMORY,
                          "the trace ended early: its buffers were full (%zu of %zu bytes); read "
                          "faster, or allow "
                          "more memory",
                          tracer.queued, tracer.limit);
    else
        (void)record_fail(&tracer.error, TRAIL_NO_MEMORY, "the trace ended early: out of memory");
    pthread_cond_broadcast(&tracer.changed);
    pthread_cond_broadcast(&tracer.room);
}

/* MARK: Options */

static bool is_known_format(int format)
{
    static const int formats[] = {7, 11, 19, 21, 22, 23, 26};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (formats[i] == format)
            return true;
    }
    return false;
}

static bool is_word(const char *text)
{
    size_t size = strlen(text);
    for (size_t i = 0; i < size; i++) {
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
            return false;
    }
    return size > 0 && size <= MAKER_WORD_MAX;
}

static bool check_options(const trail_options *options, trail_error *err)
{
    bool v1 = options->format < 22;
    if (!is_known_format(options->format))
        return record_fail(err, TRAIL_USAGE,
                           "format %d cannot be written: use 7, 11, 19, 21, 22, 23 or 26",
                           options->format);
    if (options->max_frames > TRAIL_MAX_FRAMES)
        return record_fail(err, TRAIL_USAGE, "max_frames is %u: at most %d", options->max_frames,
                           TRAIL_MAX_FRAMES);
    if ((unsigned)options->unwinder > TRAIL_UNWIND_NONE)
        return record_fail(err, TRAIL_USAGE, "unwinder is %d: at most %d (TRAIL_UNWIND_NONE)",
                           (int)options->unwinder, TRAIL_UNWIND_NONE);
    if ((unsigned)options->when_full > TRAIL_FULL_DROP_OLDEST)
        return record_fail(err, TRAIL_USAGE, "when_full is %d: at most %d (TRAIL_FULL_DROP_OLDEST)",
                           (int)options->when_full, TRAIL_FULL_DROP_OLDEST);
    if (options->task_word && !is_word(options->task_word))
        return record_fail(err, TRAIL_USAGE,
                           "task_word is empty, longer than %d bytes, or has control characters",
                           MAKER_WORD_MAX);
    if (v1 && options->when_full == TRAIL_FULL_DROP_OLDEST)
        return record_fail(
            err, TRAIL_USAGE,
            "format %d cannot drop its oldest generations: use format 22 or newer, or another "
            "when_full",
            options->format);
    if (options->cpu_hz && options->format < 19)
        return record_fail(err, TRAIL_USAGE, "format %d has no CPU samples: use 19 or newer",
                           options->format);
    if (options->alloc_free && (v1 || options->format < 23))
        return record_fail(err, TRAIL_USAGE, "format %d has no AllocFree events: use 23 or 26",
                           options->format);
    return true;
}

/* A host that lists no goroutines has only threads. */
static const char *task_word(const trail_options *options)
{
    if (options->task_word)
        return options->task_word;
    return live_host()->each_goroutine ? "task" : "thread";
}

/* Buffers are mapped and unmapped individually, so none is smaller than a page. */
static size_t smallest_buffer(void)
{
    long page = sysconf(_SC_PAGESIZE);
    return page <= BUFFER_MIN ? BUFFER_MIN : page < BUFFER_SIZE ? (size_t)page : BUFFER_SIZE;
}

static void apply_options(const trail_options *given)
{
    trail_options *options = &tracer.options;
    *options = *given;
    if (!options->memory)
        options->memory = DEFAULT_MEMORY;
    if (!options->wait_ns)
        options->wait_ns = DEFAULT_WAIT_NS;
    if (options->generation_ns <= 0)
        options->generation_ns = DEFAULT_GENERATION_NS;
    if (options->live_ns <= 0)
        options->live_ns = DEFAULT_LIVE_NS;
    if (options->memory < LEAST_MEMORY)
        options->memory = LEAST_MEMORY;
    tracer.limit = options->memory;
    tracer.smallest = smallest_buffer();
    tracer.format = options->format;
    tracer.v2 = options->format >= 22;
    tracer.alloc_free = options->alloc_free;
    tracer.max_frames = options->max_frames ? options->max_frames : TRAIL_MAX_FRAMES;
    (void)snprintf(tracer.maker, sizeof tracer.maker, MAKER_HOST "%s", task_word(options));
    for (int i = 0; i < 2; i++) {
        tracer.stacks[i].limit = tracer.strings[i].limit = options->memory;
        tracer.stacks[i].buffers_a_block = STACK_BUFFERS;
        /* v1 writes them at once. */
        tracer.strings[i].buffers_a_block = tracer.v2 ? STRING_BUFFERS : 0;
    }
}

/* MARK: Sessions */

void session_lacks_memory(void)
{
    pthread_mutex_lock(&tracer.lock);
    session_fail();
    pthread_mutex_unlock(&tracer.lock);
}

static bool has_failed(void)
{
    bool failed;
    pthread_mutex_lock(&tracer.lock);
    failed = tracer.failed;
    pthread_mutex_unlock(&tracer.lock);
    return failed;
}

/* Calls change the counters even while no trace is on. */
static void reset_stats(void)
{
    uint64_t *stats = (uint64_t *)&tracer.stats;
    for (size_t i = 0; i < sizeof tracer.stats / sizeof *stats; i++)
        __atomic_store_n(&stats[i], 0, __ATOMIC_RELAXED);
}

static void prepare_tables(void)
{
    for (int i = 0; i < (tracer.v2 ? 2 : 1); i++) {
        table_prepare(&tracer.stacks[i]);
        table_prepare(&tracer.strings[i]);
    }
}

bool session_begin(const trail_options *given, uintptr_t frame, trail_error *err)
{
    trail_options options = given ? *given : (trail_options){0};
    if (!options.format)
        options.format = 23;
    if (!check_options(&options, err))
        return false;
    roster_prepare();
    /* Other threads may initialize and finish Ps at the same time. */
    pthread_mutex_lock(&tracer.ps_lock);
    apply_options(&options);
    tracer.first_generation = ++tracer.last_generation;
    pthread_mutex_unlock(&tracer.ps_lock);
    tracer_watch_exit();
    tracer.unwinder = stack_choose(options.unwinder, frame);
    stack_forget_unloaded();
    clock_calibrate(&tracer.clock);
    reset_stats();
    misuse_reset();
    regions_reset();
    tracer.error = (trail_error){0};
    __atomic_store_n(&tracer.failed, false, __ATOMIC_RELAXED);
    tracer.urgent = false;
    tracer.gc_recorded = false;
    tracer.gc_sequence = tracer.v2 ? 1 : 0;
    __atomic_store_n(&tracer.stopper, 0, __ATOMIC_RELAXED);
    tracer.active = true;
    tracer.walked = false;
    tracer.generation_reserve = RESERVE_GENERATION;
    if (!queue_reserve(tracer.generation_reserve))
        session_lacks_memory();
    prepare_tables();
    (void)queue_open(tracer.last_generation);
    /* Nothing is read until the start is complete, so its events may exceed the limit. */
    queue_urgent(true);
    /* Also without cpu_hz: the host may call trail_cpu_sample. */
    if (tracer.format >= 19)
        sample_prepare();
    if (tracer.v2)
        v2_session_begin();
    else
        v1_session_begin();
    queue_urgent(false);
    if (has_failed()) {
        session_end();
        queue_clear();
        if (err)
            *err = tracer.error;
        return false;
    }
    if (tracer.options.cpu_hz)
        sample_start(tracer.options.cpu_hz);
    return true;
}

/* No section can use them any more: later sections see another generation. */
static void free_tables(void)
{
    for (int i = 0; i < 2; i++) {
        table_free(&tracer.stacks[i]);
        table_free(&tracer.strings[i]);
    }
    symbols_reset();
    queue_unreserve(SIZE_MAX);
}

void session_end(void)
{
    if (!tracer.active)
        return;
    sample_stop();
    queue_urgent(true);
    if (tracer.v2)
        v2_session_end();
    else
        v1_session_end();
    free_tables();
    queue_urgent(false);
    pthread_mutex_lock(&tracer.lock);
    tracer.active = false;
    pthread_cond_broadcast(&tracer.changed);
    pthread_mutex_unlock(&tracer.lock);
}
