/*
 * A pattern on the first line, and a trace after it. An error in the pattern has a position; hits of a
 * valid pattern lie in the trace, their steps in order, and hits of a goroutine do not overlap.
 */
#include <trail/analyze.h>

#include "reading.h"

enum { GOROUTINES = 256 };

/* The last hit of each goroutine with a small number. */
struct seen {
    int64_t end_ns[GOROUTINES];
    bool any[GOROUTINES];
    uint64_t hits;
};

static bool visit(void *context, const trail_hit *hit)
{
    struct seen *seen = context;
    FUZZ_HOLDS(hit->step_count > 0);
    FUZZ_HOLDS(hit->steps[0].begin_ns == hit->begin_ns);
    FUZZ_HOLDS(hit->steps[hit->step_count - 1].end_ns == hit->end_ns);
    for (size_t i = 0; i < hit->step_count; i++) {
        const trail_hit_step *step = &hit->steps[i];
        /* Times that do not fit into 64 bits wrap around. */
        FUZZ_HOLDS(step->begin_ns <= step->end_ns || step->begin_ns > INT64_MAX / 2 ||
                   step->begin_ns < INT64_MIN / 2);
        FUZZ_HOLDS(step->lasts || (!step->open && step->begin_ns == step->end_ns));
        FUZZ_HOLDS(i == 0 || hit->steps[i - 1].end_ns <= step->begin_ns);
    }
    if (hit->goroutine >= 0 && hit->goroutine < GOROUTINES) {
        FUZZ_HOLDS(!seen->any[hit->goroutine] || seen->end_ns[hit->goroutine] <= hit->begin_ns);
        seen->any[hit->goroutine] = true;
        seen->end_ns[hit->goroutine] = hit->end_ns;
    }
    return ++seen->hits < 10000;
}

static void find(const struct fuzz_bytes *trace, const trail_pattern *pattern, bool window)
{
    trail_error err;
    struct seen seen = {0};
    trail_reader_options reading = {.partial = true};
    trail_analysis_options options = {
        .what = TRAIL_ANALYZE_FIND,
        .has_from = window,
        .has_to = window,
        .from_ns = 100,
        .to_ns = 100000,
        .find = {.pattern = pattern, .visit = visit, .context = &seen},
    };
    trail_source *source = trail_source_open_memory(trace->data, trace->size, &err);
    FUZZ_HOLDS(source);
    trail_reader *reader = trail_reader_open(source, &reading, &err);
    if (reader) {
        trail_analysis *analysis = trail_analysis_open(reader, &options, &err);
        FUZZ_HOLDS(analysis);
        (void)trail_analysis_run(analysis, reader, &err);
        trail_analysis_close(analysis);
    }
    trail_reader_close(reader);
    trail_source_close(source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int versions[] = {19, 21, 22, 23, 25, 26};
    const uint8_t *line = size > 0 ? memchr(data, '\n', size) : NULL;
    size_t length = line ? (size_t)(line - data) : size, skip = line ? length + 1 : size;
    trail_pattern_error err;
    char *text = malloc(length + 1);
    if (!text)
        abort();
    if (length > 0)
        memcpy(text, data, length);
    text[length] = '\0';
    trail_pattern *pattern = trail_pattern_parse(text, &err);
    FUZZ_HOLDS((pattern == NULL) == (err.message[0] != '\0'));
    FUZZ_HOLDS(err.begin <= err.end && err.end <= strlen(text));
    free(text);
    if (pattern) {
        struct fuzz_bytes trace =
            fuzz_trace(data + skip, size - skip, versions, sizeof versions / sizeof *versions);
        find(&trace, pattern, false);
        find(&trace, pattern, true);
        free(trace.data);
    }
    trail_pattern_free(pattern);
    return 0;
}
