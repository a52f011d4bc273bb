/*
 * Properties that hold whenever a trace is read as events; used by several targets.
 */
#pragma once

#include "fuzz.h"

/* Minor versions for headers, so that an input may be a body without a header. */
static const int fuzz_v1_versions[] = {5, 7, 8, 9, 10, 11, 19, 21};
static const int fuzz_v2_versions[] = {22, 23, 25, 26};

/*
 * The input as a trace. If it begins with "go 1." it is copied; otherwise its first byte selects
 * the version, and the rest is the body.
 */
static inline struct fuzz_bytes fuzz_trace(const uint8_t *data, size_t size, const int *versions,
                                           size_t count)
{
    struct fuzz_bytes trace = {0};
    char header[20] = {0};
    if (size >= 16 && memcmp(data, "go 1.", 5) == 0) {
        (void)fuzz_keep(&trace, data, size);
        return trace;
    }
    (void)snprintf(header, sizeof header, "go 1.%d trace",
                   versions[size > 0 ? data[0] % count : 0]);
    (void)fuzz_keep(&trace, header, 16);
    if (size > 1)
        (void)fuzz_keep(&trace, data + 1, size - 1);
    return trace;
}

static inline void fuzz_check_event(const trail_reader *reader, const trail_event *e)
{
    size_t frames;
    FUZZ_HOLDS(e->kind > TRAIL_BAD && e->kind < TRAIL_KINDS);
    FUZZ_HOLDS(e->stack == 0 || e->stack < trail_reader_stack_count(reader));
    const trail_frame *frame = trail_reader_stack(reader, e->stack, &frames);
    for (size_t i = 0; i < frames; i++) {
        FUZZ_HOLDS(frame[i].function < trail_reader_string_count(reader));
        FUZZ_HOLDS(frame[i].file < trail_reader_string_count(reader));
    }
    if (e->kind == TRAIL_STATE_TRANSITION) {
        FUZZ_HOLDS(e->transition.reason < trail_reader_string_count(reader));
        FUZZ_HOLDS(e->transition.stack == 0 ||
                   e->transition.stack < trail_reader_stack_count(reader));
        FUZZ_HOLDS(e->transition.from < TRAIL_GO_STATES && e->transition.to < TRAIL_GO_STATES);
    }
}

struct fuzz_read {
    uint64_t events;
    bool failed;
    trail_code code;
    uint64_t repairs, holes;
};

/* Reads all events: times increase strictly, and every handle is valid. */
static inline struct fuzz_read fuzz_read_events(trail_source *source,
                                                const trail_reader_options *options)
{
    struct fuzz_read result = {0};
    trail_error err;
    trail_reader *reader = trail_reader_open(source, options, &err);
    if (!reader)
        return (struct fuzz_read){.failed = true, .code = err.code};
    const trail_event *events;
    long count;
    int64_t last_ns = INT64_MIN;
    while ((count = trail_reader_next_batch(reader, &events)) > 0) {
        for (long i = 0; i < count; i++) {
            /* Times that do not fit into 64 bits wrap around; otherwise times increase. */
            FUZZ_HOLDS(events[i].time_ns > last_ns || last_ns > INT64_MAX / 2 ||
                       last_ns < INT64_MIN / 2);
            last_ns = events[i].time_ns;
            fuzz_check_event(reader, &events[i]);
        }
        result.events += (uint64_t)count;
    }
    result.failed = count < 0;
    /* trail_reader_error is defined only after an error. */
    result.code = result.failed ? trail_reader_error(reader)->code : TRAIL_OK;
    FUZZ_HOLDS(!result.failed || result.code != TRAIL_OK);
    trail_reader_stats stats;
    trail_reader_get_stats(reader, &stats);
    FUZZ_HOLDS(stats.events == result.events);
    result.repairs = stats.repairs;
    result.holes = stats.holes;
    trail_reader_close(reader);
    return result;
}

static inline struct fuzz_read fuzz_read_memory(const struct fuzz_bytes *trace,
                                                const trail_reader_options *options)
{
    trail_error err;
    trail_source *source = trail_source_open_memory(trace->data, trace->size, &err);
    FUZZ_HOLDS(source);
    struct fuzz_read result = fuzz_read_events(source, options);
    trail_source_close(source);
    return result;
}
