/*
 * trail tasks: user tasks by name and one by one, with their logs and subtasks.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/match.h"
#include "base/whole.h"
#include "ui/analysis.h"
#include "ui/empty.h"
#include "ui/facts.h"
#include "ui/follow_up.h"
#include "ui/lengths.h"
#include "ui/nearest.h"
#include "ui/spark.h"
#include "ui/table.h"
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

/* Returns its duration, as far as it is in the trace. */
static int64_t duration(const struct request *request, const trail_task *task)
{
    const trail_analysis_span *span = &request->analysis.span;
    int64_t end = task->has_end ? task->end_ns : span->end_ns;
    return end - (task->has_start ? task->start_ns : span->begin_ns);
}

/* What --match looks at. */
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
    if (request->name &&
        (name.size != strlen(request->name) || memcmp(name.data, request->name, name.size) != 0))
        return false;
    for (size_t i = 0; i < request->ids.count; i++)
        if ((uint64_t)request->ids.ids[i] == task->id)
            return true;
    return request->ids.count == 0 && task->id != TRAIL_BACKGROUND_TASK;
}

/* Whether the first one, by ID, stands for what belongs to no task, such as logs: it is shown only
 * if it is asked for. */
static bool has_background(const struct request *request)
{
    return request->count > 0 && request->tasks[0].id == TRAIL_BACKGROUND_TASK;
}

/* Whether it has the words and the duration that are asked for. */
static bool is_chosen(const struct request *request, const trail_task *task)
{
    struct candidate candidate = {request, task};
    return lengths_have(&request->lengths, duration(request, task)) &&
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

static int by_duration(const void *a, const void *b, void *request)
{
    const trail_task *t = *(const trail_task *const *)a, *u = *(const trail_task *const *)b;
    int64_t x = duration(request, t), y = duration(request, u);
    if (x != y)
        return x < y ? 1 : -1;
    return t->id < u->id ? -1 : t->id > u->id;
}

/* Those that are wanted, of any of these durations. */
struct task_list {
    const trail_task **items;
    size_t count, shown;
};

/* Longest first; JSON by ID, unless it is limited. Returns false on out of memory. The caller frees
 * the items. */
static bool list_wanted(struct request *request, struct task_list *list)
{
    bool json = request->analysis.json;
    size_t limit = request->limit ? request->limit : json ? SIZE_MAX : ROWS;
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers. */
    list->items = calloc(request->count + 1, sizeof *list->items);
    if (!list->items)
        return false;
    for (size_t i = 0; i < request->count; i++) {
        const trail_task *task = &request->tasks[i];
        if (is_wanted(request, task) && is_chosen(request, task))
            list->items[list->count++] = task;
    }
    if (!json || request->limit || request->groups)
        /* NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers. */
        qsort_r(list->items, list->count, sizeof *list->items, by_duration, request);
    list->shown = list->count < limit ? list->count : limit;
    return true;
}

/* MARK: JSON */

static void json_task(const struct request *request, struct json *json, const char *key,
                      const trail_task *task)
{
    const trail_analysis *answers = request->analysis.answers;
    json_open(json, key, '{');
    json_number(json, "id", task->id);
    json_text(json, "name", trail_analysis_text(answers, task->name));
    if (task->has_parent)
        json_number(json, "parent", task->parent);
    else
        json_null(json, "parent");
    json_signed(json, "start_ns", task->start_ns);
    json_signed(json, "end_ns", task->end_ns);
    json_bool(json, "complete", is_complete(task));
    json_number(json, "region_count", task->regions);
    json_open(json, "goroutines", '[');
    for (size_t i = 0; i < task->goroutine_count; i++)
        json_signed(json, NULL, task->goroutines[i]);
    json_close(json, ']');
    json_open(json, "children", '[');
    for (size_t i = 0; i < task->child_count; i++)
        json_number(json, NULL, request->tasks[task->children[i]].id);
    json_close(json, ']');
    json_open(json, "logs", '[');
    for (uint64_t i = 0; task->logs && i < task->log_count; i++) {
        json_open(json, NULL, '{');
        json_signed(json, "time_ns", task->logs[i].time_ns);
        json_signed(json, "goroutine", task->logs[i].goroutine);
        json_text(json, "category", trail_analysis_text(answers, task->logs[i].category));
        json_text(json, "message", task->logs[i].message);
        json_close(json, '}');
    }
    json_close(json, ']');
    json_close(json, '}');
}

/* [number, type, goroutines...] */
static void json_brief(const struct request *request, struct json *json, const trail_task *task)
{
    json_open(json, NULL, '[');
    json_number(json, NULL, task->id);
    json_text(json, NULL, trail_analysis_text(request->analysis.answers, task->name));
    for (size_t i = 0; i < task->goroutine_count; i++)
        json_signed(json, NULL, task->goroutines[i]);
    json_close(json, ']');
}

static int json_tasks(struct request *request)
{
    struct task_list list = {0};
    if (!list_wanted(request, &list))
        return exit_no_memory();
    struct json json = analysis_json_begin(&request->analysis);
    json_number(&json, "all", list.count);
    json_open(&json, "tasks", '[');
    for (size_t i = 0; i < list.shown; i++)
        if (request->brief)
            json_brief(request, &json, list.items[i]);
        else
            json_task(request, &json, NULL, list.items[i]);
    json_close(&json, ']');
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
    const trail_task *median;      /* the same; of an even number, the shorter of the two */
    uint64_t longer;               /* complete tasks that were seen before the median */
    struct spark_pieces under_way; /* of tasks with a begin or an end */
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

/* Returns NULL on out of memory. Types are few. */
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
    if (x->took.sum_ns != y->took.sum_ns)
        return x->took.sum_ns < y->took.sum_ns ? 1 : -1;
    return x->name < y->name ? -1 : 1;
}

static void print_types(const struct request *request, const struct type *types, size_t count)
{
    struct table table;
    table_begin(&table, "count> incomplete> regions> logs> min> mean> p50> p95> p99> max> task<");
    for (size_t i = 0; i < count; i++) {
        table_number(&table, types[i].count);
        table_number(&table, types[i].incomplete);
        table_number(&table, types[i].regions);
        table_number(&table, types[i].logs);
        table_range(&table, &types[i].took);
        table_text(&table, analysis_text(&request->analysis, types[i].name));
    }
    table_print(&table);
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
        char *text = strndup(name.data, name.size);
        printf("%s%" PRIu64 " complete task%s: ", i ? "\n" : "", types[i].took.count,
               plural_s(types[i].took.count));
        facts_put_text(text ? text : "?");
        putchar('\n');
        table_histogram(&types[i].took);
        free(text);
    }
}

static void json_type(const struct request *request, struct json *json, const struct type *type)
{
    json_open(json, NULL, '{');
    json_text(json, "name", trail_analysis_text(request->analysis.answers, type->name));
    json_number(json, "count", type->count);
    json_number(json, "incomplete", type->incomplete);
    json_number(json, "regions", type->regions);
    json_number(json, "logs", type->logs);
    json_signed(json, "total_ns", type->took.sum_ns);
    analysis_json_histogram(json, "took", &type->took);
    if (type->median)
        json_task(request, json, "median", type->median);
    else
        json_null(json, "median");
    json_close(json, '}');
}

/* Returns false on out of memory. */
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
    json_open(&json, "groups", '[');
    for (size_t i = 0; i < types->count; i++)
        json_type(request, &json, &types->list[i]);
    json_close(&json, ']');
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
    print_types(request, types->list, shown);
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

static void put_task(const struct request *request, struct table *table, const trail_task *task)
{
    char text[32];
    int64_t origin = request->analysis.span.origin_ns;
    (void)snprintf(text, sizeof text, "%" PRIu64, task->id);
    table_word(table, text);
    (void)snprintf(text, sizeof text, "%" PRIu64, task->parent);
    table_word(table, task->has_parent ? text : "-");
    if (task->has_start)
        table_duration(table, task->start_ns - origin);
    else
        table_word(table, "before");
    table_duration(table, duration(request, task));
    table_word(table, task->has_end ? "" : "not ended");
    table_number(table, task->regions);
    table_number(table, task->log_count);
    table_number(table, task->goroutine_count);
    table_text(table, analysis_text(&request->analysis, task->name));
}

static void print_logs(const struct request *request, const trail_task *task)
{
    struct table table;
    char text[32];
    if (!task->logs || task->log_count == 0)
        return;
    printf("\nlogs of task %" PRIu64 ":\n", task->id);
    table_begin_with(&table, &request->analysis.vocabulary,
                     "time> {task_column}> category< message<");
    for (uint64_t i = 0; i < task->log_count; i++) {
        const trail_log *log = &task->logs[i];
        (void)snprintf(text, sizeof text, "%" PRId64, log->goroutine);
        table_duration(&table, log->time_ns - request->analysis.span.origin_ns);
        table_word(&table, text);
        table_text(&table, trail_analysis_text(request->analysis.answers, log->category));
        table_text(&table, log->message);
    }
    table_print(&table);
}

#define TASK_TITLES "task> parent> start> took> <  regions> logs> {tasks}> type<"

static void print_children(const struct request *request, const trail_task *task)
{
    struct table table;
    if (task->child_count == 0)
        return;
    printf("\nchildren of task %" PRIu64 ":\n", task->id);
    table_begin_with(&table, &request->analysis.vocabulary, TASK_TITLES);
    for (size_t i = 0; i < task->child_count; i++)
        put_task(request, &table, &request->tasks[task->children[i]]);
    table_print(&table);
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
    struct table table;
    table_begin_with(&table, &request->analysis.vocabulary, TASK_TITLES);
    for (size_t i = 0; i < list.shown; i++)
        put_task(request, &table, list.items[i]);
    table_print(&table);
    if (list.shown < list.count)
        printf("... and %zu more; --limit=0 shows all\n", list.count - list.shown);
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
    .options = rows,
    .run = run,
    .wrapped = true,
};
