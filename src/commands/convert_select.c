#include "commands/convert_select.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <trail/analyze.h>

#include "base/text.h"
#include "ui/goroutine_filter.h"
#include "ui/nearest.h"
#include "wire/merged_ids.h"

/* MARK: The command line */

bool selection_is_some(const struct selection *s)
{
    return s->goroutines.count + s->tasks.count + s->name_count + s->task_name_count > 0;
}

int selection_name(const struct command *command, void *selection, const char *value)
{
    struct selection *s = selection;
    if (s->name_count == SELECT_MOST)
        return usage_error(command, "more than %d names", SELECT_MOST);
    s->names[s->name_count++] = value;
    return EXIT_GOOD;
}

int selection_task(const struct command *command, void *selection, const char *value)
{
    struct selection *s = selection;
    int64_t id;
    if (parse_id(value, "", &id))
        return parse_id_list(value, "", &s->tasks) ? EXIT_GOOD : EXIT_INOUT;
    if (s->task_name_count == SELECT_MOST)
        return usage_error(command, "more than %d names of tasks", SELECT_MOST);
    s->task_names[s->task_name_count++] = value;
    return EXIT_GOOD;
}

void selection_free(struct selection *s)
{
    free(s->goroutines.ids);
    free(s->tasks.ids);
}

/* MARK: Finding */

enum { NAME_SIZE = 4096, PROGRAM_SIZE = 512 };

struct finder {
    const struct selection *selection;
    const struct command *command;
    trail_analysis *answers;
    const trail_goroutine *goroutines;
    size_t goroutine_count;
    const trail_task *tasks;
    size_t task_count;
    bool *wanted; /* per goroutine */
};

static bool want(struct finder *f, int64_t id)
{
    size_t i = goroutine_index(f->goroutines, f->goroutine_count, id);
    if (i == f->goroutine_count || f->goroutines[i].id != id)
        return false;
    f->wanted[i] = true;
    return true;
}

static int want_number(struct finder *f, int64_t id)
{
    size_t i = goroutine_index(f->goroutines, f->goroutine_count, id);
    if (want(f, id))
        return EXIT_GOOD;
    if (f->goroutine_count == 0)
        return usage_error(f->command, "no goroutine %" PRId64, id);
    if (i == f->goroutine_count ||
        (i > 0 && id - f->goroutines[i - 1].id < f->goroutines[i].id - id))
        i--;
    return usage_error(f->command, "no goroutine %" PRId64 "; the nearest is %" PRId64, id,
                       f->goroutines[i].id);
}

static const char *text_of(const struct finder *f, trail_name name, char *buf, size_t size)
{
    trail_string text = trail_analysis_text(f->answers, name);
    (void)snprintf(buf, size, "%.*s", (int)(text.size < size ? text.size : size - 1), text.data);
    return buf;
}

static bool matches(const char *pattern, const char *text)
{
    return strcmp(pattern, text) == 0 || fnmatch(pattern, text, 0) == 0;
}

static bool is_of_block(const struct finder *f, size_t i, uint64_t block)
{
    return i < f->goroutine_count && id_block(f->goroutines[i].id) == block;
}

/*
 * Writes "web: " to `buf` for the program whose block begins with goroutine `first` of a merged
 * trace; "" if the trace has only one program.
 */
static void find_program(const struct finder *f, size_t first, char *buf, size_t size)
{
    uint64_t block = id_block(f->goroutines[first].id);
    bool merged = !is_of_block(f, 0, block) || !is_of_block(f, f->goroutine_count - 1, block);
    *buf = '\0';
    for (size_t i = first; merged && !*buf && is_of_block(f, i, block); i++) {
        char *colon = strstr(text_of(f, f->goroutines[i].name, buf, size), ": ");
        buf[colon ? colon + 2 - buf : 0] = '\0';
    }
}

/* In a merged trace, names of Go's runtime lack their program's name, but can be selected with
 * it. */
static bool matches_with(const char *pattern, const char *program, const char *name)
{
    char text[PROGRAM_SIZE + NAME_SIZE];
    if (!*program || !*name || strstr(name, ": "))
        return false;
    (void)snprintf(text, sizeof text, "%s%s", program, name);
    return matches(pattern, text);
}

static int want_named(struct finder *f, const char *pattern)
{
    char text[NAME_SIZE] = "", program[PROGRAM_SIZE] = "";
    struct nearest nearest = {.word = pattern};
    bool found = false;
    trail_name last = 0;
    bool last_matches = matches(pattern, "");
    for (size_t i = 0; i < f->goroutine_count; i++) {
        const trail_goroutine *g = &f->goroutines[i];
        bool begins = i == 0 || !is_of_block(f, i - 1, id_block(g->id));
        if (begins)
            find_program(f, i, program, sizeof program);
        if (g->name != last || begins) {
            last = g->name;
            text_of(f, g->name, text, sizeof text);
            last_matches = matches(pattern, text) || matches_with(pattern, program, text);
            nearest_offer(&nearest, text_from(text));
        }
        f->wanted[i] |= last_matches;
        found |= last_matches;
    }
    return found ? EXIT_GOOD
                 : usage_error(f->command, "no goroutine has the start function '%s'%s", pattern,
                               nearest_hint(&nearest));
}

/* Selects goroutines that took part in a task or its subtasks. */
static bool want_task(struct finder *f, size_t first)
{
    size_t *pile = calloc(f->task_count, sizeof *pile), height = 0;
    bool *seen = calloc(f->task_count, sizeof *seen), good = pile && seen;
    if (good) {
        pile[height++] = first;
        seen[first] = true;
    }
    while (height > 0) {
        const trail_task *task = &f->tasks[pile[--height]];
        for (size_t i = 0; i < task->goroutine_count; i++)
            (void)want(f, task->goroutines[i]);
        for (size_t i = 0; i < task->child_count; i++)
            if (!seen[task->children[i]]) {
                seen[task->children[i]] = true;
                pile[height++] = task->children[i];
            }
    }
    free(pile);
    free(seen);
    return good;
}

static int want_task_number(struct finder *f, int64_t id)
{
    for (size_t i = 0; i < f->task_count; i++)
        if (f->tasks[i].id == (uint64_t)id)
            return want_task(f, i) ? EXIT_GOOD : EXIT_INOUT;
    return usage_error(f->command, "no task %" PRId64, id);
}

static int want_task_named(struct finder *f, const char *name)
{
    char text[NAME_SIZE];
    struct nearest nearest = {.word = name};
    bool found = false, good = true;
    for (size_t i = 0; i < f->task_count && good; i++) {
        if (matches(name, text_of(f, f->tasks[i].name, text, sizeof text))) {
            found = true;
            good = want_task(f, i);
        }
        nearest_offer(&nearest, text_from(text));
    }
    if (!good)
        return EXIT_INOUT;
    return found ? EXIT_GOOD
                 : usage_error(f->command, "no task '%s'%s", name, nearest_hint(&nearest));
}

static int want_all(struct finder *f)
{
    const struct selection *s = f->selection;
    int code = EXIT_GOOD;
    for (size_t i = 0; i < s->goroutines.count && code == EXIT_GOOD; i++)
        code = want_number(f, s->goroutines.ids[i]);
    for (size_t i = 0; i < s->name_count && code == EXIT_GOOD; i++)
        code = want_named(f, s->names[i]);
    for (size_t i = 0; i < s->tasks.count && code == EXIT_GOOD; i++)
        code = want_task_number(f, s->tasks.ids[i]);
    for (size_t i = 0; i < s->task_name_count && code == EXIT_GOOD; i++)
        code = want_task_named(f, s->task_names[i]);
    return code;
}

/* MARK: Reading */

static int no_memory(void)
{
    print_message("no memory for a list of goroutines");
    return EXIT_INOUT;
}

/* Finds the selected goroutines. */
static int find_wanted(struct finder *f, int64_t **ids, size_t *count)
{
    f->goroutine_count = trail_analysis_goroutines(f->answers, &f->goroutines);
    f->task_count = trail_analysis_tasks(f->answers, &f->tasks);
    f->wanted = calloc(f->goroutine_count + 1, sizeof *f->wanted);
    int64_t *found = calloc(f->goroutine_count + 1, sizeof *found);
    int code = f->wanted && found ? want_all(f) : no_memory();
    *count = 0;
    for (size_t i = 0; code == EXIT_GOOD && i < f->goroutine_count; i++)
        if (f->wanted[i])
            found[(*count)++] = f->goroutines[i].id;
    free(f->wanted);
    *ids = found;
    return code;
}

static int find_first(struct finder *f, trail_reader *reader, int64_t **ids, size_t *count)
{
    trail_analysis_options what = {.what = TRAIL_ANALYZE_GOROUTINES | TRAIL_ANALYZE_TASKS};
    trail_error err;
    f->answers = trail_analysis_open(reader, &what, &err);
    if (!f->answers)
        return no_memory();
    /* Other errors are reported by the conversion. */
    bool memory = trail_analysis_run(f->answers, reader, &err) == 0 || err.code != TRAIL_NO_MEMORY;
    int code = memory ? find_wanted(f, ids, count) : no_memory();
    trail_analysis_close(f->answers);
    return code;
}

/* Opens the trace again. */
static trail_reader *open_again(struct input *input, const trail_reader_options *options,
                                trail_source **source, int *code)
{
    trail_error err;
    trail_reader_options whole = *options;
    whole.from_ns = 0;
    *source = input_open(input, &err);
    trail_reader *reader = *source ? trail_reader_open(*source, &whole, &err) : NULL;
    *code = reader ? EXIT_GOOD : print_error(input->word, &err);
    return reader;
}

int selection_find(const struct selection *selection, const struct command *command,
                   struct input *input, const trail_reader_options *options, int64_t **ids,
                   size_t *count)
{
    struct finder finder = {.selection = selection, .command = command};
    trail_source *source;
    trail_error err;
    int64_t *first = NULL;
    size_t first_count = 0;
    int code;
    trail_reader *reader = open_again(input, options, &source, &code);
    if (reader)
        code = find_first(&finder, reader, &first, &first_count);
    trail_reader_close(reader);
    trail_source_close(source);
    *ids = NULL;
    if (code == EXIT_GOOD) {
        reader = open_again(input, options, &source, &code);
        err = no_error();
        if (reader && trail_convert_related(reader, first, first_count, ids, count, &err) < 0 &&
            err.code == TRAIL_NO_MEMORY)
            code = no_memory();
        trail_reader_close(reader);
        trail_source_close(source);
    }
    free(first);
    return code;
}
