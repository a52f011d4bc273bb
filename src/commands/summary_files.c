/* Analyses several files one after the other, and sorts them by what their first finding would gain. */
#include "commands/summary_files.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/grow.h"
#include "base/json.h"
#include "report/overview.h"
#include "ui/cli.h"
#include "ui/options.h"
#include "ui/table.h"

struct row {
    char *path, *kind, *text; /* of the first finding; NULL: none */
    double weight;
    int64_t gain_ns, length_ns, wait_ns, pause_ns, task_ns;
    int code;
    trail_error err; /* set unless `code` is EXIT_GOOD */
};

struct rows {
    struct row *list;
    size_t count, capacity;
    size_t others; /* files of a folder that are no traces */
};

void summary_files_want(trail_analysis_options *options)
{
    options->what |= TRAIL_ANALYZE_GROUPS | TRAIL_ANALYZE_MMU | TRAIL_ANALYZE_GC |
                     TRAIL_ANALYZE_ACTIVITY | TRAIL_ANALYZE_REGION_GROUPS |
                     TRAIL_ANALYZE_DISTRIBUTIONS | TRAIL_ANALYZE_FINDINGS;
    options->mmu_flags[0] = TRAIL_MMU_DEFAULT | TRAIL_MMU_CORRECTED;
}

static void row_free(struct row *row)
{
    free(row->path);
    free(row->kind);
    free(row->text);
}

/* MARK: One file */

/* Reads the file; prints nothing. Returns the exit code; `answers` are set if there are any. */
static int read_file(struct analysis *a, const char *path, trail_error *err)
{
    a->word = path;
    a->source = open_source(path, err);
    a->reader = a->source ? analysis_reader(a, a->source, err) : NULL;
    a->answers = a->reader ? trail_analysis_open(a->reader, &a->options, err) : NULL;
    if (!a->answers)
        return exit_code_of(err);
    int result = trail_analysis_run(a->answers, a->reader, err);
    analysis_speak(a);
    trail_analysis_get_span(a->answers, &a->span);
    if (result == 0)
        return EXIT_GOOD;
    if (exit_code_of(err) != EXIT_BAD || a->span.events == 0) {
        trail_analysis_close(a->answers);
        a->answers = NULL;
    }
    return exit_code_of(err);
}

static int64_t longest_wait(const trail_analysis *answers)
{
    size_t count = 0;
    struct overview_wait *waits = overview_waits(answers, false, &count);
    int64_t ns = 0;
    for (size_t i = 0; waits && i < count && !waits[i].system && !waits[i].idle; i++)
        ns = waits[i].wait->longest.ns > ns ? waits[i].wait->longest.ns : ns;
    free(waits);
    return ns;
}

static int64_t longest_task(const trail_analysis *answers)
{
    const trail_task_kind *const *kinds;
    size_t count = trail_analysis_task_kinds(answers, &kinds);
    int64_t ns = 0;
    for (size_t i = 0; i < count; i++)
        ns = kinds[i]->longest.ns > ns ? kinds[i]->longest.ns : ns;
    return ns;
}

/* Returns false on out of memory. */
static bool take_answers(const struct analysis *a, struct row *row)
{
    const trail_finding *findings;
    int64_t sum_ns;
    size_t pauses, count = trail_analysis_findings(a->answers, &findings);
    const trail_gc_pause *pause = overview_pauses(a->answers, &pauses, &sum_ns);
    row->length_ns = a->span.end_ns - a->span.begin_ns;
    row->wait_ns = longest_wait(a->answers);
    row->pause_ns = pause ? pause_length(pause) : 0;
    row->task_ns = longest_task(a->answers);
    if (count == 0)
        return true;
    row->kind = strdup(findings[0].kind);
    row->text = strdup(findings[0].text);
    row->gain_ns = findings[0].gain_ns;
    row->weight = findings[0].weight;
    return row->kind && row->text;
}

/* MARK: All files */

/* Adds the file, which is one of a folder if `listed`. Returns false on out of memory. */
static bool add_file(struct rows *rows, const struct analysis *like, const char *path, bool listed)
{
    struct analysis a = *like;
    struct row row = {0};
    row.code = read_file(&a, path, &row.err);
    bool good = !a.answers || take_answers(&a, &row);
    trail_analysis_close(a.answers);
    trail_reader_close(a.reader);
    trail_source_close(a.source);
    const bool other = good && listed && row.code != EXIT_GOOD && row.err.code == TRAIL_NOT_A_TRACE;
    rows->others += other;
    row.path = other ? NULL : strdup(path);
    if (good && row.path && GROW(rows->list, rows->capacity, rows->count + 1)) {
        rows->list[rows->count++] = row;
        return true;
    }
    row_free(&row);
    return other;
}

static bool is_folder(const char *path)
{
    struct stat of;
    return strcmp(path, "-") != 0 && stat(path, &of) == 0 && S_ISDIR(of.st_mode);
}

static bool is_file(const char *path)
{
    struct stat of;
    return stat(path, &of) == 0 && S_ISREG(of.st_mode);
}

/* Adds the regular files of a folder, but for hidden ones. Returns the exit code. */
static int add_folder(struct rows *rows, const struct analysis *like, const char *folder)
{
    struct dirent **names;
    int count = scandir(folder, &names, NULL, alphasort), code = EXIT_GOOD;
    if (count < 0) {
        print_message("cannot read %s: %m", folder);
        return EXIT_INOUT;
    }
    for (int i = 0; i < count; i++) {
        char *path = NULL;
        if (code == EXIT_GOOD && names[i]->d_name[0] != '.') {
            if (asprintf(&path, "%s/%s", folder, names[i]->d_name) < 0)
                path = NULL;
            if (!path || (is_file(path) && !add_file(rows, like, path, true)))
                code = EXIT_INOUT;
        }
        free(path);
        free(names[i]);
    }
    free(names);
    return code;
}

/* Hangs first, then by what would be gained; those that cannot be read last. */
static int by_gain(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    bool x_hangs = x->weight >= 1, y_hangs = y->weight >= 1;
    bool x_bad = x->code != EXIT_GOOD && !x->text, y_bad = y->code != EXIT_GOOD && !y->text;
    if (x_bad != y_bad)
        return x_bad ? 1 : -1;
    if (x_hangs != y_hangs)
        return x_hangs ? -1 : 1;
    if (x->gain_ns != y->gain_ns)
        return x->gain_ns > y->gain_ns ? -1 : 1;
    if (x->wait_ns != y->wait_ns)
        return x->wait_ns > y->wait_ns ? -1 : 1;
    return strcmp(x->path, y->path);
}

/* MARK: Output */

static void show_row(struct table *table, const struct row *row)
{
    char text[4096], where[200] = "", damage[TRAIL_MESSAGE_MAX + 256] = "";
    if (row->code != EXIT_GOOD) {
        (void)trail_error_where(&row->err, where, sizeof where);
        (void)snprintf(damage, sizeof damage, "%s%s%s%s%s",
                       row->code == EXIT_BAD ? "damaged: " : "cannot be read: ", row->err.message,
                       *where ? " (" : "", where, *where ? ")" : "");
    }
    (void)snprintf(text, sizeof text, "%s%s%s", damage,
                   *damage && row->text ? "; before that: " : "",
                   row->text ? row->text
                   : *damage ? ""
                             : "No known problem found");
    table_duration(table, row->gain_ns);
    table_duration(table, row->length_ns);
    table_duration(table, row->wait_ns);
    table_duration(table, row->pause_ns);
    table_duration(table, row->task_ns);
    table_word(table, row->path);
    table_word(table, text);
}

static void show_table(const struct rows *rows)
{
    struct table table;
    table_begin(&table, "gain> length> longest_wait> pause> task> file< first_finding<");
    for (size_t i = 0; i < rows->count; i++)
        show_row(&table, &rows->list[i]);
    table_print(&table);
    if (rows->others > 0)
        printf("%zu other file%s no trace%s\n", rows->others, rows->others == 1 ? " is" : "s are",
               rows->others == 1 ? "" : "s");
}

static void json_row(struct json *json, const struct row *row)
{
    json_open(json, NULL, '{');
    json_string(json, "file", row->path);
    if (row->code != EXIT_GOOD)
        json_string(json, "error", row->err.message);
    json_signed(json, "length_ns", row->length_ns);
    json_signed(json, "longest_wait_ns", row->wait_ns);
    json_signed(json, "longest_pause_ns", row->pause_ns);
    json_signed(json, "longest_task_ns", row->task_ns);
    if (row->text) {
        json_open(json, "finding", '{');
        json_string(json, "kind", row->kind);
        json_string(json, "text", row->text);
        json_real(json, "weight", row->weight);
        json_signed(json, "gain_ns", row->gain_ns);
        json_close(json, '}');
    } else {
        json_null(json, "finding");
    }
    json_close(json, '}');
}

static void show_json(const struct rows *rows)
{
    struct json json = json_on_stdout();
    json_open(&json, NULL, '{');
    json_open(&json, "files", '[');
    for (size_t i = 0; i < rows->count; i++)
        json_row(&json, &rows->list[i]);
    json_close(&json, ']');
    json_number(&json, "other_files", rows->others);
    analysis_json_end(&json);
}

bool summary_files_are(const struct options *options)
{
    return options->word_count > 1 || (options->word_count == 1 && is_folder(options->words[0]));
}

int summary_files_show(const struct analysis *analysis, const struct options *options)
{
    struct rows rows = {0};
    int code = EXIT_GOOD;
    for (int i = 0; i < options->word_count && code == EXIT_GOOD; i++) {
        const char *word = options->words[i];
        code = is_folder(word)                          ? add_folder(&rows, analysis, word)
               : add_file(&rows, analysis, word, false) ? EXIT_GOOD
                                                        : EXIT_INOUT;
    }
    if (rows.count > 0)
        qsort(rows.list, rows.count, sizeof *rows.list, by_gain);
    if (analysis->json)
        show_json(&rows);
    else if (rows.count > 0)
        show_table(&rows);
    else if (code == EXIT_GOOD)
        puts("No file there is a trace.");
    for (size_t i = 0; i < rows.count; i++) {
        code = worse_exit(code, rows.list[i].code);
        row_free(&rows.list[i]);
    }
    free(rows.list);
    return code;
}

void summary_files_findings(const char *path, size_t most)
{
    struct analysis a = {0};
    const trail_finding *findings;
    trail_error err;
    summary_files_want(&a.options);
    (void)read_file(&a, path, &err);
    size_t count = a.answers ? trail_analysis_findings(a.answers, &findings) : 0;
    if (a.answers && count == 0)
        fputs("  no known problem found\n", stderr);
    for (size_t i = 0; i < count && i < most; i++)
        show_error_line("  * %s", findings[i].text);
    trail_analysis_close(a.answers);
    trail_reader_close(a.reader);
    trail_source_close(a.source);
}
