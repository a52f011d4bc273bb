/*
 * trail why: the critical path of a task, a region, a goroutine or a window.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/heap.h"
#include "base/order.h"
#include "base/text.h"
#include "ui/follow_up.h"
#include "ui/goroutine_filter.h"
#include "ui/nearest.h"
#include "ui/rows.h"
#include "ui/values.h"
#include "words/function_name.h"
#include "words/place.h"

enum { OPT_TASK = 1, OPT_REGION, OPT_GOROUTINE, OPT_WINDOW, OPT_LIMIT };

/* One of the longest segments, kept for output. */
struct kept {
    trail_path_segment segment;
    uint64_t place; /* position, counted from the end of the path */
};

struct request {
    struct analysis analysis;
    char *region;
    uint64_t limit;
    bool limited; /* the limit was given: it also applies to JSON */
    bool stacks;
    trail_path path;
    struct json json;
    struct kept *kept; /* a heap, shortest first */
    size_t kept_count, kept_capacity;
    uint64_t segments;
    bool failed;
};

static const struct option rows[] = {
    {'t', "task", "N", "of this task", TAKE(OPT_TASK)},
    {0, "region", "NAME[#N]", "of the longest region of this name, or of its Nth",
     TAKE(OPT_REGION)},
    {'g', "goroutine", "N", "of this goroutine, from its end to its beginning",
     TAKE(OPT_GOROUTINE)},
    {'w', "window", NULL, "of the whole window or trace, from the goroutine that ran last",
     TAKE(OPT_WINDOW)},
    {'n', "limit", "N", "show the N longest segments (default 40; with --json: all)",
     TAKE(OPT_LIMIT)},
    {'s', "stacks", NULL, "show stacks, one frame per line", TO_FLAG(struct request, stacks)},
    SKIP_FRAMES_ROW,
    ANALYSIS_ROWS,
    {0},
};

/* MARK: Command line */

static int ask(struct request *request, trail_path_of of)
{
    trail_path_request *path_request = &request->analysis.options.path;
    if (path_request->of != TRAIL_PATH_LONGEST && path_request->of != of)
        return usage_error(request->analysis.command,
                           "one of --task, --region, --goroutine and --window at a time");
    path_request->of = of;
    return EXIT_GOOD;
}

static int parse_region(struct request *request, const char *value)
{
    trail_path_request *path_request = &request->analysis.options.path;
    int64_t nth;
    free(request->region);
    request->region = strdup(value);
    if (!request->region)
        return exit_no_memory();
    char *sign = strrchr(request->region, '#');
    if (sign && parse_id(sign + 1, "", &nth) && nth > 0) {
        path_request->nth = (uint64_t)nth;
        *sign = '\0';
    }
    path_request->region = request->region;
    return ask(request, TRAIL_PATH_REGION);
}

static int parse_number(const struct request *request, const char *letters, const char *value,
                        int64_t *number)
{
    if (parse_id(value, letters, number))
        return EXIT_GOOD;
    return usage_error(request->analysis.command, "'%s' is not a number", value);
}

static int parse_option(void *context, int id, const char *value)
{
    struct request *request = context;
    trail_path_request *path_request = &request->analysis.options.path;
    int64_t number = 0;
    int wrong;
    switch (id) {
    case OPT_TASK:
        wrong = parse_number(request, "", value, &number);
        path_request->task = (uint64_t)number;
        return wrong ? wrong : ask(request, TRAIL_PATH_TASK);
    case OPT_REGION:
        return parse_region(request, value);
    case OPT_GOROUTINE:
        wrong = parse_number(request, "gG", value, &path_request->goroutine);
        return wrong ? wrong : ask(request, TRAIL_PATH_GOROUTINE);
    case OPT_WINDOW:
        return ask(request, TRAIL_PATH_WINDOW);
    default:
        wrong = parse_number(request, "", value, &number);
        request->limit = (uint64_t)number;
        request->limited = true;
        return wrong;
    }
}

static int parse_request(struct request *request, int argc, char **argv)
{
    struct options options;
    struct analysis *analysis = &request->analysis;
    int code = options_each(&options, analysis->command, argc, argv, parse_option, request);
    if (code != EXIT_GOOD)
        return code;
    int wrong = analysis_words(analysis, &options);
    bool window = analysis->options.has_from || analysis->options.has_to;
    if (window && analysis->options.path.of == TRAIL_PATH_LONGEST)
        analysis->options.path.of = TRAIL_PATH_WINDOW;
    analysis->options.what = TRAIL_ANALYZE_PATH;
    return wrong;
}

/* MARK: The longest segments */

static bool shorter(const struct kept *a, const struct kept *b)
{
    int64_t x = a->segment.end_ns - a->segment.begin_ns;
    int64_t y = b->segment.end_ns - b->segment.begin_ns;
    return x != y ? x < y : a->place > b->place;
}

HEAP(kept, struct kept, shorter)

static void keep(void *context, const trail_path_segment *segment)
{
    struct request *request = context;
    struct kept kept = {*segment, request->segments++};
    if (request->kept_count < request->limit) {
        if (!GROW(request->kept, request->kept_capacity, request->kept_count + 1)) {
            request->failed = true;
            return;
        }
        kept_up(request->kept, request->kept_count++, kept);
    } else if (request->kept_count > 0 && shorter(&request->kept[0], &kept)) {
        kept_down(request->kept, request->kept_count, 0, kept);
    }
}

static int from_the_begin(const void *a, const void *b)
{
    const struct kept *x = a, *y = b;
    return ORDER(y->place, x->place);
}

/* Finds the longest segments, and sorts them from the start of the path to its end. Returns 0 on
 * success. */
static int keep_longest(struct request *request)
{
    int failed = trail_analysis_path_walk(request->analysis.answers, keep, request);
    if (request->kept_count > 0)
        qsort(request->kept, request->kept_count, sizeof *request->kept, from_the_begin);
    return failed || request->failed ? -1 : 0;
}

/* MARK: JSON */

/* Writes what the goroutine woken at the end of the segment waited for. */
static void put_awaited(struct row *row, const trail_path_segment *segment)
{
    trail_wait_for what = trail_analysis_wait_for(row->analysis->answers, segment->awaited);
    row_name(row, NULL, "awaited", what.reason);
    if (what.kind)
        row_word(row, NULL, "awaited_kind", what.kind);
    if (what.object)
        row_name(row, NULL, "awaited_object", what.object);
    if (segment->held_ns)
        row_duration(row, NULL, "held_ns", segment->held_ns);
}

static void put_segment(struct row *row, const void *of)
{
    const trail_path_segment *segment = of;
    row_time(row, NULL, "begin_ns", segment->begin_ns);
    row_time(row, NULL, "end_ns", segment->end_ns);
    row_id(row, NULL, "goroutine", segment->goroutine);
    row_name(row, NULL, "group", segment->group);
    row_number(row, NULL, "depth", segment->depth);
    row_word(row, NULL, "state", trail_path_state_name(segment->state));
    if (segment->state == TRAIL_PATH_BLOCKED || segment->reason)
        analysis_json_wait(row->analysis, row->json, segment->reason);
    if (segment->timed_out)
        row_bool(row, "timed_out", true);
    row_name(row, NULL, "function", segment->function);
    place_json(row->analysis, row->json, "stack", segment->stack);
    if (segment->wakes != TRAIL_NONE) {
        row_id(row, NULL, "wakes", segment->wakes);
        put_awaited(row, segment);
        place_json(row->analysis, row->json, "waited_at", segment->waited_at);
    }
}

static void json_counted(void *context, const trail_path_segment *segment)
{
    struct request *request = context;
    request->segments++;
    row_json(&request->analysis, &request->json, NULL, put_segment, segment);
}

static const char *word_of(trail_path_of of)
{
    static const char *const words[] = {
        [TRAIL_PATH_LONGEST] = "longest", [TRAIL_PATH_TASK] = "task",
        [TRAIL_PATH_REGION] = "region",   [TRAIL_PATH_GOROUTINE] = "goroutine",
        [TRAIL_PATH_WINDOW] = "window",
    };
    return words[of];
}

/* Returns "running"; "blocked (chan receive)"; "waiting for mutex stats_mu". */
static trail_string state_text(const struct analysis *analysis, trail_path_state state,
                               trail_name reason, char buf[WAIT_TEXT_SIZE])
{
    trail_string text = analysis_wait_text(analysis, reason, buf);
    const char *shown = state == TRAIL_PATH_UNKNOWN ? term(&analysis->vocabulary, TERM_not_known)
                                                    : trail_path_state_name(state);
    if (reason && trail_analysis_wait_for(analysis->answers, reason).kind)
        return text;
    if (!reason)
        return text_from(shown);
    int size = snprintf(buf, WAIT_TEXT_SIZE, "%s (%.*s)", shown,
                        (int)(text.size < 200 ? text.size : 200), text.data);
    return (trail_string){buf, size > 0 ? (size_t)size : 0};
}

static void put_total(struct row *row, const void *of)
{
    const struct request *request = (const struct request *)row->analysis;
    const trail_path_total *total = of;
    char state[WAIT_TEXT_SIZE], name[FUNCTION_NAME_SIZE];
    row_share(row, "share>",
              (double)total->ns / (double)(request->path.end_ns - request->path.begin_ns));
    row_duration(row, "time>", NULL, total->ns);
    row_number(row, "times>", NULL, total->count);
    row_name(row, "{task}<", "group", total->group);
    row_word(row, NULL, "state", trail_path_state_name(total->state));
    if (row->json && (total->state == TRAIL_PATH_BLOCKED || total->reason))
        analysis_json_wait(row->analysis, row->json, total->reason);
    row_text(row, "state<", NULL, state_text(row->analysis, total->state, total->reason, state));
    row_text(row, "function<", NULL,
             function_name_short(analysis_text(row->analysis, total->function), name));
    row_name(row, NULL, "function", total->function);
    row_number(row, NULL, "count", total->count);
    row_duration(row, NULL, "ns", total->ns);
}

/* Writes the segments from the last to the first, or only the longest if there is a limit. */
static int json_segments(struct request *request)
{
    struct json *json = &request->json;
    int failed = 0;
    json_open(json, "segments", '[');
    if (request->limited) {
        failed = keep_longest(request);
        for (size_t i = request->kept_count; i-- > 0;)
            row_json(&request->analysis, json, NULL, put_segment, &request->kept[i].segment);
    } else {
        failed = trail_analysis_path_walk(request->analysis.answers, json_counted, request);
    }
    json_close(json, ']');
    json_number(json, "all", request->segments);
    return failed;
}

static int show_json(struct request *request)
{
    struct json *json = &request->json;
    const trail_path *path = &request->path;
    json_open(json, NULL, '{');
    json_signed(json, "origin_ns", request->analysis.span.origin_ns);
    json_string(json, "of", word_of(path->of));
    if (path->of == TRAIL_PATH_TASK || path->of == TRAIL_PATH_REGION)
        json_number(json, "task", path->task);
    json_text(json, "name", trail_analysis_text(request->analysis.answers, path->name));
    if (path->of == TRAIL_PATH_REGION)
        json_number(json, "nth", path->nth);
    json_signed(json, "goroutine", path->goroutine);
    json_bool(json, "complete", path->complete);
    json_signed(json, "begin_ns", path->begin_ns);
    json_signed(json, "end_ns", path->end_ns);
    int failed = json_segments(request);
    const trail_path_total *totals;
    size_t count = trail_analysis_path_totals(request->analysis.answers, &totals);
    rows_json(&request->analysis, json, "totals", put_total, totals, sizeof *totals, count);
    json_close(json, '}');
    putchar('\n');
    return failed;
}

/* MARK: For people */

static void put_name(const struct request *request, trail_name name)
{
    show_plain(analysis_text(&request->analysis, name));
}

static const char *word(const struct request *request, enum term name)
{
    return term(&request->analysis.vocabulary, name);
}

static void show_title(const struct request *request)
{
    char begin[SHOW_SIZE], length[SHOW_SIZE];
    const trail_path *path = &request->path;
    int64_t origin = request->analysis.span.origin_ns;
    printf("%s", path->of == TRAIL_PATH_GOROUTINE ? word(request, TERM_task) : word_of(path->of));
    if (path->of == TRAIL_PATH_TASK)
        printf(" %" PRIu64, path->task);
    if (path->of == TRAIL_PATH_GOROUTINE)
        printf(" %" PRId64, path->goroutine);
    if (path->of != TRAIL_PATH_WINDOW) {
        putchar(' ');
        put_name(request, path->name);
    }
    if (path->of == TRAIL_PATH_REGION)
        printf("#%" PRIu64, path->nth);
    printf(": %s from %s on%s; critical path, ending in %s%" PRId64 ":\n\n",
           show_duration(length, path->end_ns - path->begin_ns),
           show_duration(begin, path->begin_ns - origin),
           path->complete ? "" : ", not all of it in the trace", word(request, TERM_task_id),
           path->goroutine);
}

static void put_place(const struct request *request, const trail_path_segment *segment)
{
    const trail_place *places;
    const trail_analysis *answers = request->analysis.answers;
    size_t count = trail_analysis_stack(answers, segment->stack, &places);
    char text[PLACE_TEXT_SIZE];
    if (count == 0)
        return;
    const trail_place *own = &places[trail_analysis_stack_own(answers, segment->stack)];
    (void)place_of_frame(analysis_text(&request->analysis, own->function),
                         trail_analysis_text(answers, own->file), own->line, PLACE_PLAIN, text,
                         sizeof text);
    printf(segment->state == TRAIL_PATH_RUNNING ? " up to " : " in ");
    show_plain(text_from(text));
}

static void show_segment(const struct request *request, const trail_path_segment *segment)
{
    enum { COLUMNS = 26, DEEPEST = 20 };
    char begin[SHOW_SIZE], length[SHOW_SIZE];
    unsigned depth = segment->depth < DEEPEST ? segment->depth : DEEPEST;
    (void)show_duration(begin, segment->begin_ns - request->analysis.span.origin_ns);
    (void)show_duration(length, segment->end_ns - segment->begin_ns);
    printf("%s %s %*s%s%" PRId64 " ", show_right(begin, 12, begin), show_right(length, 12, length),
           (int)(2 * depth), "", word(request, TERM_task_id), segment->goroutine);
    put_name(request, segment->group);
    char text[WAIT_TEXT_SIZE];
    printf(": ");
    show_plain(state_text(&request->analysis, segment->state, segment->reason, text));
    put_place(request, segment);
    if (segment->timed_out)
        printf(", timed out after %s", show_duration(length, segment->end_ns - segment->begin_ns));
    if (segment->wakes != TRAIL_NONE) {
        printf("; wakes %s%" PRId64, word(request, TERM_task_id), segment->wakes);
        if (segment->awaited) {
            printf(" from ");
            show_plain(analysis_wait_text(&request->analysis, segment->awaited, text));
        }
        if (segment->held_ns) {
            printf(" (held by ");
            put_name(request, segment->group);
            printf(", %s)", show_duration(length, segment->held_ns));
        }
    }
    putchar('\n');
    if (request->stacks)
        place_show(&request->analysis, segment->stack, COLUMNS + 2 * depth + 2);
}

static void show_gap(uint64_t count, int64_t ns)
{
    char length[SHOW_SIZE], number[32];
    if (count > 0)
        printf("%12s %s %s shorter segment%s\n", "...",
               show_right(length, 12, show_duration(length, ns)), show_thousands(number, count),
               plural_s(count));
}

static void show_segments(const struct request *request)
{
    uint64_t place = request->segments;
    int64_t at = request->path.begin_ns;
    printf("\n%12s %12s\n", "at", "for");
    for (size_t i = 0; i < request->kept_count; i++) {
        const struct kept *kept = &request->kept[i];
        show_gap(place - kept->place - 1, kept->segment.begin_ns - at);
        show_segment(request, &kept->segment);
        place = kept->place;
        at = kept->segment.end_ns;
    }
    show_gap(place, request->path.end_ns - at);
}

static void show_totals(const struct request *request)
{
    enum { MOST = 10 };
    const trail_path_total *totals;
    size_t count = trail_analysis_path_totals(request->analysis.answers, &totals);
    rows_show(&request->analysis, put_total, totals, sizeof *totals, count < MOST ? count : MOST,
              SIZE_MAX);
    if (count > MOST)
        printf("... and %zu more\n", count - MOST);
}

/* Prints the command for the goroutines of the output, as many as fit. */
static void show_command(const struct request *request)
{
    char command[FOLLOW_UP_SIZE];
    struct goroutine_list list = {0};
    const trail_path *path = &request->path;
    for (size_t i = 0; i < request->kept_count; i++)
        (void)goroutine_list_add(&list, request->kept[i].segment.goroutine);
    struct follow_up follow_up = {
        .goroutines = list.text,
        .from_ns = path->begin_ns - request->analysis.span.origin_ns,
        .ns = path->end_ns - path->begin_ns,
        .stacks = true,
    };
    if (list.size > 0)
        printf("\nwhat they did, event by event:\n  %s\n",
               follow_up_print(&request->analysis, &follow_up, command));
}

static int show_text(struct request *request)
{
    if (keep_longest(request))
        return -1;
    show_title(request);
    if (request->segments > 0)
        show_totals(request);
    show_segments(request);
    show_command(request);
    return 0;
}

/* MARK: What is not there */

/*
 * What the trace contains, for a request that matches nothing. It takes another pass over the file,
 * so that requests that match cost nothing; for stdin it is unknown.
 */
struct instead {
    trail_source *source;
    trail_reader *reader;
    trail_analysis *answers; /* NULL: unknown */
};

static void look_instead(struct instead *instead, const struct request *request, unsigned what)
{
    trail_error err;
    trail_analysis_options options = request->analysis.options;
    *instead = (struct instead){0};
    if (strcmp(request->analysis.word, "-") == 0)
        return;
    options.what = what;
    options.progress = NULL;
    instead->source = open_source(request->analysis.word, &err);
    if (instead->source)
        instead->reader = analysis_reader(&request->analysis, instead->source, &err);
    if (instead->reader)
        instead->answers = trail_analysis_open(instead->reader, &options, &err);
    if (instead->answers)
        (void)trail_analysis_run(instead->answers, instead->reader, &err); /* already reported */
}

static void instead_close(struct instead *instead)
{
    trail_analysis_close(instead->answers);
    trail_reader_close(instead->reader);
    trail_source_close(instead->source);
}

static uint64_t apart(uint64_t a, uint64_t b)
{
    return a < b ? b - a : a - b;
}

/* Returns "; the nearest is 7". */
static const char *nearest_number(char *buf, bool found, uint64_t number)
{
    *buf = '\0';
    if (found)
        (void)snprintf(buf, SHOW_SIZE, "; the nearest is %" PRIu64, number);
    return buf;
}

static int print_no_task(const struct request *request, const struct instead *instead, uint64_t id)
{
    const trail_task *tasks = NULL;
    char nearest[SHOW_SIZE];
    uint64_t best = 0;
    size_t count = instead->answers ? trail_analysis_tasks(instead->answers, &tasks) : 0;
    bool found = false;
    for (size_t i = 0; i < count; i++) {
        /* a task without begin and end has no path */
        bool whole = tasks[i].has_start || tasks[i].has_end;
        if (whole && (!found || apart(tasks[i].id, id) < apart(best, id))) {
            best = tasks[i].id;
            found = true;
        }
    }
    if (found && best == id)
        return usage_error(request->analysis.command,
                           "task %" PRIu64 " has no critical path in the window: the %s that was "
                           "last in it ended before",
                           id, term(&request->analysis.vocabulary, TERM_task));
    return usage_error(request->analysis.command,
                       "no task %" PRIu64 " in the trace%s; 'trail tasks' lists them", id,
                       nearest_number(nearest, found, best));
}

static int print_no_goroutine(const struct request *request, const struct instead *instead,
                              int64_t id)
{
    const trail_goroutine *g = NULL;
    char nearest[SHOW_SIZE];
    uint64_t wanted = (uint64_t)id, best = 0;
    size_t count = instead->answers ? trail_analysis_goroutines(instead->answers, &g) : 0;
    for (size_t i = 0; i < count; i++)
        if (i == 0 || apart((uint64_t)g[i].id, wanted) < apart(best, wanted))
            best = (uint64_t)g[i].id;
    return usage_error(request->analysis.command,
                       "no %s %" PRId64 " in the trace%s; '%s' lists them",
                       word(request, TERM_task), id, nearest_number(nearest, count > 0, best),
                       word(request, TERM_task_command));
}

static int print_no_region(const struct request *request, const struct instead *instead)
{
    const trail_path_request *path_request = &request->analysis.options.path;
    const trail_group *groups = NULL;
    struct nearest nearest = {.word = path_request->region};
    size_t count = instead->answers ? trail_analysis_region_groups(instead->answers, &groups) : 0;
    for (size_t i = 0; i < count; i++) {
        trail_string name = trail_analysis_text(instead->answers, groups[i].name);
        if (path_request->nth > 0 && text_is(name, path_request->region))
            return usage_error(request->analysis.command,
                               "no region '%s', number %" PRIu64
                               ", in the trace: there are %" PRIu64,
                               path_request->region, path_request->nth, groups[i].count);
        nearest_offer(&nearest, name);
    }
    return usage_error(request->analysis.command,
                       "no region '%s' in the trace%s 'trail regions' lists them",
                       path_request->region, nearest.found ? nearest_hint(&nearest) : ";");
}

static int print_none(const struct request *request)
{
    static const unsigned what[] = {
        [TRAIL_PATH_TASK] = TRAIL_ANALYZE_TASKS,
        [TRAIL_PATH_REGION] = TRAIL_ANALYZE_REGION_GROUPS,
        [TRAIL_PATH_GOROUTINE] = TRAIL_ANALYZE_GOROUTINES,
    };
    const trail_path_request *path_request = &request->analysis.options.path;
    struct instead instead;
    int code;
    if (path_request->of == TRAIL_PATH_LONGEST || path_request->of == TRAIL_PATH_WINDOW) {
        printf("no %s ran\n", word(request, TERM_task));
        return EXIT_GOOD;
    }
    look_instead(&instead, request, what[path_request->of]);
    if (path_request->of == TRAIL_PATH_TASK)
        code = print_no_task(request, &instead, path_request->task);
    else if (path_request->of == TRAIL_PATH_REGION)
        code = print_no_region(request, &instead);
    else
        code = print_no_goroutine(request, &instead, path_request->goroutine);
    instead_close(&instead);
    return code;
}

/* MARK: Running */

static int show(void *context)
{
    struct request *request = context;
    trail_path_of asked = request->analysis.options.path.of;
    int64_t begin = request->analysis.span.begin_ns;
    request->path = (trail_path){TRAIL_PATH_WINDOW, .goroutine = TRAIL_NONE, .begin_ns = begin,
                                 .end_ns = begin};
    if (!trail_analysis_path(request->analysis.answers, &request->path) &&
        (!request->analysis.json || (asked != TRAIL_PATH_LONGEST && asked != TRAIL_PATH_WINDOW)))
        return print_none(request);
    int failed = request->analysis.json ? show_json(request) : show_text(request);
    if (failed)
        print_message("no memory for the path, or its temporary file cannot be read");
    return failed ? EXIT_INOUT : EXIT_GOOD;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct request request = {
        .analysis = {.command = command}, .json = json_on_stdout(), .limit = 40};
    int code =
        analysis_answer(&request.analysis, parse_request(&request, argc, argv), show, &request);
    free(request.kept);
    free(request.region);
    return code;
}

const struct command command_why = {
    COMMAND_ROW(why),
    .synopsis = "[options] FILE",
    .details = "Shows where the time of a task, a region, a goroutine or a window went, in any "
               "goroutine: from its end back through the wake-ups. While one goroutine waited for "
               "another, the time is the other's, indented, for at most as long as the wait. "
               "Blocked is a wait without a waker in the trace: timers, the network. Without an "
               "option: the longest task or region; with --from or --to: the window.",
    .examples = "  trail why app.trace\n"
                "  trail why --task=7 --stacks app.trace\n"
                "  trail why --region=parse#3 app.trace\n"
                "  trail why --from=1.5s --to=+20ms app.trace\n"
                "  trail why --goroutine=18 --json app.trace | jq .totals",
    .wrapped = true,
};
