/* Common code of the tests under load. */
#pragma once

#include "../lib/unit.h"
#include "trace.h"

#define HOUR_NS INT64_C(3600000000000)

/* gcc defines a macro, clang has __has_feature. */
#ifdef __has_feature
#define HAS_FEATURE(feature) __has_feature(feature)
#else
#define HAS_FEATURE(feature) 0
#endif
#if defined(__SANITIZE_THREAD__) || HAS_FEATURE(thread_sanitizer)
#define WITH_TSAN 1
#endif
#if defined(__SANITIZE_ADDRESS__) || HAS_FEATURE(address_sanitizer)
#define WITH_ASAN 1
#endif

/* libunwind takes a lock at thread exit, when ThreadSanitizer has already released the thread's
 * state. */
#ifdef WITH_TSAN
#define ANY_UNWINDER TRAIL_UNWIND_FRAME_POINTERS
#else
#define ANY_UNWINDER TRAIL_UNWIND_AUTO
#endif

/* Reads the trace, which must be valid, and empties it. */
static inline long read_good(struct trace *trace, trace_event_fn each, void *context,
                             const char *what)
{
    trail_error err;
    long events = trace_read(trace, each, context, &err);
    if (events < 0)
        fail_msg("%s: %s (%zu bytes, offset %lld, generation %lld, P %lld, G %lld)", what,
                 err.message, trace->size, (long long)err.offset, (long long)err.generation,
                 (long long)err.proc, (long long)err.goroutine);
    trace->size = 0;
    return events;
}

static inline void nothing_lost(const char *what)
{
    trail_stats stats;
    trail_stats_get(&stats);
    if (stats.misuse || stats.lost_events || stats.lost_strings || stats.lost_stacks ||
        stats.lost_bytes || stats.lost_generations || stats.reentrant)
        fail_msg(
            "%s: misuse %llu, lost events %llu, strings %llu, stacks %llu, bytes %llu, generations "
            "%llu, reentrant %llu",
            what, (unsigned long long)stats.misuse, (unsigned long long)stats.lost_events,
            (unsigned long long)stats.lost_strings, (unsigned long long)stats.lost_stacks,
            (unsigned long long)stats.lost_bytes, (unsigned long long)stats.lost_generations,
            (unsigned long long)stats.reentrant);
}

static inline void start_good(const trail_options *options, struct trace *trace)
{
    trail_error err;
    if (!trail_start_sink(options, trace_append, trace, &err))
        fail_msg("format %d: %s", options->format, err.message);
}

static inline void stop_good(const trail_options *options)
{
    trail_error err;
    if (!trail_stop(&err))
        fail_msg("format %d: %s", options->format, err.message);
    if (trail_enabled())
        fail_msg("format %d: it is on after the stop", options->format);
}

/* Marks a test that runs threads or a trace: if it fails, no other test can run in this process. */
static inline void alone(bool begins)
{
    static bool under_way;
    if (begins && under_way)
        skip();
    under_way = begins;
}
