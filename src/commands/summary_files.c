/* Analyses several files one after the other, and sorts them by what their first finding would
 * gain. */
#include "commands/summary_files.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/json.h"
#include "base/order.h"
#include "diagnose/gains.h"
#include "report/overview.h"
#include "ui/cli.h"
#include "ui/folder_files.h"
#include "ui/options.h"
#include "ui/rows.h"
#include "words/gain.h"

struct file {
    char *path, *kind, *heading, *text; /* of the first finding; NULL: none */
    const char *nothing;                /* what is said without one */
    double weight;
    int64_t bound_ns, gain_ns, length_ns, wait_ns, pause_ns, task_ns;
    int code;
    trail_error err; /* set unless `code` is EXIT_GOOD */
};

struct files {
    const struct analysis *like; /* each file is analysed as this asks */
    struct file *list;
    size_t count, capacity;
    size_t others; /* files in a folder that are not traces */
};

void summary_files_want(trail_analysis_options *options)
{
    options->what |= TRAIL_ANALYZE_ALL_FINDINGS;
    options->mmu_flags[0] = TRAIL_MMU_OF_FINDINGS;
}

static void file_free(struct file *file)
{
    free(file->path);
    free(file->kind);
    free(file->heading);
    free(file->text);
}

/* MARK: One file */

/* Reads the file without printing. Returns the exit code; `answers` are set if there are any. */
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

/* Returns false if out of memory. */
static bool take_answers(const struct analysis *a, struct file *file)
{
    const trail_finding *findings;
    trail_activity activity;
    int64_t sum_ns;
    size_t pauses;
    if (!gains_add(a->answers))
        return false;
    size_t count = trail_analysis_findings(a->answers, &findings);
    const trail_gc_pause *pause = overview_pauses(a->answers, &pauses, &sum_ns);
    file->length_ns = a->span.end_ns - a->span.begin_ns;
    file->wait_ns = longest_wait(a->answers);
    file->pause_ns = pause ? pause_length(pause) : 0;
    file->task_ns = longest_task(a->answers);
    trail_analysis_activity(a->answers, &activity);
    file->nothing = overview_nothing(&activity);
    if (count == 0)
        return true;
    file->kind = strdup(findings[0].kind);
    file->heading = strdup(findings[0].heading);
    file->text = strdup(findings[0].text);
    file->bound_ns = findings[0].gain_ns;
    file->gain_ns = gain_ns(&findings[0]);
    file->weight = findings[0].weight;
    return file->kind && file->heading && file->text;
}

/* MARK: All files */

/* Adds the file; `listed` if it was found in a folder. Returns false if out of memory. */
static bool add_file(struct files *files, const char *path, bool listed)
{
    struct analysis a = *files->like;
    struct file file = {0};
    file.code = read_file(&a, path, &file.err);
    bool good = !a.answers || take_answers(&a, &file);
    trail_analysis_close(a.answers);
    trail_reader_close(a.reader);
    trail_source_close(a.source);
    const bool other =
        good && listed && file.code != EXIT_GOOD && file.err.code == TRAIL_NOT_A_TRACE;
    files->others += other;
    file.path = other ? NULL : strdup(path);
    if (good && file.path && GROW(files->list, files->capacity, files->count + 1)) {
        files->list[files->count++] = file;
        return true;
    }
    file_free(&file);
    return other;
}

static int take_listed(void *files, const char *path)
{
    return add_file(files, path, true) ? EXIT_GOOD : EXIT_INOUT;
}

/* Hangs first, then by gain; unreadable files last. */
static int by_gain(const void *a, const void *b)
{
    const struct file *x = a, *y = b;
    bool x_hangs = x->weight >= 1, y_hangs = y->weight >= 1;
    bool x_bad = x->code != EXIT_GOOD && !x->text, y_bad = y->code != EXIT_GOOD && !y->text;
    return ORDER(x_bad, y_bad) ?: ORDER(y_hangs, x_hangs) ?: ORDER(y->gain_ns, x->gain_ns) ?:
           ORDER(y->wait_ns, x->wait_ns) ?: strcmp(x->path, y->path);
}

/* MARK: Output */

/* Prints its damage and its first finding. */
static void put_finding(struct row *row, const struct file *file)
{
    char text[4096], where[200] = "", damage[TRAIL_MESSAGE_MAX + 256] = "";
    if (file->code != EXIT_GOOD) {
        (void)trail_error_where(&file->err, where, sizeof where);
        (void)snprintf(damage, sizeof damage, "%s%s%s%s%s",
                       file->code == EXIT_BAD ? "damaged: " : "cannot be read: ", file->err.message,
                       *where ? " (" : "", where, *where ? ")" : "");
    }
    (void)snprintf(text, sizeof text, "%s%s%s", damage,
                   *damage && file->text ? "; before that: " : "",
                   file->text ? file->heading
                   : *damage  ? ""
                              : file->nothing);
    row_word(row, "first_finding<", NULL, text);
}

static void json_finding(struct json *json, const struct file *file)
{
    if (!file->text) {
        json_null(json, "finding");
        return;
    }
    json_open(json, "finding", '{');
    json_string(json, "kind", file->kind);
    json_string(json, "text", file->text);
    json_real(json, "weight", file->weight);
    json_signed(json, "gain_ns", file->bound_ns);
    json_close(json, '}');
}

static void put_file(struct row *row, const void *of)
{
    const struct file *file = of;
    row_duration(row, "gain>", "gain_ns", file->gain_ns);
    row_word(row, NULL, "file", file->path);
    if (file->code != EXIT_GOOD)
        row_word(row, NULL, "error", file->err.message);
    row_duration(row, "length>", "length_ns", file->length_ns);
    row_duration(row, "longest_wait>", "longest_wait_ns", file->wait_ns);
    row_duration(row, "pause>", "longest_pause_ns", file->pause_ns);
    row_duration(row, "task>", "longest_task_ns", file->task_ns);
    row_word(row, "file<", NULL, file->path);
    if (row->json)
        json_finding(row->json, file);
    else
        put_finding(row, file);
}

static void show_table(const struct analysis *analysis, const struct files *files)
{
    rows_show(analysis, put_file, files->list, sizeof *files->list, files->count, SIZE_MAX);
    if (files->others > 0)
        printf("%zu other file%s no trace%s\n", files->others, files->others == 1 ? " is" : "s are",
               plural_s(files->others));
}

static void show_json(const struct analysis *analysis, const struct files *files)
{
    struct json json = json_on_stdout();
    json_open(&json, NULL, '{');
    rows_json(analysis, &json, "files", put_file, files->list, sizeof *files->list, files->count);
    json_number(&json, "other_files", files->others);
    analysis_json_end(&json);
}

bool summary_files_are(const struct options *options)
{
    return options->word_count > 1 || (options->word_count == 1 && is_folder(options->words[0]));
}

int summary_files_show(const struct analysis *analysis, const struct options *options)
{
    struct files files = {.like = analysis};
    int code = EXIT_GOOD;
    for (int i = 0; i < options->word_count && code == EXIT_GOOD; i++) {
        const char *word = options->words[i];
        code = is_folder(word)                 ? folder_each(word, take_listed, &files)
               : add_file(&files, word, false) ? EXIT_GOOD
                                               : EXIT_INOUT;
    }
    if (files.count > 0)
        qsort(files.list, files.count, sizeof *files.list, by_gain);
    if (analysis->json)
        show_json(analysis, &files);
    else if (files.count > 0)
        show_table(analysis, &files);
    else if (code == EXIT_GOOD)
        puts("No file there is a trace.");
    for (size_t i = 0; i < files.count; i++) {
        code = worse_exit(code, files.list[i].code);
        file_free(&files.list[i]);
    }
    free(files.list);
    return code;
}

void summary_files_findings(const char *path, size_t most)
{
    struct analysis a = {0};
    const trail_finding *findings;
    trail_error err;
    summary_files_want(&a.options);
    a.options.what |= GAINS_ANALYSES;
    (void)read_file(&a, path, &err);
    if (a.answers)
        (void)gains_add(a.answers);
    size_t count = a.answers ? trail_analysis_findings(a.answers, &findings) : 0;
    if (a.answers && count == 0)
        fputs("  no known problem found\n", stderr);
    for (size_t i = 0; i < count && i < most; i++) {
        show_error_line("  * %s", findings[i].heading);
        if (*findings[i].details)
            show_error_line("    %s", findings[i].details);
        if (*findings[i].remedy)
            show_error_line("    %s", findings[i].remedy);
        if (findings[i].replayed)
            show_error_line("    %s", findings[i].replayed);
    }
    trail_analysis_close(a.answers);
    trail_reader_close(a.reader);
    trail_source_close(a.source);
}
