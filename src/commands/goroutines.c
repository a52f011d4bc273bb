/*
 * trail goroutines: where the time of goroutines went, by start function and one by one.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/match.h"
#include "base/order.h"
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
        !match_words(analysis_text(&request->analysis, g->name), &g->id, 1, request->match))
        return false;
    return id_list_allows(&request->ids, g->id);
}

/* MARK: Columns */

static void put_region(struct row *row, const void *of)
{
    const trail_region *region = of;
    row_number(row, NULL, "task", region->task);
    row_name(row, NULL, "name", region->name);
    row_time(row, NULL, "start_ns", region->start_ns);
    row_time(row, NULL, "end_ns", region->end_ns);
    groups_put_times(row, &region->times);
}

/* Writes the TID of the thread, which in recordings of trail record is the goroutine. */
static void put_thread(struct row *row, int64_t goroutine)
{
    const trail_thread *threads;
    size_t count = trail_analysis_threads(row->analysis->answers, &threads), i = 0;
    if (row->json || row->analysis->vocabulary.of != TRAIL_MADE_BY_RECORD)
        return;
    while (i < count && threads[i].goroutine != goroutine)
        i++;
    if (i < count)
        row_id(row, "{machine_column}>", NULL, threads[i].id);
    else
        row_word(row, "{machine_column}>", NULL, "-");
}

static void put_goroutine(struct row *row, const void *of)
{
    const trail_goroutine *g = of;
    row_id(row, "{task_column}>", "id", g->id);
    put_thread(row, g->id);
    row_name(row, NULL, "name", g->name);
    row_number(row, NULL, "pc", g->pc);
    row_time(row, "created>", "creation_ns", g->creation_ns);
    row_time(row, NULL, "start_ns", g->start_ns);
    row_time_or(row, "ended>", "end_ns", g->end_ns, g->end_ns != 0, "alive");
    row_duration(row, "total>", NULL, g->times.total_ns);
    groups_put_times(row, &g->times);
    row_name(row, "start_function<", NULL, g->name);
    if (row->json)
        rows_json(row->analysis, row->json, "regions", put_region, g->regions, sizeof *g->regions,
                  g->region_count);
}

/* MARK: Order */

static int by_column_of_goroutine(const void *a, const void *b, void *column)
{
    trail_column by = *(const trail_column *)column;
    const trail_goroutine *g = *(const trail_goroutine *const *)a;
    const trail_goroutine *h = *(const trail_goroutine *const *)b;
    int64_t x = trail_times_column(&g->times, by), y = trail_times_column(&h->times, by);
    return ORDER(y, x) ?: ORDER(g->id, h->id);
}

/* MARK: For people */

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
    rows_show(&request->analysis, put_goroutine, list, 0, wanted, shown);
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
    const trail_goroutine **list = calloc(count + 1, sizeof(void *));
    if (!list)
        return exit_no_memory();
    for (size_t i = 0; i < count; i++)
        if (is_wanted(request, &g[i]))
            list[wanted++] = &g[i];
    if (!by_id)
        qsort_r(list, wanted, sizeof(void *), by_column_of_goroutine, &request->view.sort.column);
    if (request->analysis.json)
        groups_json_list(&request->view, "goroutines", put_goroutine, list, wanted);
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
        "but had no P, were in system calls (and of that without a P), and waited, for what. "
        "With a name or numbers, the goroutines one by one.",
    .examples = "  trail goroutines app.trace\n"
                "  trail goroutines --name=main.worker --sort=sched-wait app.trace\n"
                "  trail goroutines --percentiles=sched-wait --from=1s --to=+500ms app.trace\n"
                "  trail goroutines --json app.trace | jq '.goroutines[] | select(.exec_ns > 1e6)'",
    .wrapped = true,
};
