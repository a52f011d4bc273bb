/*
 * trail diff: the same figures of two traces side by side, and conditions on how they changed.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/text.h"
#include "base/whole.h"
#include "commands/diff_check.h"
#include "ui/nearest.h"
#include "ui/rows.h"
#include "ui/values.h"

/* As in diff(1), and one for a damaged trace. */
enum { DIFF_SAME = 0, DIFF_MET = 1, DIFF_DAMAGED = 4 };

/* What remains of a trace after its analysis is closed. */
struct side {
    const char *word;
    int64_t duration_ns;
    uint64_t events, goroutines;
    double divisor; /* for rows that are normalised */
};

/* --per */
struct per {
    bool second;
    const char *task; /* the type */
};

struct diff_conditions {
    struct diff_condition *list;
    size_t count;
};

struct request {
    struct analysis common; /* the options; never run */
    struct side sides[2];
    struct per per;
    size_t limit;
    struct diff_conditions conditions;
    struct diff_rows rows;
};

/* MARK: Command line */

static int add_condition(const struct command *command, void *member, const char *text)
{
    struct diff_conditions *conditions = member;
    struct diff_condition *grown =
        reallocarray(conditions->list, conditions->count + 1, sizeof *grown);
    if (!grown)
        return usage_error(command, "no memory");
    conditions->list = grown;
    return diff_condition_parse(&grown[conditions->count++], command, text);
}

static int parse_per(const struct command *command, void *member, const char *value)
{
    struct per *per = member;
    per->second = strcmp(value, "second") == 0;
    per->task = strncmp(value, "task:", 5) == 0 ? value + 5 : NULL;
    if (per->second || per->task)
        return EXIT_GOOD;
    return usage_error(command, "--per is second or task:NAME, not '%s'", value);
}

static const struct option rows[] = {
    {0, "fail-if", "CONDITION",
     "exit with 1 if it is met: 'sched_wait.p99 > +20%', 'block.select \"main.worker\" > +5ms', "
     "'mmu.1ms < 50%'; repeatable",
     TO_PARSED(struct request, conditions, struct diff_conditions, add_condition)},
    {0, "per", "second|task:NAME",
     "sums and counts for each second of the traces, or for each task of that type that ended",
     TO_PARSED(struct request, per, struct per, parse_per)},
    {'n', "limit", "N", "at most N rows per table (default 30; 0: all)",
     TO_LIMIT(struct request, limit), .expects = "a number"},
    SKIP_FRAMES_ROW,
    ANALYSIS_ROWS,
    {0},
};

static int take_words(struct request *request, struct options *options)
{
    if (options->word_count != 2)
        return usage_error(request->common.command,
                           "two traces are needed: the one before and the one after");
    for (int i = 0; i < 2; i++)
        request->sides[i].word = options->words[i];
    if (strcmp(options->words[0], "-") == 0 && strcmp(options->words[1], "-") == 0)
        return usage_error(request->common.command, "stdin can be only one of the traces");
    options->word_count = 1;
    return analysis_words(&request->common, options);
}

static int parse_request(struct request *request, int argc, char **argv)
{
    struct options options;
    int code = options_each(&options, request->common.command, argc, argv, NULL, request);
    if (code != EXIT_GOOD)
        return code;
    request->common.options.what = DIFF_ANALYSES;
    request->common.options.mmu_flags[0] = TRAIL_MMU_DEFAULT | TRAIL_MMU_CORRECTED;
    return take_words(request, &options);
}

/* MARK: Reading */

/* Returns how many tasks of the type ended; -1: no such type. */
static int64_t tasks_ended(const struct request *request, const struct analysis *analysis)
{
    const trail_task_kind *const *kinds;
    size_t count = trail_analysis_task_kinds(analysis->answers, &kinds);
    for (size_t i = 0; i < count; i++) {
        if (text_is(analysis_text(analysis, kinds[i]->name), request->per.task))
            return (int64_t)kinds[i]->ended;
    }
    return -1;
}

static int unknown_task(const struct request *request, const struct analysis *analysis)
{
    const trail_task_kind *const *kinds;
    struct nearest nearest = {.word = request->per.task};
    size_t count = trail_analysis_task_kinds(analysis->answers, &kinds);
    for (size_t i = 0; i < count; i++)
        nearest_offer(&nearest, trail_analysis_text(analysis->answers, kinds[i]->name));
    return usage_error(request->common.command, "no task '%s' in %s%s", request->per.task,
                       source_title(analysis->word), nearest_hint(&nearest));
}

static int find_divisor(const struct request *request, const struct analysis *analysis,
                        struct side *side)
{
    side->divisor = 1;
    if (request->per.second && side->duration_ns > 0)
        side->divisor = (double)side->duration_ns / 1e9;
    if (!request->per.task)
        return EXIT_GOOD;
    int64_t ended = tasks_ended(request, analysis);
    if (ended < 0)
        return unknown_task(request, analysis);
    if (ended == 0)
        return usage_error(request->common.command, "no task '%s' ended in %s", request->per.task,
                           source_title(analysis->word));
    side->divisor = (double)ended;
    return EXIT_GOOD;
}

/* Uses the vocabulary of both traces, or Go's if they differ. */
static void choose_words(struct request *request, const struct analysis *analysis, int i)
{
    struct vocabulary *both = &request->common.vocabulary;
    if (i == 0)
        *both = analysis->vocabulary;
    else if (memcmp(both, &analysis->vocabulary, sizeof *both) != 0)
        vocabulary_init(both, NULL, TRAIL_WORDS_GO);
}

/* Reads one of the traces; only its rows are kept. */
static int read_side(struct request *request, int i)
{
    struct side *side = &request->sides[i];
    struct analysis analysis = request->common;
    analysis.word = side->word;
    analysis.skip_frames = NULL; /* owned by request->common */
    int code = analysis_run(&analysis);
    if (code == EXIT_BAD)
        code = DIFF_DAMAGED;
    if (analysis.answers) {
        choose_words(request, &analysis, i);
        side->duration_ns = analysis.span.end_ns - analysis.span.begin_ns;
        side->events = analysis.span.events;
        side->goroutines = analysis.span.goroutines;
        code = worse_exit(code, find_divisor(request, &analysis, side));
        diff_rows_collect(&request->rows, &analysis, i);
    } else if (code == DIFF_DAMAGED) {
        print_message("nothing to compare with");
    }
    bool there = analysis.answers;
    analysis_close(&analysis);
    return there || code != DIFF_DAMAGED ? code : -DIFF_DAMAGED;
}

/* MARK: Order */

/* Whether it is an integer that a double holds exactly. */
static bool is_whole(double value)
{
    return fabs(value) < 9007199254740992.0 && (double)whole_of(value) == value;
}

static double size_of_change(const struct diff_row *row)
{
    return fabs(row->of[1].value - row->of[0].value);
}

/* Orders by scope; within a scope, times before counts, the greatest change first. */
static int by_change(const void *a, const void *b)
{
    const struct diff_row *x = a, *y = b;
    return ORDER(x->scope, y->scope) ?: ORDER(x->unit, y->unit) ?:
           ORDER(size_of_change(y), size_of_change(x)) ?: strcmp(x->name, y->name) ?:
           strcmp(x->path, y->path);
}

/* MARK: JSON */

static void json_figure(struct json *json, const char *key, double value)
{
    if (is_whole(value))
        json_signed(json, key, whole_of(value));
    else
        json_real(json, key, value);
}

static void json_measure(struct json *json, const char *key, const struct diff_measure *m)
{
    if (!m->there) {
        json_null(json, key);
        return;
    }
    json_open(json, key, '{');
    json_figure(json, "value", m->value);
    if (m->spread) {
        json_figure(json, "count", m->count);
        json_figure(json, "p50", m->p50);
        json_figure(json, "p99", m->p99);
        json_figure(json, "max", m->max);
    }
    json_close(json, '}');
}

static const char *unit_name(enum diff_unit unit)
{
    static const char *const names[] = {"ns", "count", "bytes", "share"};
    return names[unit];
}

static void put_side(struct row *row, const void *of)
{
    const struct side *side = of;
    row_word(row, NULL, "file", side->word);
    row_duration(row, NULL, "duration_ns", side->duration_ns);
    row_number(row, NULL, "goroutines", side->goroutines);
    row_number(row, NULL, "events", side->events);
    json_figure(row->json, "divisor", side->divisor);
}

static void put_condition(struct row *row, const void *of)
{
    const struct diff_condition *c = of;
    row_word(row, NULL, "condition", c->text);
    row_bool(row, "met", c->met);
    json_figure(row->json, "a", c->a);
    json_figure(row->json, "b", c->b);
}

static void put_metric(struct row *row, const void *of)
{
    static const char *const scopes[] = {"whole", "goroutines", "tasks", "regions", "locks"};
    const struct diff_row *metric = of;
    char figure[DIFF_FIGURE_SIZE];
    row_word(row, NULL, "of", scopes[metric->scope]);
    row_word(row, NULL, "metric", metric->path);
    row_word(row, NULL, "figure", diff_figure(metric, &row->analysis->vocabulary, figure));
    row_word(row, NULL, "name", metric->name);
    row_word(row, NULL, "unit", unit_name(metric->unit));
    json_measure(row->json, "a", &metric->of[0]);
    json_measure(row->json, "b", &metric->of[1]);
    json_figure(row->json, "change", metric->of[1].value - metric->of[0].value);
}

static void show_json(const struct request *request)
{
    const struct diff_conditions *conditions = &request->conditions;
    struct json json = json_on_stdout();
    json_open(&json, NULL, '{');
    row_json(&request->common, &json, "a", put_side, &request->sides[0]);
    row_json(&request->common, &json, "b", put_side, &request->sides[1]);
    rows_json(&request->common, &json, "metrics", put_metric, request->rows.rows,
              sizeof *request->rows.rows, request->rows.count);
    rows_json(&request->common, &json, "conditions", put_condition, conditions->list,
              sizeof *conditions->list, conditions->count);
    analysis_json_end(&json);
}

/* MARK: For people */

/* Formats a figure in its unit; `sign`: as a change. */
static const char *figure(char *buf, enum diff_unit unit, double value, bool sign)
{
    char text[SHOW_SIZE], *at = buf;
    double size = fabs(value);
    if (sign || value < 0)
        *at++ = value < 0 ? '-' : '+';
    size_t left = SHOW_SIZE - 1;
    if (unit == DIFF_NS)
        (void)snprintf(at, left, "%s", show_duration(text, whole_of(size + 0.5)));
    else if (unit == DIFF_BYTES)
        (void)snprintf(at, left, "%s", show_bytes(text, (uint64_t)whole_of(size + 0.5)));
    else if (unit == DIFF_SHARE)
        (void)snprintf(at, left, sign ? "%.1f points" : "%.1f %%", size * 100);
    else if (is_whole(size))
        (void)snprintf(at, left, "%s", show_thousands(text, (uint64_t)whole_of(size)));
    else
        (void)snprintf(at, left, "%.3g", size);
    return buf;
}

static void put_figure(struct table *table, enum diff_unit unit, double value)
{
    char buf[SHOW_SIZE];
    table_word(table, value == 0 ? "-" : figure(buf, unit, value, false));
}

/* Prints a value, which may be a share of 0; nothing if the trace has none. */
static void put_value(struct table *table, enum diff_unit unit, const struct diff_measure *measure)
{
    char buf[SHOW_SIZE];
    if (unit == DIFF_SHARE && measure->there)
        table_word(table, figure(buf, unit, measure->value, false));
    else
        put_figure(table, unit, measure->value);
}

/* "new" and "gone" mark a row that one of the traces lacks; a value of 0 is not missing. */
static const char *percent(char *buf, const struct diff_measure of[2])
{
    double a = of[0].value, b = of[1].value, ratio = diff_ratio(a, b);
    if (a == b)
        (void)snprintf(buf, SHOW_SIZE, "%s", "-");
    else if (!isfinite(ratio))
        (void)snprintf(buf, SHOW_SIZE, "%s", of[0].there ? "from 0" : "new");
    else if (!of[1].there)
        (void)snprintf(buf, SHOW_SIZE, "%s", "gone");
    else
        (void)snprintf(buf, SHOW_SIZE, "%+.1f %%", ratio * 100);
    return buf;
}

static void put_metric_cells(struct table *table, const struct vocabulary *words,
                             const struct diff_row *row)
{
    char buf[SHOW_SIZE], text[DIFF_FIGURE_SIZE];
    double a = row->of[0].value, b = row->of[1].value;
    put_value(table, row->unit, &row->of[0]);
    put_value(table, row->unit, &row->of[1]);
    table_word(table, a == b ? "-" : figure(buf, row->unit, b - a, true));
    table_word(table, percent(buf, row->of));
    for (enum diff_field field = DIFF_P50; field < DIFF_FIELDS; field++)
        for (int i = 0; i < 2; i++)
            put_figure(table, row->unit, diff_field_of(&row->of[i], field));
    table_word(table, diff_figure(row, words, text));
    if (row->scope != DIFF_WHOLE)
        table_word(table, row->name);
    table_word(table, row->path);
}

/* Rows of single groups are left out if they only repeat a total. */
static bool is_shown(const struct diff_row *row, enum diff_scope scope)
{
    bool sum = strcmp(row->path, "total") == 0 || strcmp(row->path, "block") == 0;
    return row->scope == scope && !(scope == DIFF_GOROUTINES && sum) && diff_row_changed(row);
}

/* Prints the rows of one scope that changed. */
static size_t show_scope(const struct request *request, enum diff_scope scope)
{
    static const char *const titles[DIFF_SCOPES] = {
        "the whole trace:", ", by start function:", "tasks, by type:", "regions, by name:",
        "locks:"};
    struct table table;
    char columns[160];
    size_t changed = 0;
    (void)snprintf(columns, sizeof columns,
                   "A> B> change> %%> p50_A> p50_B> p99_A> p99_B> max_A> max_B> figure<%s metric<",
                   scope == DIFF_WHOLE ? "" : " of<");
    table_begin(&table, columns);
    for (size_t i = 0; i < request->rows.count; i++) {
        const struct diff_row *row = &request->rows.rows[i];
        if (is_shown(row, scope) && changed++ < request->limit)
            put_metric_cells(&table, &request->common.vocabulary, row);
    }
    if (changed == 0) {
        table_drop(&table);
        return 0;
    }
    printf("\n%s%s\n",
           scope == DIFF_GOROUTINES ? term(&request->common.vocabulary, TERM_tasks) : "",
           titles[scope]);
    table_print(&table);
    if (changed > request->limit)
        printf("... and %zu more; --limit=0 shows all\n", changed - request->limit);
    return changed;
}

static void show_sides(const struct request *request)
{
    char duration[SHOW_SIZE], goroutines[SHOW_SIZE], events[SHOW_SIZE];
    for (int i = 0; i < 2; i++) {
        const struct side *side = &request->sides[i];
        show_line("%c: %s: %s, %s %s, %s event%s", 'A' + i, source_title(side->word),
                  show_duration(duration, side->duration_ns),
                  show_thousands(goroutines, side->goroutines),
                  term_count(&request->common.vocabulary, side->goroutines, TERM_task),
                  show_thousands(events, side->events), plural_s(side->events));
    }
    if (request->per.second)
        printf("sums and counts are per second\n");
    if (request->per.task)
        show_line("sums and counts are per task %s: %.0f in A, %.0f in B", request->per.task,
                  request->sides[0].divisor, request->sides[1].divisor);
}

static void show_conditions(const struct request *request)
{
    char a[SHOW_SIZE], b[SHOW_SIZE], change[SHOW_SIZE];
    for (size_t i = 0; i < request->conditions.count; i++) {
        const struct diff_condition *c = &request->conditions.list[i];
        const struct diff_measure of[2] = {{.there = true, .value = c->a},
                                           {.there = true, .value = c->b}};
        if (i == 0)
            putchar('\n');
        show_line("%s: %s: %s became %s (%s)", c->met ? "MET" : "not met", c->text,
                  figure(a, c->unit, c->a, false), figure(b, c->unit, c->b, false),
                  c->a == c->b ? "no change" : percent(change, of));
    }
}

static void show(const struct request *request)
{
    size_t changed = 0;
    show_sides(request);
    for (enum diff_scope scope = DIFF_WHOLE; scope < DIFF_SCOPES; scope++)
        changed += show_scope(request, scope);
    if (changed == 0)
        printf("nothing changed\n");
    show_conditions(request);
}

/* MARK: Running */

static int compare(struct request *request)
{
    int code = EXIT_GOOD;
    for (int i = 0; i < 2; i++) {
        int of_side = read_side(request, i);
        if (of_side != EXIT_GOOD && of_side != DIFF_DAMAGED)
            return of_side < 0 ? -of_side : of_side;
        code = worse_exit(code, of_side);
    }
    const double factors[2] = {1 / request->sides[0].divisor, 1 / request->sides[1].divisor};
    if (!diff_rows_join(&request->rows))
        return print_output_error("no memory for the comparison", 0);
    diff_rows_scale(&request->rows, factors);
    bool met = false;
    for (size_t i = 0; i < request->conditions.count; i++) {
        struct diff_condition *c = &request->conditions.list[i];
        int wrong = diff_condition_decide(c, request->common.command, &request->rows);
        if (wrong)
            return wrong;
        met |= c->met;
    }
    qsort(request->rows.rows, request->rows.count, sizeof *request->rows.rows, by_change);
    if (request->common.json)
        show_json(request);
    else
        show(request);
    return worse_exit(code, met ? DIFF_MET : DIFF_SAME);
}

static int run(const struct command *command, int argc, char **argv)
{
    struct request request = {.common = {.command = command}, .limit = 30};
    int code = parse_request(&request, argc, argv);
    if (code == EXIT_GOOD)
        code = compare(&request);
    for (size_t i = 0; i < request.conditions.count; i++)
        diff_condition_free(&request.conditions.list[i]);
    free(request.conditions.list);
    diff_rows_free(&request.rows);
    skip_frames_free(request.common.skip_frames);
    return code;
}

const struct command command_diff = {
    COMMAND_ROW(diff),
    .synopsis = "[options] A B",
    .details =
        "Shows the same figures of two traces side by side, the greatest change first: where "
        "goroutines' time went, by start function, and how it spread; tasks, regions and locks; "
        "garbage collection and utilisation. What did not change is left out.\n\n"
        "A condition is METRIC [\"NAME\"] <|<=|>|>= VALUE. METRIC is a value of the tables' "
        "last column, with .count, .p50, .p99 or .max appended; NAME is a value of the column "
        "'of'. With "
        "a sign the value is a change (+20%, +5ms, -10), without it is B's value (5ms, 64M, "
        "10).\n\n"
        "Exit status: 0 no condition is met, 1 one is, 2 the command line is wrong or names "
        "something in neither trace, 3 cannot read, 4 a trace is damaged.",
    .examples = "  trail diff before.trace after.trace\n"
                "  trail diff --per=task:request before.trace after.trace\n"
                "  trail diff --fail-if='sched_wait.p99 > +20%' --fail-if='stw.max > 5ms' A B\n"
                "  trail diff --json A B | jq '.metrics[] | select(.name == \"main.worker\")'",
    .wrapped = true,
};
