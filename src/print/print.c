#include "print/print.h"

#include "base/error.h"
#include "print/filter.h"

static const struct printer *const printers[] = {
    [TRAIL_FORMAT_TEXT] = &print_text,
    [TRAIL_FORMAT_GO] = &print_go,
    [TRAIL_FORMAT_GO_V1] = &print_go_v1,
    [TRAIL_FORMAT_JSONL] = &print_jsonl,
};

/* Whether to continue after a batch. */
enum print_next { PRINT_ON, PRINT_STOP };

static void print_begin_batch(struct print *print)
{
    cache_begin_batch(&print->strings, trail_reader_string_count(print->reader));
    cache_begin_batch(&print->stacks, trail_reader_stack_count(print->reader));
}

static enum print_next print_end_batch(struct print *print)
{
    const trail_print_options *options = print->options;
    if (options->flush)
        out_flush(&print->out);
    if (options->progress)
        options->progress(options->progress_context);
    return print->out.failed ? PRINT_STOP : PRINT_ON;
}

static long print_events(struct print *print, struct filter *filter, const struct printer *printer)
{
    const trail_event *events;
    long count;
    bool started = false;
    while ((count = trail_reader_next_batch(print->reader, &events)) > 0) {
        if (!started) {
            print->first_ns = events[0].time_ns;
            vocabulary_init(&print->words, trail_reader_maker(print->reader),
                            print->options->words);
        }
        started = true;
        print_begin_batch(print);
        for (const trail_event *e = events; e < events + count; e++) {
            if (printer->observe)
                print->span_ns = printer->observe(&print->spans, e);
            enum filter_verdict verdict = filter_event(filter, e);
            if (verdict == FILTER_TAKE || verdict == FILTER_TAKE_LAST)
                printer->event(print, e);
            if (verdict == FILTER_TAKE_LAST || verdict == FILTER_STOP)
                return 0;
        }
        if (print_end_batch(print) == PRINT_STOP)
            return 0;
    }
    return count;
}

static long print_v1_events(struct print *print, struct filter *filter,
                            const struct printer *printer)
{
    const trail_v1_event *events;
    long count;
    bool started = false;
    while ((count = trail_reader_next_v1_batch(print->reader, &events)) > 0) {
        if (!started)
            print->first_ns = events[0].time_ns;
        started = true;
        print_begin_batch(print);
        for (const trail_v1_event *e = events; e < events + count; e++) {
            enum filter_verdict verdict = filter_v1_event(filter, e);
            if (verdict == FILTER_TAKE || verdict == FILTER_TAKE_LAST)
                printer->v1_event(print, e);
            if (verdict == FILTER_TAKE_LAST || verdict == FILTER_STOP)
                return 0;
        }
        if (print_end_batch(print) == PRINT_STOP)
            return 0;
    }
    return count;
}

/* Returns the result of a run. A write error takes precedence over an error of the reader. */
static int print_result(struct print *print, long reader_result, trail_error *err)
{
    bool no_memory = print->strings.scratch.failed || print->stacks.scratch.failed;
    int result = out_finish(&print->out, err);
    if (result < 0)
        return result;
    if (reader_result < 0) {
        if (err)
            *err = *trail_reader_error(print->reader);
        return -1;
    }
    return no_memory ? error_no_memory(err) : 0;
}

int trail_print(trail_reader *reader, const trail_print_options *options, const trail_sink *sink,
                trail_error *err)
{
    if ((size_t)options->format >= sizeof printers / sizeof printers[0])
        return error_set(err, TRAIL_USAGE, "no such format: %d", (int)options->format);
    const struct printer *printer = printers[options->format];
    if (printer == &print_text && options->stacks)
        printer = &print_text_stacks;
    struct print print = {.reader = reader, .options = options, .spans = SPANS_NONE};
    struct filter filter = {.rules = options->filter};
    int result;
    bool ready = out_init(&print.out, sink->write, sink->context);
    ready = cache_init(&print.strings, reader, printer->string) && ready;
    ready = cache_init(&print.stacks, reader, printer->stack) && ready;
    if (!ready) {
        out_drop(&print.out);
        result = error_no_memory(err);
    } else {
        long n = printer->v1_event ? print_v1_events(&print, &filter, printer)
                                   : print_events(&print, &filter, printer);
        result = print_result(&print, n, err);
        if (print.spans.failed && result == 0)
            result = error_set(err, TRAIL_NO_MEMORY, "out of memory: durations are missing");
    }
    cache_free(&print.strings);
    cache_free(&print.stacks);
    spans_free(&print.spans);
    return result;
}
