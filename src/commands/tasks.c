/*
 * trail tasks: user tasks by name and one by one, with their logs and subtasks.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/match.h"
#include "base/order.h"
#include "base/text.h"
#include "base/whole.h"
#include "ui/empty.h"
#include "ui/facts.h"
#include "ui/follow_up.h"
#include "ui/lengths.h"
#include "ui/nearest.h"
#include "ui/rows.h"
#include "ui/spark.h"
#include "ui/values.h"

enum { ROWS = 30 };

struct request {
    struct analysis analysis;
    const char *name, *match;
    struct id_list ids;
    struct lengths lengths;
    bool members, groups, histogram, brief;
    size_t limit; /* SIZE_MAX: all; 0: not given */
    const trail_task *tasks;
    size_t count;
};

static const struct option rows[] = {
    {0, "name", "TYPE", "the tasks of this type, one by one", TO_TEXT(struct request, name)},
    {0, "match", "WORDS",
     "those whose type, number or goroutines contain all these words, and no -word; one by one",
     TO_TEXT(struct request, match)},
    {'t', "task", "N,...", "these tasks, with their logs and children",
     TO_IDS(struct request, ids, "")},
    {'m', "members", NULL, "all tasks, one by one, longest first",
     TO_FLAG(struct request, members)},
    LENGTHS_ROWS(struct request, lengths),
    {0, "groups", NULL, "with --json: by type, instead of one by one",
     TO_FLAG(struct request, groups)},
    {0, "brief", NULL, "with --json: of each task its number, its type and its goroutines only",
     TO_FLAG(struct request, brief)},
    {'n', "limit", "N", "at most N rows (default 30; 0: all)", TO_LIMIT(struct request, limit),
     .expects = "a number"},
    {0, "histogram", NULL, "a histogram of how long the tasks of each type took",
     TO_FLAG(struct request, histogram)},
    ANALYSIS_ROWS,
    {0},
};

static int parse_request(struct request *request, int argc, char **argv)
{
    int code = analysis_parse(&request->analysis, argc, argv);
    request->analysis.options.what = TRAIL_ANALYZE_TASKS;
    request->members = request->members || request->name || request->match ||
                       request->ids.count > 0 || lengths_given(&request->lengths);
    if (request->ids.count > 0 || (request->analysis.json && !request->brief))
        request->analysis.options.what |= TRAIL_ANALYZE_LOGS;
    return code;
}

/* MARK: Which */

static bool is_complete(const trail_task *task)
{
    return task->has_start && task->has_end;
}

/* Returns the part of its duration that is in the trace. */
static int64_t duration(const struct analysis *analysis, const trail_task *task)
{
    const trail_analysis_span *span = &analysis->span;
    int64_t end = task->has_end ? task->end_ns : span->end_ns;
    return end - (task->has_start ? task->start_ns : span->begin_ns);
}

/* What --match examines. */
struct candidate {
    const struct request *request;
    const trail_task *task;
};

static bool has_word(const void *context, const char *word)
{
    const struct candidate *candidate = context;
    const trail_task *task = candidate->task;
    for (size_t i = 0; i < task->goroutine_count; i++)
        if (match_number(task->goroutines[i], word))
            return true;
    return match_number((int64_t)task->id, word) ||
           match_part(trail_analysis_text(candidate->request->analysis.answers, task->name), word);
}

static bool is_wanted(const struct request *request, const trail_task *task)
{
    trail_string name = trail_analysis_text(request->analysis.answers, task->name);
    if (request->name && !text_is(name, request->name))
        return false;
    return id_list_allows(&request->ids, (int64_t)task->id) &&
           (request->ids.count > 0 || task->id != TRAIL_BACKGROUND_TASK);
}

/* Whether the first task, by ID, stands for everything outside of tasks, such as logs: it is shown
 * only on request. */
static bool has_background(const struct request *request)
{
    return request->count > 0 && request->tasks[0].id == TRAIL_BACKGROUND_TASK;
}

/* Whether it has the requested words and duration. */
static bool is_chosen(const struct request *request, const trail_task *task)
{
    struct candidate candidate = {request, task};
    return lengths_have(&request->lengths, duration(&request->analysis, task)) &&
           (!request->match || match_all(request->match, has_word, &candidate));
}

static int print_none(const struct request *request)
{
    struct nearest nearest = {.word = request->name};
    bool background = has_background(request);
    if (request->count == background)
        return usage_error(request->analysis.command, "no tasks in the trace");
    if (!request->name)
        return usage_error(request->analysis.command,
                           "no such task; those in the trace are from %" PRIu64 " to %" PRIu64,
                           request->tasks[background].id, request->tasks[request->count - 1].id);
    for (size_t i = 0; i < request->count; i++)
        nearest_offer(&nearest,
                      trail_analysis_text(request->analysis.answers, request->tasks[i].name));
    return usage_error(request->analysis.command, "no task '%s'%s", request->name,
                       nearest_hint(&nearest));
}

static int by_duration(const void *a, const void *b, void *analysis)
{
    const trail_task *t = *(const trail_task *const *)a, *u = *(const trail_task *const *)b;
    int64_t x = duration(analysis, t), y = duration(analysis, u);
    return ORDER(y, x) ?: ORDER(t->id, u->id);
}

/* The requested tasks whose durations are in one of these ranges. */
struct task_list {
    const trail_task **items;
    size_t count, shown;
};

/* Longest first; JSON by ID, unless limited. Returns false if out of memory. The caller frees the
 * items. */
static bool list_wanted(struct request *request, struct task_list *list)
{
    bool json = request->analysis.json;
    size_t limit = request->limit ? request->limit : json ? SIZE_MAX : ROWS;
    list->items = calloc(request->count + 1, sizeof(void *));
    if (!list->items)
        return false;
    for (size_t i = 0; i < request->count; i++) {
        const trail_task *task = &request->tasks[i];
        if (is_wanted(request, task) && is_chosen(request, task))
            list->items[list->count++] = task;
    }
    if (!json || request->limit || request->groups)
        qsort_r(list->items, list->count, sizeof(void *), by_duration, &request->analysis);
    list->shown = list->count < limit ? list->count : limit;
    return true;
}

/* MARK: Columns */

static void put_log(struct row *row, const void *of)
{
    const trail_task_log *log = of;
    row_time(row, "time>", "time_ns", log->time_ns);
    row_id(row, "{task_column}>", "goroutine", log->goroutine);
    row_text(row, "category<", "category",
             trail_analysis_text(row->analysis->answers, log->category));
    row_text(row, "message<", "message", log->message);
}

/* Writes the task's lists, in JSON. */
static void put_lists(struct row *row, const trail_task *task)
{
    const struct request *request = (const struct request *)row->analysis;
    struct json *json = row->json;
    json_open(json, "goroutines", '[');
    for (size_t i = 0; i < task->goroutine_count; i++)
        json_signed(json, NULL, task->goroutines[i]);
    json_close(json, ']');
    json_open(json, "children", '[');
    for (size_t i = 0; i < task->child_count; i++)
        json_number(json, NULL, request->tasks[task->children[i]].id);
    json_close(json, ']');
    rows_json(row->analysis, json, "logs", put_log, task->logs, sizeof *task->logs,
              task->logs ? task->log_count : 0);
}

static void put_task(struct row *row, const void *of)
{
    const trail_task *task = of;
    row_plain(row, "task>", "id", task->id);
    row_name(row, NULL, "name", task->name);
    if (task->has_parent)
        row_plain(row, "parent>", "parent", task->parent);
    else
        row_none(row, "parent>", "parent");
    row_time_or(row, "start>", "start_ns", task->start_ns, task->has_start, "before");
    row_time(row, NULL, "end_ns", task->end_ns);
    row_duration(row, "took>", NULL, duration(row->analysis, task));
    row_word(row, "<", NULL, task->has_end ? "" : "not ended");
    row_bool(row, "complete", is_complete(task));
    row_number(row, "regions>", "region_count", task->regions);
    row_number(row, "logs>", NULL, task->log_count);
    row_number(row, "{tasks}>", NULL, task->goroutine_count);
    row_name(row, "type<", NULL, task->name);
    if (row->json)
        put_lists(row, task);
}

/* [number, type, goroutines...] */
static void json_brief(const struct request *request, struct json *json,
                       const struct task_list *list)
{
    json_open(json, "tasks", '[');
    for (size_t i = 0; i < list->shown; i++) {
        const trail_task *task = list->items[i];
        json_open(json, NULL, '[');
        json_number(json, NULL, task->id);
        json_text(json, NULL, trail_analysis_text(request->analysis.answers, task->name));
        for (size_t n = 0; n < task->goroutine_count; n++)
            json_signed(json, NULL, task->goroutines[n]);
        json_close(json, ']');
    }
    json_close(json, ']');
}

static int json_tasks(struct request *request)
{
    struct task_list list = {0};
    if (!list_wanted(request, &list))
        return exit_no_memory();
    struct json json = analysis_json_begin(&request->analysis);
    json_number(&json, "all", list.count);
    if (request->brief)
        json_brief(request, &json, &list);
    else
        rows_json(&request->analysis, &json, "tasks", put_task, list.items, 0, list.shown);
    analysis_json_end(&json);
    free(list.items);
    return EXIT_GOOD;
}

/* MARK: By type */

static int64_t length_of(const trail_task *task)
{
    return task->end_ns - task->start_ns;
}

/* All tasks of a type; the complete ones are in the histogram. */
struct type {
    trail_name name;
    uint64_t count, incomplete, regions, logs;
    trail_histogram took;
    const trail_task *longest;     /* among complete tasks; NULL: none */
    const trail_task *median;      /* the same; if their number is even, the shorter of the two
                                    * middle ones */
    uint64_t longer;               /* complete tasks seen before the median */
    struct spark_pieces under_way; /* of tasks that have a begin or an end */
};

static void cover(const struct request *request, struct type *type, const trail_task *task)
{
    const trail_analysis_span *span = &request->analysis.span;
    if (type->count == 0)
        spark_begin(&type->under_way, span->begin_ns, span->end_ns);
    if (task->has_start || task->has_end)
        spark_cover(&type->under_way, task->has_start ? task->start_ns : span->begin_ns,
                    task->has_end ? task->end_ns : span->end_ns);
}

struct types {
    struct type *list;
    size_t count, capacity;
};

/* Returns NULL if out of memory. There are few types. */
static struct type *type_of(struct types *types, trail_name name)
{
    for (size_t i = 0; i < types->count; i++)
        if (types->list[i].name == name)
            return &types->list[i];
    if (!GROW(types->list, types->capacity, types->count + 1))
        return NULL;
    types->list[types->count] = (struct type){.name = name};
    return &types->list[types->count++];
}

static bool add_task(const struct request *request, struct types *types, const trail_task *task)
{
    struct type *type = type_of(types, task->name);
    if (!type)
        return false;
    cover(request, type, task);
    type->count++;
    type->incomplete += !is_complete(task);
    type->regions += task->regions;
    type->logs += task->log_count;
    if (is_complete(task) && (!type->longest || length_of(task) > length_of(type->longest)))
        type->longest = task;
    return !is_complete(task) || trail_histogram_add(&type->took, length_of(task));
}

static int by_sum(const void *a, const void *b)
{
    const struct type *x = a, *y = b;
    return ORDER(y->took.sum_ns, x->took.sum_ns) ?: ORDER(x->name, y->name);
}

static void put_type(struct row *row, const void *of)
{
    const struct type *type = of;
    row_name(row, NULL, "name", type->name);
    row_number(row, "count>", "count", type->count);
    row_number(row, "incomplete>", "incomplete", type->incomplete);
    row_number(row, "regions>", "regions", type->regions);
    row_number(row, "logs>", "logs", type->logs);
    row_duration(row, NULL, "total_ns", type->took.sum_ns);
    row_range(row, "took", &type->took);
    row_name(row, "task<", NULL, type->name);
    if (row->json && type->median)
        row_json(row->analysis, row->json, "median", put_task, type->median);
    else
        row_none(row, NULL, "median");
}

/* Prints the commands that show the longest task; NULL: none. */
static void print_longest(const struct request *request, const trail_task *task)
{
    char file[FOLLOW_UP_SIZE];
    if (!task)
        return;
    (void)follow_up_file(&request->analysis, file);
    printf("\nthe longest, and what it waited for:\n  trail tasks --task=%" PRIu64
           " %s\n  trail why --task=%" PRIu64 " %s\n",
           task->id, file, task->id, file);
}

/* Prints how many were in progress at once; a full column is the maximum of all types. */
static void print_over_time(const struct request *request, const struct type *types, size_t count)
{
    const trail_analysis_span *span = &request->analysis.span;
    double most = 0, length = (double)(span->end_ns - span->begin_ns);
    char text[SHOW_SIZE];
    for (size_t i = 0; i < count; i++)
        for (size_t n = 0; n < SPARK_WIDTH; n++) {
            double share = (double)types[i].under_way.ns[n];
            most = share > most ? share : most;
        }
    if (most == 0)
        return;
    printf("\nunder way, over %s:\n", show_duration(text, whole_of(length)));
    for (size_t i = 0; i < count; i++) {
        struct spark spark = spark_of(&types[i].under_way);
        double sum = 0;
        for (size_t n = 0; n < SPARK_WIDTH; n++)
            sum += (double)types[i].under_way.ns[n];
        if (sum == 0)
            continue;
        spark_line(&spark, most / (double)spark.piece_ns);
        printf(" %.2f on average: ", sum / length);
        show_plain(analysis_text(&request->analysis, types[i].name));
        putchar('\n');
    }
}

static void print_histograms(const struct request *request, const struct type *types, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        trail_string name = analysis_text(&request->analysis, types[i].name);
        printf("%s%" PRIu64 " complete task%s: ", i ? "\n" : "", types[i].took.count,
               plural_s(types[i].took.count));
        show_plain(name);
        putchar('\n');
        table_histogram(&types[i].took);
    }
}

/* Returns false if out of memory. */
static bool find_medians(struct request *request, struct types *types)
{
    struct task_list list = {0};
    if (!list_wanted(request, &list))
        return false;
    for (size_t i = 0; i < list.count; i++) {
        struct type *type = is_complete(list.items[i]) ? type_of(types, list.items[i]->name) : NULL;
        if (type && type->longer++ == type->took.count / 2)
            type->median = list.items[i];
    }
    free(list.items);
    return true;
}

static bool json_types(struct request *request, struct types *types)
{
    if (!find_medians(request, types))
        return false;
    struct json json = analysis_json_begin(&request->analysis);
    rows_json(&request->analysis, &json, "groups", put_type, types->list, sizeof *types->list,
              types->count);
    analysis_json_end(&json);
    return true;
}

static void print_all_types(const struct request *request, const struct types *types)
{
    size_t limit = request->limit ? request->limit : ROWS;
    size_t shown = types->count < limit ? types->count : limit;
    if (types->count == 0)
        return;
    if (request->histogram) {
        print_histograms(request, types->list, shown);
        return;
    }
    rows_show(&request->analysis, put_type, types->list, sizeof *types->list, types->count, limit);
    print_over_time(request, types->list, shown);
    print_longest(request, types->list[0].longest);
}

static int show_types(struct request *request)
{
    struct types types = {0};
    bool good = true;
    for (size_t i = has_background(request) ? 1 : 0; good && i < request->count; i++)
        good = add_task(request, &types, &request->tasks[i]);
    if (good && types.count > 0)
        qsort(types.list, types.count, sizeof *types.list, by_sum);
    if (good && request->analysis.json)
        good = json_types(request, &types);
    else if (good)
        print_all_types(request, &types);
    for (size_t i = 0; i < types.count; i++)
        trail_histogram_free(&types.list[i].took);
    free(types.list);
    return good ? EXIT_GOOD : exit_no_memory();
}

/* MARK: One by one */

static void print_logs(const struct request *request, const trail_task *task)
{
    if (!task->logs || task->log_count == 0)
        return;
    printf("\nlogs of task %" PRIu64 ":\n", task->id);
    rows_show(&request->analysis, put_log, task->logs, sizeof *task->logs, task->log_count,
              SIZE_MAX);
}

static void put_child(struct row *row, const void *of)
{
    const struct request *request = (const struct request *)row->analysis;
    put_task(row, &request->tasks[*(const uint32_t *)of]);
}

static void print_children(const struct request *request, const trail_task *task)
{
    if (task->child_count == 0)
        return;
    printf("\nchildren of task %" PRIu64 ":\n", task->id);
    rows_show(&request->analysis, put_child, task->children, sizeof *task->children,
              task->child_count, SIZE_MAX);
}

/* Prints further commands for a task. */
static void print_commands(const struct request *request, const trail_task *task)
{
    const trail_analysis_span *span = &request->analysis.span;
    char text[FOLLOW_UP_SIZE];
    struct goroutine_list list = {0};
    bool all = true;
    int64_t begin = task->has_start ? task->start_ns : span->begin_ns;
    int64_t end = task->has_end ? task->end_ns : span->end_ns;
    for (size_t i = 0; i < task->goroutine_count && all; i++)
        all = goroutine_list_add(&list, task->goroutines[i]);
    struct follow_up follow_up = {list.size ? list.text : NULL, begin - span->origin_ns,
                                  end - begin, true};
    printf("\nits regions, what it waited for, and its %s%s:\n",
           term(&request->analysis.vocabulary, TERM_tasks), all ? "" : " (the first of them)");
    (void)follow_up_file(&request->analysis, text);
    printf("  trail regions --task=%" PRIu64 " %s\n", task->id, text);
    printf("  trail why --task=%" PRIu64 " %s\n", task->id, text);
    printf("  %s\n", follow_up_print(&request->analysis, &follow_up, text));
}

static int show_tasks(struct request *request)
{
    struct task_list list = {0};
    if (!list_wanted(request, &list))
        return exit_no_memory();
    if (list.count == 0) {
        printf("no task took this long, or none has these words\n");
        free(list.items);
        return EXIT_GOOD;
    }
    rows_show(&request->analysis, put_task, list.items, 0, list.count, list.shown);
    for (size_t i = 0; i < list.shown && request->ids.count > 0; i++) {
        print_logs(request, list.items[i]);
        print_children(request, list.items[i]);
        print_commands(request, list.items[i]);
    }
    if (list.shown > 0 && request->ids.count == 0)
        print_longest(request, list.items[0]);
    free(list.items);
    return EXIT_GOOD;
}

static int show(void *context)
{
    struct request *request = context;
    bool found = !request->name && request->ids.count == 0;
    request->count = trail_analysis_tasks(request->analysis.answers, &request->tasks);
    for (size_t i = 0; i < request->count && !found; i++)
        found = is_wanted(request, &request->tasks[i]);
    if (!found)
        return print_none(request);
    if (request->analysis.json)
        return request->groups && !request->members ? show_types(request) : json_tasks(request);
    if (request->count == has_background(request) && request->ids.count == 0) {
        fputs(EMPTY_TASKS, stdout);
        return EXIT_GOOD;
    }
    return request->members ? show_tasks(request) : show_types(request);
}

static int run(const struct command *command, int argc, char **argv)
{
    struct request request = {.analysis = {.command = command}};
    int code =
        analysis_answer(&request.analysis, parse_request(&request, argc, argv), show, &request);
    free(request.ids.ids);
    return code;
}

const struct command command_tasks = {
    COMMAND_ROW(tasks),
    .synopsis = "[options] FILE",
    .details =
        "Shows, for all tasks of the same type, how many there were and how long they took. With "
        "a type, the tasks one by one; with numbers, also their logs and children.",
    .examples = "  trail tasks app.trace\n"
                "  trail tasks --name=request --limit=10 app.trace\n"
                "  trail tasks --task=7 app.trace\n"
                "  trail tasks --json app.trace | jq '.tasks[] | select(.complete | not)'",
    .wrapped = true,
};
