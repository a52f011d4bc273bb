/*
 * trail goroutines: where the time of goroutines went, by start function and one by one.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/match.h"
#include "base/text.h"
#include "ui/follow_up.h"
#include "ui/goroutine_filter.h"
#include "ui/groups.h"
#include "ui/nearest.h"
#include "ui/values.h"

struct request {
    struct analysis analysis;
    struct groups_view view;
    const char *name, *match;
    trail_name wanted; /* the name, once it is found in the trace */
    struct id_list ids;
    bool members;
};

static const struct option rows[] = {
    {0, "name", "FUNCTION", "the goroutines with this start function, one by one",
     TO_TEXT(struct request, name)},
    {0, "group", "FUNCTION", "the same", TO_TEXT(struct request, name)},
    {0, "match", "WORDS",
     "those whose start function or number contains all these words, and no -word; one by one",
     TO_TEXT(struct request, match)},
    {'g', "goroutine", "N,...", "these goroutines, one by one", TO_IDS(struct request, ids, "gG")},
    {'m', "members", NULL, "all goroutines, one by one", TO_FLAG(struct request, members)},
    GROUPS_ROWS(struct request, view),
    SKIP_FRAMES_ROW,
    ANALYSIS_ROWS,
    {0},
};

/* MARK: Command line */

static int parse_request(struct request *request, int argc, char **argv)
{
    const struct groups_view *view = &request->view;
    unsigned *what = &request->analysis.options.what;
    int code = analysis_parse(&request->analysis, argc, argv);
    bool some = request->members || request->name || request->match || request->ids.count > 0;
    bool json = request->analysis.json;
    request->members = json ? !view->json : some;
    *what = request->members ? TRAIL_ANALYZE_GOROUTINES : TRAIL_ANALYZE_GROUPS;
    if (json && request->members)
        *what |= TRAIL_ANALYZE_REGIONS;
    /* What made the trace is known only after reading it. */
    if (!json && request->members && request->analysis.options.words != TRAIL_WORDS_GO)
        *what |= TRAIL_ANALYZE_THREADS;
    if (!request->members && (view->percentiles.given || view->histogram.given || json))
        *what |= TRAIL_ANALYZE_DISTRIBUTIONS;
    return code ? code : groups_check(view, request->members);
}

/* MARK: Which */

static bool is_name(const struct request *request, trail_name name)
{
    return text_is(analysis_text(&request->analysis, name), request->name);
}

/* The name is not in the trace: prints the nearest one. */
static int unknown_name(const struct request *request, const trail_goroutine *g, size_t count)
{
    struct nearest nearest = {.word = request->name};
    for (size_t i = 0; i < count; i++)
        if (i == 0 || g[i].name != g[i - 1].name)
            nearest_offer(&nearest, analysis_text(&request->analysis, g[i].name));
    return usage_error(request->analysis.command, "no %s has the start function '%s'%s",
                       term(&request->analysis.vocabulary, TERM_task), request->name,
                       nearest_hint(&nearest));
}

static int unknown_goroutine(const struct request *request, const trail_goroutine *g, size_t count,
                             int64_t id)
{
    int64_t nearest = count > 0 ? g[0].id : 0;
    for (size_t i = 0; i < count; i++)
        if (llabs(g[i].id - id) < llabs(nearest - id))
            nearest = g[i].id;
    const char *task = term(&request->analysis.vocabulary, TERM_task);
    if (count == 0)
        return usage_error(request->analysis.command, "no %s %" PRId64, task, id);
    return usage_error(request->analysis.command, "no %s %" PRId64 "; the nearest is %" PRId64,
                       task, id, nearest);
}

/* Whether the requested name or ID exists. */
static int find_wanted(struct request *request, const trail_goroutine *g, size_t count)
{
    bool found = !request->name;
    for (size_t i = 0; i < count && !found; i++) {
        found = is_name(request, g[i].name);
        request->wanted = g[i].name;
    }
    if (!found)
        return unknown_name(request, g, count);
    for (size_t n = 0; n < request->ids.count; n++) {
        size_t at = goroutine_index(g, count, request->ids.ids[n]);
        if (at == count || g[at].id != request->ids.ids[n])
            return unknown_goroutine(request, g, count, request->ids.ids[n]);
    }
    return EXIT_GOOD;
}

static bool is_wanted(const struct request *request, const trail_goroutine *g)
{
    if (request->name && g->name != request->wanted)
        return false;
    if (request->match &&
        !match_words(analysis_text(&request->analysis, g->name), g->id, request->match))
        return false;
    for (size_t i = 0; i < request->ids.count; i++)
        if (request->ids.ids[i] == g->id)
            return true;
    return request->ids.count == 0;
}

/* MARK: JSON */

static void json_regions(const struct request *request, struct json *json, const trail_goroutine *g)
{
    json_open(json, "regions", '[');
    for (uint32_t i = 0; i < g->region_count; i++) {
        const trail_region *region = &g->regions[i];
        json_open(json, NULL, '{');
        json_number(json, "task", region->task);
        json_text(json, "name", trail_analysis_text(request->analysis.answers, region->name));
        json_signed(json, "start_ns", region->start_ns);
        json_signed(json, "end_ns", region->end_ns);
        analysis_json_times(&request->analysis, json, &region->times);
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void json_goroutine(const struct request *request, struct json *json,
                           const trail_goroutine *g)
{
    json_open(json, NULL, '{');
    json_signed(json, "id", g->id);
    json_text(json, "name", trail_analysis_text(request->analysis.answers, g->name));
    json_number(json, "pc", g->pc);
    json_signed(json, "creation_ns", g->creation_ns);
    json_signed(json, "start_ns", g->start_ns);
    json_signed(json, "end_ns", g->end_ns);
    analysis_json_times(&request->analysis, json, &g->times);
    json_regions(request, json, g);
    json_close(json, '}');
}

/* Sorted and limited only if that was asked for. */
static void json_goroutines(const struct request *request, const trail_goroutine *const *list,
                            size_t wanted)
{
    struct json json = analysis_json_begin(&request->analysis);
    size_t limit = request->view.limit ? request->view.limit : SIZE_MAX;
    json_number(&json, "all", wanted);
    json_open(&json, "goroutines", '[');
    for (size_t i = 0; i < wanted && i < limit; i++)
        json_goroutine(request, &json, list[i]);
    json_close(&json, ']');
    analysis_json_end(&json);
}

/* MARK: Order */

static int by_column_of_goroutine(const void *a, const void *b, void *column)
{
    trail_column by = *(const trail_column *)column;
    const trail_goroutine *g = *(const trail_goroutine *const *)a;
    const trail_goroutine *h = *(const trail_goroutine *const *)b;
    int64_t x = trail_times_column(&g->times, by), y = trail_times_column(&h->times, by);
    if (x != y)
        return x < y ? 1 : -1;
    return g->id < h->id ? -1 : g->id > h->id;
}

/* MARK: For people */

#define MEMBER_TITLES "created> ended> total> " GROUPS_TIMES " start_function<"

/* Prints the TID of the thread, which in recordings of trail record is the goroutine. */
static void put_thread(const struct request *request, struct table *table, int64_t goroutine)
{
    const trail_thread *threads;
    size_t count = trail_analysis_threads(request->analysis.answers, &threads), i = 0;
    char id[32] = "-";
    while (i < count && threads[i].goroutine != goroutine)
        i++;
    if (i < count)
        (void)snprintf(id, sizeof id, "%" PRId64, threads[i].id);
    table_word(table, id);
}

static void show_members(const struct request *request, const trail_goroutine *const *list,
                         size_t shown)
{
    struct table table;
    char id[32];
    int64_t origin = request->analysis.span.origin_ns;
    bool is_thread = request->analysis.vocabulary.of == TRAIL_MADE_BY_RECORD;
    table_begin_with(&table, &request->analysis.vocabulary,
                     is_thread ? "{task_column}> {machine_column}> " MEMBER_TITLES
                               : "{task_column}> " MEMBER_TITLES);
    for (size_t i = 0; i < shown; i++) {
        const trail_goroutine *g = list[i];
        (void)snprintf(id, sizeof id, "%" PRId64, g->id);
        table_word(&table, id);
        if (is_thread)
            put_thread(request, &table, g->id);
        table_duration(&table, g->creation_ns - origin);
        if (g->end_ns == 0)
            table_word(&table, "alive");
        else
            table_duration(&table, g->end_ns - origin);
        table_duration(&table, g->times.total_ns);
        groups_put_times(&request->analysis, &table, &g->times);
        table_text(&table, analysis_text(&request->analysis, g->name));
    }
    table_print(&table);
}

/* Prints the commands that show the first row. */
static void show_first(const struct request *request, const trail_goroutine *g)
{
    const trail_analysis_span *span = &request->analysis.span;
    int64_t begin = g->creation_ns > span->begin_ns ? g->creation_ns : span->begin_ns;
    int64_t end = g->end_ns != 0 ? g->end_ns : span->end_ns;
    char text[FOLLOW_UP_SIZE];
    printf("\nthe first of these, and what it waited for:\n  %s\n",
           follow_up_of(&request->analysis, g->id, begin, end - begin, text));
    printf("  trail why %s%" PRId64 " %s\n", term(&request->analysis.vocabulary, TERM_task_option),
           g->id, follow_up_file(&request->analysis, text));
}

static void show_list(const struct request *request, const trail_goroutine *const *list,
                      size_t wanted)
{
    size_t shown = groups_shown(&request->view, wanted);
    groups_show_head(&request->view, 0);
    if (shown > 0)
        show_members(request, list, shown);
    groups_print_more(shown, wanted);
    if (shown > 0)
        show_first(request, list[0]);
}

static int show_goroutines(struct request *request)
{
    const trail_goroutine *g;
    size_t count = trail_analysis_goroutines(request->analysis.answers, &g), wanted = 0;
    int wrong = find_wanted(request, g, count);
    bool by_id = request->analysis.json && !request->view.sort.given && !request->view.limit;
    if (wrong)
        return wrong;
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers. */
    const trail_goroutine **list = calloc(count + 1, sizeof *list);
    if (!list)
        return exit_no_memory();
    for (size_t i = 0; i < count; i++)
        if (is_wanted(request, &g[i]))
            list[wanted++] = &g[i];
    if (!by_id) /* NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers. */
        qsort_r(list, wanted, sizeof *list, by_column_of_goroutine, &request->view.sort.column);
    if (request->analysis.json)
        json_goroutines(request, list, wanted);
    else
        show_list(request, list, wanted);
    free(list);
    return EXIT_GOOD;
}

static int show(void *context)
{
    struct request *request = context;
    return request->members ? show_goroutines(request) : groups_show_goroutines(&request->view);
}

static int run(const struct command *command, int argc, char **argv)
{
    struct request request = {.analysis = {.command = command}};
    request.view = groups_of_goroutines(&request.analysis);
    int code =
        analysis_answer(&request.analysis, parse_request(&request, argc, argv), show, &request);
    free(request.ids.ids);
    return code;
}

const struct command command_goroutines = {
    COMMAND_ROW(goroutines),
    .synopsis = "[options] FILE",
    .details =
        "Shows, for all goroutines with the same start function, how long they ran, were ready "
        "but had no P, were in system calls (and of that without a P), and blocked, for what. "
        "With a name or numbers, the goroutines one by one.",
    .examples = "  trail goroutines app.trace\n"
                "  trail goroutines --name=main.worker --sort=sched-wait app.trace\n"
                "  trail goroutines --percentiles=sched-wait --from=1s --to=+500ms app.trace\n"
                "  trail goroutines --json app.trace | jq '.goroutines[] | select(.exec_ns > 1e6)'",
    .options = rows,
    .run = run,
    .wrapped = true,
};
