/*
 * trail regions: what goroutines did inside user regions, by name and one by one.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/match.h"
#include "base/order.h"
#include "base/text.h"
#include "ui/empty.h"
#include "ui/follow_up.h"
#include "ui/groups.h"
#include "ui/lengths.h"
#include "ui/nearest.h"
#include "ui/values.h"

struct request {
    struct analysis analysis;
    struct groups_view view;
    const char *name, *match;
    struct id_list goroutines, tasks;
    struct lengths lengths;
    bool members;
    const trail_region *regions;
    size_t count;
    /* For JSON, by region: its number among those with its name that began in the trace, as in
     * trail why; 0: none. */
    uint64_t *numbers;
};

static const struct option rows[] = {
    {0, "name", "REGION", "the regions of this name, one by one", TO_TEXT(struct request, name)},
    {0, "match", "WORDS",
     "those whose name, goroutine or task contains all these words, and no -word; one by one",
     TO_TEXT(struct request, match)},
    {'g', "goroutine", "N,...", "the regions of these goroutines, one by one",
     TO_IDS(struct request, goroutines, "gG")},
    {'t', "task", "N,...", "the regions of these tasks, one by one",
     TO_IDS(struct request, tasks, "")},
    {'m', "members", NULL, "all regions, one by one", TO_FLAG(struct request, members)},
    LENGTHS_ROWS(struct request, lengths),
    GROUPS_ROWS(struct request, view),
    ANALYSIS_ROWS,
    {0},
};

/* MARK: Command line */

static int parse_request(struct request *request, int argc, char **argv)
{
    unsigned *what = &request->analysis.options.what;
    int code = analysis_parse(&request->analysis, argc, argv);
    bool some = request->members || request->name || request->match ||
                request->goroutines.count > 0 || request->tasks.count > 0 ||
                lengths_given(&request->lengths);
    request->members = request->analysis.json ? !request->view.json : some;
    *what = request->members ? TRAIL_ANALYZE_REGIONS : TRAIL_ANALYZE_REGION_GROUPS;
    if (!request->members)
        *what |= TRAIL_ANALYZE_DISTRIBUTIONS;
    if (request->analysis.json)
        *what |= TRAIL_ANALYZE_REGIONS;
    return code ? code : groups_check(&request->view, request->members);
}

/* MARK: Which */

static bool is_wanted(const struct request *request, const trail_region *region)
{
    trail_string name = trail_analysis_text(request->analysis.answers, region->name);
    if (request->name && !text_is(name, request->name))
        return false;
    return id_list_allows(&request->goroutines, region->goroutine) &&
           id_list_allows(&request->tasks, (int64_t)region->task);
}

/* Whether it has the requested words and duration. */
static bool is_chosen(const struct request *request, const trail_region *region)
{
    const int64_t numbers[] = {region->goroutine, (int64_t)region->task};
    return lengths_have(&request->lengths, region->times.total_ns) &&
           (!request->match ||
            match_words(trail_analysis_text(request->analysis.answers, region->name), numbers, 2,
                        request->match));
}

/* Reports that nothing matches, with the nearest name. */
static int print_none(const struct request *request)
{
    struct nearest nearest = {.word = request->name};
    if (!request->name || request->goroutines.count > 0 || request->tasks.count > 0)
        return usage_error(request->analysis.command, "no such region in the trace");
    for (size_t i = 0; i < request->count; i++)
        nearest_offer(&nearest,
                      trail_analysis_text(request->analysis.answers, request->regions[i].name));
    return usage_error(request->analysis.command, "no region '%s'%s", request->name,
                       nearest_hint(&nearest));
}

/* MARK: Numbers and medians */

static bool is_complete(const trail_region *region)
{
    return region->has_start && region->has_end;
}

/* Returns one more than the greatest name. */
static size_t name_bound(const struct request *request)
{
    size_t bound = 0;
    for (size_t i = 0; i < request->count; i++)
        if (request->regions[i].name >= bound)
            bound = (size_t)request->regions[i].name + 1;
    return bound;
}

static int by_start(const void *a, const void *b)
{
    const trail_region *r = *(const trail_region *const *)a;
    const trail_region *s = *(const trail_region *const *)b;
    return ORDER(r->start_ns, s->start_ns) ?: ORDER(r, s);
}

static int by_length(const void *a, const void *b)
{
    const trail_region *r = *(const trail_region *const *)a;
    const trail_region *s = *(const trail_region *const *)b;
    return ORDER(s->times.total_ns, r->times.total_ns) ?: ORDER(r, s);
}

/* Returns all regions, sorted, in a list that the caller frees; NULL if out of memory. */
static const trail_region **in_order(const struct request *request,
                                     int (*order)(const void *a, const void *b))
{
    const trail_region **list = calloc(request->count + 1, sizeof(void *));
    for (size_t i = 0; list && i < request->count; i++)
        list[i] = &request->regions[i];
    if (list)
        qsort(list, request->count, sizeof(void *), order);
    return list;
}

/* Returns false if out of memory. */
static bool number_regions(struct request *request)
{
    uint64_t *counts = calloc(name_bound(request) + 1, sizeof *counts);
    const trail_region **list = in_order(request, by_start);
    request->numbers = calloc(request->count + 1, sizeof *request->numbers);
    bool good = counts && list && request->numbers;
    for (size_t i = 0; good && i < request->count; i++)
        if (list[i]->has_start && !list[i]->is_inherited)
            request->numbers[list[i] - request->regions] = ++counts[list[i]->name];
    free(list);
    free(counts);
    return good;
}

struct median {
    uint64_t complete, longer;
    const trail_region *region; /* NULL: none is complete */
};

/*
 * Returns, by name, the median of the complete regions, the shorter of the two middle ones if their
 * number is even; the caller frees it. NULL if out of memory.
 */
static struct median *find_medians(const struct request *request)
{
    struct median *medians = calloc(name_bound(request) + 1, sizeof *medians);
    const trail_region **list = in_order(request, by_length);
    for (size_t i = 0; medians && list && i < request->count; i++)
        medians[list[i]->name].complete += is_complete(list[i]);
    for (size_t i = 0; medians && list && i < request->count; i++) {
        struct median *median = &medians[list[i]->name];
        if (is_complete(list[i]) && median->longer++ == median->complete / 2)
            median->region = list[i];
    }
    if (!list) {
        free(medians);
        medians = NULL;
    }
    free(list);
    return medians;
}

/* MARK: Output */

static void put_region(struct row *row, const void *of)
{
    const struct request *request = (const struct request *)row->analysis;
    const trail_region *region = of;
    row_id(row, "{task_column}>", "goroutine", region->goroutine);
    row_plain(row, "task>", "task", region->task);
    row_name(row, NULL, "name", region->name);
    if (row->json)
        row_number(row, NULL, "number", request->numbers[region - request->regions]);
    row_time_or(row, "start>", "start_ns", region->start_ns, region->has_start, "before");
    row_time(row, NULL, "end_ns", region->end_ns);
    row_duration(row, "total>", NULL, region->times.total_ns);
    groups_put_times(row, &region->times);
    row_text(row, "region<", NULL,
             region->is_inherited ? text_from("(inherited)")
                                  : analysis_text(row->analysis, region->name));
}

/* Prints the groups, each with its median. Returns EXIT_GOOD or, if out of memory, EXIT_INOUT. */
static int json_groups(struct request *request, const trail_group *groups, size_t count)
{
    struct median *medians = find_medians(request);
    if (!medians)
        return exit_no_memory();
    struct json json = analysis_json_begin(&request->analysis);
    json_open(&json, "groups", '[');
    for (size_t i = 0; i < count; i++) {
        const trail_region *median = medians[groups[i].name].region;
        json_open(&json, NULL, '{');
        analysis_json_group(&request->analysis, &json, &groups[i]);
        if (median)
            row_json(&request->analysis, &json, "median", put_region, median);
        else
            json_null(&json, "median");
        json_close(&json, '}');
    }
    json_close(&json, ']');
    analysis_json_end(&json);
    free(medians);
    return EXIT_GOOD;
}

/* Prints the command that shows the first region of the table. */
static void show_first(const struct request *request, const trail_region *region)
{
    const trail_analysis_span *span = &request->analysis.span;
    int64_t begin = region->has_start ? region->start_ns : span->begin_ns;
    int64_t end = region->has_end ? region->end_ns : span->end_ns;
    char command[FOLLOW_UP_SIZE];
    printf("\nthe first of these:\n  %s\n",
           follow_up_of(&request->analysis, region->goroutine, begin, end - begin, command));
}

/* Prints the command for the critical path of the longest region of a name: the first name that has
 * one. */
static void show_why(const struct request *request, const trail_group *groups, size_t count)
{
    const trail_group *longest = NULL;
    char name[FOLLOW_UP_SIZE], file[FOLLOW_UP_SIZE];
    for (size_t i = 0; i < count; i++)
        if (groups[i].name && (!longest || groups[i].times.total_ns > longest->times.total_ns))
            longest = &groups[i];
    if (!longest)
        return;
    printf("\nwhat the longest of one name waited for:\n  trail why --region=%s %s\n",
           shell_name(trail_analysis_text(request->analysis.answers, longest->name), name),
           follow_up_file(&request->analysis, file));
}

static int by_column(const void *a, const void *b, void *column)
{
    trail_column by = *(const trail_column *)column;
    const trail_region *r = *(const trail_region *const *)a;
    const trail_region *s = *(const trail_region *const *)b;
    int64_t x = trail_times_column(&r->times, by), y = trail_times_column(&s->times, by);
    return ORDER(y, x) ?: ORDER(r->start_ns, s->start_ns);
}

static void show_list(const struct request *request, const trail_region *const *list, size_t wanted)
{
    size_t shown = groups_shown(&request->view, wanted);
    if (request->analysis.json) {
        groups_json_list(&request->view, "regions", put_region, list, wanted);
    } else if (wanted == 0) {
        fputs(request->count > 0 ? "no region took this long, or none has these words\n"
                                 : EMPTY_REGIONS,
              stdout);
    } else {
        rows_show(&request->analysis, put_region, list, 0, wanted, shown);
        if (shown > 0)
            show_first(request, list[0]);
    }
}

static int show_regions(struct request *request)
{
    bool found = !request->name && request->goroutines.count == 0 && request->tasks.count == 0;
    bool in_sequence = request->analysis.json && !request->view.sort.given && !request->view.limit;
    size_t wanted = 0;
    const trail_region **list = calloc(request->count + 1, sizeof(void *));
    if (!list)
        return exit_no_memory();
    for (size_t i = 0; i < request->count; i++) {
        const trail_region *region = &request->regions[i];
        bool is = is_wanted(request, region);
        found = found || is;
        if (is && is_chosen(request, region))
            list[wanted++] = region;
    }
    if (!in_sequence)
        qsort_r(list, wanted, sizeof(void *), by_column, &request->view.sort.column);
    if (found)
        show_list(request, list, wanted);
    free(list);
    return found ? EXIT_GOOD : print_none(request);
}

static int show_all_groups(struct request *request)
{
    const trail_group *groups;
    size_t count = trail_analysis_region_groups(request->analysis.answers, &groups);
    if (request->analysis.json)
        return json_groups(request, groups, count);
    if (count == 0)
        fputs(EMPTY_REGIONS, stdout);
    int code = groups_show(&request->view, groups, count);
    if (count > 0 && !request->view.percentiles.given && !request->view.histogram.given) {
        struct groups_view spread = request->view;
        spread.percentiles = (struct groups_column){true, TRAIL_COLUMN_TOTAL};
        printf("\nhow long they took:\n");
        code = worse_exit(code, groups_show(&spread, groups, count));
        show_why(request, groups, count);
    }
    return code;
}

static int show(void *context)
{
    struct request *request = context;
    request->count = trail_analysis_regions(request->analysis.answers, &request->regions);
    if (request->analysis.json && !number_regions(request))
        return exit_no_memory();
    return request->members ? show_regions(request) : show_all_groups(request);
}

static int run(const struct command *command, int argc, char **argv)
{
    struct request request = {.analysis = {.command = command}};
    request.view = (struct groups_view){.analysis = &request.analysis,
                                        .one = TERM_region,
                                        .title = "region<",
                                        .sort.column = TRAIL_COLUMN_TOTAL};
    int code =
        analysis_answer(&request.analysis, parse_request(&request, argc, argv), show, &request);
    free(request.goroutines.ids);
    free(request.tasks.ids);
    free(request.numbers);
    return code;
}

const struct command command_regions = {
    COMMAND_ROW(regions),
    .synopsis = "[options] FILE",
    .details =
        "Shows, for all regions of the same name, how many there were, how long they took, and "
        "where that time went. With a name or numbers, the regions one by one.",
    .examples = "  trail regions app.trace\n"
                "  trail regions --name=parse --sort=block app.trace\n"
                "  trail regions --histogram=total app.trace\n"
                "  trail regions --json --task=7 app.trace",
    .wrapped = true,
};
