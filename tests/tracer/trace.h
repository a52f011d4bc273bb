/* Common code of the tracer's tests: a trace in memory, which libtrail reads back. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <trail/read.h>
#include <trail/record.h>

struct trace {
    uint8_t *data;
    size_t size, capacity;
};

static const int all_formats[] = {7, 11, 19, 21, 22, 23, 26};
#define FORMATS (sizeof all_formats / sizeof *all_formats)

/* A trail_chunk_fn whose context is a struct trace. */
static inline bool trace_append(void *context, const trail_chunk *chunk)
{
    struct trace *trace = context;
    if (!trace->data || trace->size + chunk->size > trace->capacity) {
        trace->capacity = 2 * (trace->size + chunk->size);
        trace->data = realloc(trace->data, trace->capacity);
        if (!trace->data)
            abort();
    }
    memcpy(trace->data + trace->size, chunk->data, chunk->size);
    trace->size += chunk->size;
    return true;
}

static inline void trace_free(struct trace *trace)
{
    free(trace->data);
    *trace = (struct trace){0};
}

/*
 * TRAIL_TEST_COUNT, in percent. The default is a tenth where threads pause between the steps of a
 * call: each cycle takes longer, above all on a busy machine, and few are needed.
 */
static inline unsigned how_many(unsigned usual)
{
    const char *percent = getenv("TRAIL_TEST_COUNT");
#ifdef TRACER_PAUSES
    usual = usual >= 10 ? usual / 10 : 1;
#endif
    unsigned n = percent ? usual * (unsigned)strtoul(percent, NULL, 10) / 100 : usual;
    return n ? n : 1;
}

/* Keeps a refused trace for inspection in $TRAIL_TEST_KEEP, a path. */
static inline void trace_keep(const struct trace *trace)
{
    const char *path = getenv("TRAIL_TEST_KEEP");
    const char *name = path ? strrchr(path, '/') : NULL;
    char folder[4096];
    FILE *file;
    if (name && snprintf(folder, sizeof folder, "%.*s", (int)(name - path), path) > 0)
        (void)mkdir(folder, 0777);
    file = path ? fopen(path, "wb") : NULL;
    if (!file)
        return;
    (void)fwrite(trace->data, 1, trace->size, file);
    (void)fclose(file);
}

typedef void (*trace_event_fn)(trail_reader *reader, const trail_event *event, void *context);

/* Passes all events to `each` (may be NULL). Returns their number; -1 with *err if Go would refuse
 * the trace. */
static inline long trace_read(const struct trace *trace, trace_event_fn each, void *context,
                              trail_error *err)
{
    trail_source *source = trail_source_open_memory(trace->data, trace->size, err);
    trail_reader_options options = {.strict = true};
    trail_reader *reader = source ? trail_reader_open(source, &options, err) : NULL;
    const trail_event *event;
    long n = 0;
    int status = -1;
    while (reader && (status = trail_reader_next(reader, &event)) > 0) {
        n++;
        if (each)
            each(reader, event, context);
    }
    if (reader && status < 0)
        *err = *trail_reader_error(reader);
    if (status < 0)
        trace_keep(trace);
    trail_reader_close(reader);
    trail_source_close(source);
    return status < 0 ? -1 : n;
}
