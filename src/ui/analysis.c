/* What all analysis commands share: options, the pass, messages, JSON. */
#include "ui/analysis.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "symbols/symbols.h"
#include "ui/input.h"
#include "ui/progress.h"

void analysis_speak(struct analysis *analysis)
{
    vocabulary_init(&analysis->vocabulary,
                    analysis->reader ? trail_reader_maker(analysis->reader) : NULL,
                    analysis->options.words);
}

int analysis_words(struct analysis *analysis, const struct options *options)
{
    if (options->word_count != 1)
        return usage_error(analysis->command, options->word_count == 0
                                                  ? "no file given (- is stdin)"
                                                  : "one file at a time");
    return analysis_word(analysis, options->words[0]);
}

int analysis_word(struct analysis *analysis, const char *word)
{
    analysis->word = word;
    analysis->options.skip_frames = analysis->skip_frames;
    analysis_speak(analysis);
    int wrong = window_finish(&analysis->window, analysis->command);
    WINDOW_PUT(&analysis->options, &analysis->window);
    return wrong;
}

int analysis_parse(struct analysis *analysis, int argc, char **argv)
{
    struct options options;
    int code = options_each(&options, analysis->command, argc, argv, NULL, analysis);
    return code == EXIT_GOOD ? analysis_words(analysis, &options) : code;
}

static int print_damage(const struct analysis *analysis, const trail_error *err)
{
    int code = print_error(analysis->word, err);
    if (analysis->answers)
        print_message("%s: the %s covers only the part that could be read",
                      source_title(analysis->word),
                      analysis->streams ? "output" : "following output");
    return code;
}

/* Prints why an answer is empty. */
static void print_window(const struct analysis *analysis)
{
    const trail_analysis_span *span = &analysis->span;
    char length[SHOW_SIZE];
    if (span->events == 0 && analysis->window.from_ns > span->last_ns - span->origin_ns)
        print_message("%s: the window begins after the last event, at %s",
                      source_title(analysis->word),
                      show_duration(length, span->last_ns - span->origin_ns));
}

static int run_pass(struct analysis *analysis, trail_error *err)
{
    struct progress progress;
    progress_begin(&progress, analysis->source, PROGRESS_OUTPUT_AFTER);
    analysis->options.progress = progress_step;
    analysis->options.progress_context = &progress;
    int result = trail_analysis_run(analysis->answers, analysis->reader, err);
    progress_end(&progress);
    analysis_speak(analysis);
    print_repairs(analysis->word, analysis->reader);
    trail_analysis_get_span(analysis->answers, &analysis->span);
    if (result < 0 && (exit_code_of(err) != EXIT_BAD || analysis->span.events == 0)) {
        trail_analysis_close(analysis->answers);
        analysis->answers = NULL;
    }
    if (result < 0) {
        analysis->damage = *err;
        return print_damage(analysis, err);
    }
    print_window(analysis);
    return EXIT_GOOD;
}

trail_reader *analysis_reader(const struct analysis *analysis, trail_source *source,
                              trail_error *err)
{
    trail_reader_options options = {.partial = true,
                                    .repair = analysis->repair,
                                    /* Collections alone take less than the hand-over of blocks. */
                                    .ahead = analysis->options.what != TRAIL_ANALYZE_GC,
                                    .threads = input_limits.threads};
    if (analysis->symbols) {
        options.symbolize = symbols_find;
        options.symbolize_context = analysis->symbols;
    }
    return trail_reader_open(source, &options, err);
}

int analysis_open(struct analysis *analysis)
{
    trail_error err;
    if (analysis->binary) {
        analysis->symbols = symbols_open(NULL, analysis->binary, NULL, SYMBOLS_LINES, &err);
        if (!analysis->symbols)
            return print_error(analysis->binary, &err);
    }
    analysis->source =
        analysis->input ? input_open(analysis->input, &err) : open_source(analysis->word, &err);
    if (!analysis->source)
        return print_error(analysis->word, &err);
    analysis->reader = analysis_reader(analysis, analysis->source, &err);
    return analysis->reader ? EXIT_GOOD : print_error(analysis->word, &err);
}

int analysis_run(struct analysis *analysis)
{
    trail_error err;
    int code = analysis->reader ? EXIT_GOOD : analysis_open(analysis);
    if (code != EXIT_GOOD)
        return code;
    struct analysis *a = analysis;
    a->answers = trail_analysis_open(a->reader, &a->options, &err);
    return a->answers ? run_pass(a, &err) : print_error(a->word, &err);
}

void analysis_close(struct analysis *analysis)
{
    trail_analysis_close(analysis->answers);
    trail_reader_close(analysis->reader);
    trail_source_close(analysis->source);
    close_binary(analysis->symbols);
    skip_frames_free(analysis->skip_frames);
}

int analysis_answer(struct analysis *analysis, int code, int (*show)(void *context), void *context)
{
    if (code == EXIT_GOOD) {
        code = analysis_run(analysis);
        if (analysis->answers)
            code = worse_exit(code, show(context));
    }
    analysis_close(analysis);
    return code;
}

void analysis_nothing_ran(const struct analysis *analysis, enum term kind)
{
    bool whole = !analysis->window.has_from && !analysis->window.has_to;
    printf("Nothing ran: no %s is in %s\n", term(&analysis->vocabulary, kind),
           whole ? "the trace. Record while the program is busy." : "this window.");
}

trail_string analysis_text(const struct analysis *analysis, trail_name name)
{
    trail_string text = trail_analysis_text(analysis->answers, name);
    return text.size > 0 ? text : text_from("(unknown)");
}

trail_string analysis_reason(const struct analysis *analysis, trail_name reason)
{
    return words_reason(&analysis->vocabulary, trail_analysis_text(analysis->answers, reason));
}

/* MARK: JSON */

struct json analysis_json_begin(const struct analysis *analysis)
{
    struct json json = json_on_stdout();
    json_open(&json, NULL, '{');
    json_signed(&json, "origin_ns", analysis->span.origin_ns);
    return json;
}

void analysis_json_end(struct json *json)
{
    json_close(json, '}');
    putchar('\n');
}

static void json_named(const struct analysis *analysis, struct json *json, const char *key,
                       const trail_named_time *items, uint32_t count)
{
    json_open(json, key, '{');
    for (uint32_t i = 0; i < count; i++) {
        json_key(json, trail_analysis_text(analysis->answers, items[i].name));
        json_signed(json, NULL, items[i].ns);
    }
    json_close(json, '}');
}

/* Writes waits by Go's reason, adding up kinds with the same one. */
static void json_reasons(const struct analysis *analysis, struct json *json,
                         const trail_times *times)
{
    const trail_analysis *answers = analysis->answers;
    json_open(json, "block_ns", '{');
    for (uint32_t i = 0; i < times->block_count; i++) {
        trail_name reason = trail_analysis_wait_for(answers, times->block[i].name).reason;
        int64_t ns = times->block[i].ns;
        bool known = false;
        for (uint32_t n = 0; n < times->block_count; n++) {
            if (n == i || trail_analysis_wait_for(answers, times->block[n].name).reason != reason)
                continue;
            known |= n < i;
            ns += times->block[n].ns;
        }
        if (known)
            continue;
        json_key(json, trail_analysis_text(answers, reason));
        json_signed(json, NULL, ns);
    }
    json_close(json, '}');
}

void analysis_json_wait(const struct analysis *analysis, struct json *json, trail_name wait)
{
    trail_wait_for what = trail_analysis_wait_for(analysis->answers, wait);
    json_text(json, "reason", trail_analysis_text(analysis->answers, what.reason));
    if (what.kind)
        json_string(json, "wait_kind", what.kind);
    if (what.object)
        json_text(json, "object", trail_analysis_text(analysis->answers, what.object));
}

/* Writes waits by kind, if kinds are recorded. */
static void json_kinds(const struct analysis *analysis, struct json *json, const trail_times *times)
{
    bool any = false;
    for (uint32_t i = 0; i < times->block_count; i++)
        any |= trail_analysis_wait_for(analysis->answers, times->block[i].name).kind != NULL;
    if (!any)
        return;
    json_open(json, "waits", '[');
    for (uint32_t i = 0; i < times->block_count; i++) {
        json_open(json, NULL, '{');
        analysis_json_wait(analysis, json, times->block[i].name);
        json_signed(json, "ns", times->block[i].ns);
        json_close(json, '}');
    }
    json_close(json, ']');
}

void analysis_json_times(const struct analysis *analysis, struct json *json,
                         const trail_times *times)
{
    json_signed(json, "exec_ns", times->exec_ns);
    json_signed(json, "sched_wait_ns", times->sched_wait_ns);
    json_signed(json, "syscall_ns", times->syscall_ns);
    json_signed(json, "syscall_block_ns", times->syscall_block_ns);
    json_signed(json, "total_ns", times->total_ns);
    if (times->lost_ns > 0)
        json_signed(json, "lost_ns", times->lost_ns);
    json_reasons(analysis, json, times);
    json_kinds(analysis, json, times);
    json_named(analysis, json, "range_ns", times->range, times->range_count);
    if (times->open_block_ns == 0)
        return;
    trail_times corrected = trail_times_corrected(times);
    json_open(json, "corrected", '{');
    json_signed(json, "sched_wait_ns", corrected.sched_wait_ns);
    json_signed(json, "syscall_ns", corrected.syscall_ns);
    json_signed(json, "syscall_block_ns", corrected.syscall_block_ns);
    json_close(json, '}');
}

void analysis_json_histogram(struct json *json, const char *key, const trail_histogram *histogram)
{
    json_open(json, key, '{');
    json_signed(json, "min_ns", histogram->min_ns);
    json_signed(json, "mean_ns",
                histogram->count ? histogram->sum_ns / (int64_t)histogram->count : 0);
    json_signed(json, "p50_ns", trail_histogram_quantile(histogram, 0.5));
    json_signed(json, "p95_ns", trail_histogram_quantile(histogram, 0.95));
    json_signed(json, "p99_ns", trail_histogram_quantile(histogram, 0.99));
    json_signed(json, "max_ns", histogram->max_ns);
    json_open(json, "buckets", '[');
    uint64_t count;
    for (size_t at = 0, bucket; trail_histogram_next(histogram, &at, &bucket, &count);) {
        int64_t from, to;
        trail_histogram_bucket(bucket, &from, &to);
        json_open(json, NULL, '[');
        json_signed(json, NULL, from);
        json_signed(json, NULL, to);
        json_number(json, NULL, count);
        json_close(json, ']');
    }
    json_close(json, ']');
    json_close(json, '}');
}

void analysis_json_group(const struct analysis *analysis, struct json *json,
                         const trail_group *group)
{
    json_text(json, "name", trail_analysis_text(analysis->answers, group->name));
    json_number(json, "count", group->count);
    json_number(json, "unfinished", group->alive);
    analysis_json_times(analysis, json, &group->times);
    if (!group->columns)
        return;
    json_open(json, "distributions", '{');
    for (int i = 0; i < TRAIL_COLUMNS; i++)
        analysis_json_histogram(json, trail_column_name((trail_column)i), &group->columns[i]);
    json_close(json, '}');
}

/* MARK: For people */

trail_string analysis_wait_text(const struct analysis *analysis, trail_name wait,
                                char buf[WAIT_TEXT_SIZE])
{
    trail_wait_for what = trail_analysis_wait_for(analysis->answers, wait);
    trail_string object = trail_analysis_text(analysis->answers, what.object);
    if (!what.phrase)
        return analysis_text(analysis, wait);
    int size =
        snprintf(buf, WAIT_TEXT_SIZE, "%s%s%.*s", what.phrase, object.size ? " " : "",
                 (int)(object.size < 200 ? object.size : 200), object.size ? object.data : "");
    return (trail_string){buf, size > 0 ? (size_t)size : 0};
}

const char *analysis_reasons(const struct analysis *analysis, const trail_times *times,
                             unsigned most, char *buf, size_t size)
{
    size_t used = 0;
    int64_t last_ns = INT64_MAX;
    uint32_t last = UINT32_MAX;
    *buf = '\0';
    for (unsigned n = 0; n < most && used < size; n++) {
        uint32_t best = UINT32_MAX;
        for (uint32_t i = 0; i < times->block_count; i++) {
            int64_t ns = times->block[i].ns;
            bool after = ns < last_ns || (ns == last_ns && i > last);
            if (ns > 0 && after && (best == UINT32_MAX || ns > times->block[best].ns))
                best = i;
        }
        if (best == UINT32_MAX)
            break;
        char duration[SHOW_SIZE];
        trail_string reason = analysis_reason(analysis, times->block[best].name);
        int n_chars = snprintf(buf + used, size - used, "%s%.*s %s", n ? ", " : "",
                               (int)(reason.size < 60 ? reason.size : 60), reason.data,
                               show_duration(duration, times->block[best].ns));
        used += n_chars > 0 ? (size_t)n_chars : 0;
        last = best;
        last_ns = times->block[best].ns;
    }
    return buf;
}
