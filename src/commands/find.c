/*
 * trail find: prints where goroutines did what a pattern describes, with times, stacks and wakers.
 * Hits are printed as they are found.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ui/follow_up.h"
#include "ui/goroutine_filter.h"
#include "ui/rows.h"

struct request {
    struct analysis analysis;
    struct goroutine_filter filter;
    struct json json;
    trail_pattern *pattern;
    const char *text;
    size_t limit; /* 0: not given; SIZE_MAX: all */
    uint64_t hits;
    bool stacks, count, began;
};

static const struct option rows[] = {
    {'n', "limit", "N", "stop after N hits (default 100; 0: all)", TO_LIMIT(struct request, limit),
     .expects = "a number"},
    {'s', "stacks", NULL, "show whole stacks, one frame per line", TO_FLAG(struct request, stacks)},
    {'c', "count", NULL, "print only the number of hits: of all, unless --limit is given",
     TO_FLAG(struct request, count)},
    GOROUTINE_FILTER_ROWS(struct request, filter),
    SKIP_FRAMES_ROW,
    ANALYSIS_ROWS,
    {0},
};

/* MARK: Command line */

/* Prints the message, the pattern, and a mark below the error. */
static int print_pattern(const struct request *request, const trail_pattern_error *err)
{
    size_t size = err->end > err->begin ? err->end - err->begin : 1;
    print_message("find: %s", err->message);
    print_marked_text("  ", request->text, err->begin, size);
    return EXIT_USAGE;
}

static bool visit(void *context, const trail_hit *hit);

static int parse_words(struct request *request, const struct options *options)
{
    struct analysis *analysis = &request->analysis;
    trail_pattern_error err;
    if (options->word_count != 2)
        return usage_error(analysis->command,
                           options->word_count < 2
                               ? "a file and a pattern are needed (- is stdin)"
                               : "one file and one pattern: put the pattern into quotes");
    request->text = options->words[1];
    errno = 0;
    request->pattern = trail_pattern_parse(request->text, &err);
    if (!request->pattern)
        return errno == ENOMEM ? exit_no_memory() : print_pattern(request, &err);
    if (request->limit == 0)
        request->limit = request->count ? SIZE_MAX : 100;
    analysis->streams = true;
    analysis->options.what = TRAIL_ANALYZE_FIND;
    analysis->options.find = (trail_find_options){
        .pattern = request->pattern,
        .filter = goroutine_filter_of(&request->filter, analysis),
        .visit = visit,
        .context = request,
    };
    return analysis_word(analysis, options->words[0]);
}

static int parse_request(struct request *request, int argc, char **argv)
{
    struct options options;
    int code = options_each(&options, request->analysis.command, argc, argv, NULL, request);
    if (code != EXIT_GOOD)
        return code;
    return parse_words(request, &options);
}

/* Whether the step is or ends a wait; for other steps `reason` is a name chosen by the program. */
static bool is_wait(const trail_hit_step *step)
{
    return strcmp(step->what, "block") == 0 || strcmp(step->what, "wake") == 0 ||
           strcmp(step->what, "syscall") == 0;
}

/* MARK: JSON */

static void put_step(struct row *row, const void *of)
{
    const trail_hit_step *step = of;
    row_word(row, NULL, "what", step->what);
    if (is_wait(step))
        analysis_json_wait(row->analysis, row->json, step->reason);
    else
        row_name(row, NULL, "reason", step->reason);
    row_time(row, NULL, "begin_ns", step->begin_ns);
    row_time(row, NULL, "end_ns", step->end_ns);
    row_bool(row, "unfinished", step->open);
    place_json(row->analysis, row->json, "stack", step->stack);
    if (step->waker != TRAIL_NONE) {
        row_id(row, NULL, "waker", step->waker);
        place_json(row->analysis, row->json, "waker_stack", step->waker_stack);
    }
}

static void put_hit(struct row *row, const void *of)
{
    const trail_hit *hit = of;
    row_id(row, NULL, "goroutine", hit->goroutine);
    row_name(row, NULL, "group", hit->name);
    row_time(row, NULL, "begin_ns", hit->begin_ns);
    row_time(row, NULL, "end_ns", hit->end_ns);
    rows_json(row->analysis, row->json, "steps", put_step, hit->steps, sizeof *hit->steps,
              hit->step_count);
}

static void json_begin(struct request *request)
{
    trail_analysis_span span;
    if (request->began)
        return;
    request->began = true;
    trail_analysis_get_span(request->analysis.answers, &span);
    json_open(&request->json, NULL, '{');
    json_signed(&request->json, "origin_ns", span.origin_ns);
    json_string(&request->json, "pattern", request->text);
    json_open(&request->json, "hits", '[');
}

static void json_end(struct request *request)
{
    json_begin(request);
    json_close(&request->json, ']');
    json_number(&request->json, "count", request->hits);
    json_close(&request->json, '}');
    putchar('\n');
}

/* MARK: For people */

/* Whether the step has a waker: a wait, or a wake-up. */
static bool has_waker(const trail_hit_step *step)
{
    return strcmp(step->what, "block") == 0 || strcmp(step->what, "wake") == 0;
}

static void show_waker(const struct request *request, const trail_hit_step *step)
{
    char text[400];
    if (step->waker != TRAIL_NONE)
        printf(", by %s%" PRId64 " in %s", term(&request->analysis.vocabulary, TERM_task_id),
               step->waker, place_text(&request->analysis, step->waker_stack, text, sizeof text));
    else if (has_waker(step) && !step->open)
        printf(", without a waker in the trace");
    putchar('\n');
    if (!request->stacks)
        return;
    place_show(&request->analysis, step->stack, 30);
    if (step->waker_stack) {
        printf("%26sby\n", "");
        place_show(&request->analysis, step->waker_stack, 30);
    }
}

static void show_step(const struct request *request, const trail_hit_step *step, int64_t origin)
{
    char begin[SHOW_SIZE], length[SHOW_SIZE], text[400];
    printf("%s %s%c %s", show_right(begin, 14, show_duration(begin, step->begin_ns - origin)),
           show_right(length, 14,
                      step->lasts ? show_duration(length, step->end_ns - step->begin_ns) : ""),
           step->open ? '+' : ' ', step->what);
    if (step->reason) {
        printf("[");
        show_plain(trail_analysis_text(request->analysis.answers, step->reason));
        printf("]");
    }
    if (step->stack)
        printf(" in %s", place_text(&request->analysis, step->stack, text, sizeof text));
    show_waker(request, step);
}

static void show_hit(const struct request *request, const trail_hit *hit)
{
    trail_analysis_span span;
    char begin[SHOW_SIZE], length[SHOW_SIZE];
    trail_analysis_get_span(request->analysis.answers, &span);
    printf("%s%s%" PRId64 " ", request->hits > 1 ? "\n" : "",
           term(&request->analysis.vocabulary, TERM_task_id), hit->goroutine);
    show_plain(analysis_text(&request->analysis, hit->name));
    printf(": %s from %s on\n", show_duration(length, hit->end_ns - hit->begin_ns),
           show_duration(begin, hit->begin_ns - span.origin_ns));
    for (size_t i = 0; i < hit->step_count; i++)
        show_step(request, &hit->steps[i], span.origin_ns);
    char id[32], command[FOLLOW_UP_SIZE];
    (void)snprintf(id, sizeof id, "%" PRId64, hit->goroutine);
    struct follow_up follow_up = {id, hit->begin_ns - span.origin_ns, hit->end_ns - hit->begin_ns,
                                  true};
    printf("  %s\n", follow_up_print(&request->analysis, &follow_up, command));
}

static bool visit(void *context, const trail_hit *hit)
{
    struct request *request = context;
    if (request->hits++ == 0)
        analysis_speak(&request->analysis);
    if (request->count) {
        /* Only the total is printed. */
    } else if (request->analysis.json) {
        json_begin(request);
        row_json(&request->analysis, &request->json, NULL, put_hit, hit);
    } else {
        show_hit(request, hit);
    }
    return request->hits < request->limit;
}

/* Called after the pass. Returns EXIT_BAD if there were no hits, as grep does. */
static int show_end(void *context)
{
    struct request *request = context;
    int wrong = request->hits > 0 ? EXIT_GOOD
                                  : goroutine_filter_check(&request->filter, &request->analysis);
    if (wrong)
        return wrong;
    if (request->analysis.json)
        json_end(request);
    else if (request->count)
        printf("%" PRIu64 "\n", request->hits);
    else if (request->hits == 0)
        print_message("%s: nothing matches", source_title(request->analysis.word));
    else if (request->hits == request->limit)
        printf("\nstopped after %" PRIu64 "; --limit=0 shows all\n", request->hits);
    return request->hits > 0 ? EXIT_GOOD : EXIT_BAD;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct request request = {.analysis = {.command = command}, .json = json_on_stdout()};
    int code =
        analysis_answer(&request.analysis, parse_request(&request, argc, argv), show_end, &request);
    trail_pattern_free(request.pattern);
    goroutine_filter_free(&request.filter);
    return code;
}

const struct command command_find = {
    COMMAND_ROW(find),
    .synopsis = "[options] FILE 'PATTERN'",
    .details =
        "A pattern is steps of one goroutine: STEP then STEP then STEP, with anything between.\n"
        "  states    run ready block syscall; with a length: block >10ms, run >=1ms <2ms\n"
        "  moments   create start stop wake end, creates wakes (another goroutine), log,\n"
        "            region, region-end, task, task-end, sample\n"
        "  [TEXT]    the reason of a block, stop or wake; the name of a region or task, the\n"
        "            category of a log: block[sync], block[chan*|select]. net, chan and cond\n"
        "            are short for reasons\n"
        "  in F      a function of its stack: block in main.work; run in *.parse\n"
        "  by F      a function of the waker: block[sync] by main.flush\n"
        "  or        either: log[error] or region[retry]\n"
        "  then directly STEP      no other state between\n"
        "  then within 5ms STEP    it begins at most 5 ms after the step before\n"
        "  within 5ms              at the end: at most 5 ms from begin to end\n"
        "* stands for anything. Hits of a goroutine do not overlap, and of several beginnings the "
        "last counts. A state counts if its beginning is in the trace and the window.\n"
        "Exit status: 0 found, 1 nothing found or the trace is damaged, 2 the command line or the "
        "pattern is wrong, 3 cannot read or write.",
    .examples = "  trail find app.trace 'block[sync] >10ms then start then block[net]'\n"
                "  trail find --stacks app.trace 'block[sync] >1ms by main.flush'\n"
                "  trail find --name=main.worker app.trace 'wake then directly ready >5ms'\n"
                "  trail find app.trace 'region[request] then region-end[request] within 1ms'\n"
                "  trail find --count app.trace 'syscall >100us in os.*'",
    .wrapped = true,
};
