/*
 * The common part of the printers of events. A printer is a function for one event, and functions
 * that render its strings and stacks; print.c passes the events of a reader through the filter to
 * the printer.
 */
#pragma once

#include <trail/export.h>

#include "base/out.h"
#include "print/cache.h"
#include "timeline/spans.h"
#include "words/vocabulary.h"

/* One run of trail_print. */
struct print {
    trail_reader *reader;
    const trail_print_options *options;
    struct out out;
    struct cache strings; /* rendered by printer->string, with quotes if the format has them */
    struct cache stacks;  /* rendered by printer->stack: the whole block */
    struct vocabulary words;
    int64_t first_ns;   /* time of the first event of the trace, printed or not */
    struct spans spans; /* updated by printer->observe */
    int64_t span_ns;    /* length in ns of the span that this event ends; -1 if it ends none */
};

struct printer {
    cache_render_fn string, stack;
    /* Called for every event, printed or not; returns span_ns. May be NULL. */
    int64_t (*observe)(struct spans *spans, const trail_event *event);
    void (*event)(struct print *print, const trail_event *event); /* or, for TRAIL_VIEW_V1: */
    void (*v1_event)(struct print *print, const trail_v1_event *event);
};

extern const struct printer print_go, print_go_v1, print_text, print_text_stacks, print_jsonl;

/* Writes a string of the trace. */
static inline void print_string(struct print *print, trail_string_handle handle)
{
    cache_put(&print->strings, handle, &print->out);
}

/* Writes a literal. */
#define PRINT(print, literal) out_bytes(&(print)->out, (literal), sizeof(literal) - 1)
