#include "ui/who.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "words/function_name.h"
#include "words/place.h"
#include "words/wrappers.h"

int who_option(struct who *who, struct analysis *analysis, int id, const char *value)
{
    switch (id) {
    case WHO_NAME:
        who->name = value;
        return EXIT_GOOD;
    case WHO_GOROUTINE:
        return ids_option(analysis->command, value, "gG", &who->goroutines);
    default:
        return analysis_option(analysis, id, value);
    }
}

trail_goroutine_filter who_wanted(const struct who *who, struct analysis *analysis)
{
    if (who->name)
        analysis->options.what |= TRAIL_ANALYZE_GROUPS;
    if (who->goroutines.count > 0)
        analysis->options.what |= TRAIL_ANALYZE_GOROUTINES;
    return (trail_goroutine_filter){
        .name = who->name,
        .goroutines = who->goroutines.ids,
        .goroutine_count = who->goroutines.count,
    };
}

size_t who_place(const trail_goroutine *rows, size_t count, int64_t id)
{
    return SEARCH(i, 0, count, rows[i].id < id);
}

static int check_goroutines(const struct who *who, const struct analysis *analysis)
{
    const trail_goroutine *rows;
    size_t count = trail_analysis_goroutines(analysis->answers, &rows);
    for (size_t i = 0; i < who->goroutines.count; i++) {
        int64_t id = who->goroutines.ids[i];
        size_t place = who_place(rows, count, id);
        if (place == count || rows[place].id != id)
            return usage_error(analysis->command,
                               "no %s %" PRId64 " in the trace or window; '%s' lists them",
                               term(&analysis->vocabulary, TERM_task), id,
                               term(&analysis->vocabulary, TERM_task_command));
    }
    return EXIT_GOOD;
}

static int tell_no_name(const struct who *who, const struct analysis *analysis,
                        const trail_group *rows, size_t count)
{
    const char **names = calloc(count + 1, sizeof *names);
    char *texts = NULL;
    size_t size = 0, used = 0;
    for (size_t i = 0; i < count; i++)
        size += trail_analysis_text(analysis->answers, rows[i].name).size + 1;
    texts = malloc(size + 1);
    for (size_t i = 0; names && texts && i < count; i++) {
        trail_string text = trail_analysis_text(analysis->answers, rows[i].name);
        names[i] = texts + used;
        memcpy(texts + used, text.data, text.size);
        texts[used + text.size] = '\0';
        used += text.size + 1;
    }
    const char *nearest = names && texts ? nearest_word(who->name, names) : NULL;
    int code =
        nearest ? usage_error(analysis->command, "no %s began in '%s'; did you mean '%s'?",
                              term(&analysis->vocabulary, TERM_task), who->name, nearest)
                : usage_error(analysis->command, "no %s began in '%s'; '%s' lists where they began",
                              term(&analysis->vocabulary, TERM_task), who->name,
                              term(&analysis->vocabulary, TERM_task_command));
    free((void *)names);
    free(texts);
    return code;
}

int who_check(const struct who *who, const struct analysis *analysis)
{
    const trail_group *rows;
    size_t count = trail_analysis_groups(analysis->answers, &rows);
    bool found = who->name == NULL;
    for (size_t i = 0; !found && i < count; i++) {
        trail_string text = trail_analysis_text(analysis->answers, rows[i].name);
        found = text.size == strlen(who->name) && memcmp(text.data, who->name, text.size) == 0;
    }
    return found ? check_goroutines(who, analysis) : tell_no_name(who, analysis, rows, count);
}

int who_nobody(const char *name, const struct analysis *analysis)
{
    const struct who who = {.name = name};
    int code = name ? who_check(&who, analysis) : EXIT_GOOD;
    return code != EXIT_GOOD ? code
                             : usage_error(analysis->command,
                                           "no such %s in the trace or window; '%s' lists them",
                                           term(&analysis->vocabulary, TERM_task),
                                           term(&analysis->vocabulary, TERM_task_command));
}

void who_free(struct who *who)
{
    free(who->goroutines.ids);
}

/* MARK: Stacks */

/* "main.work (main.go:42)" into `buf`. */
static void frame_text(const struct analysis *analysis, const trail_place *place, char *buf,
                       size_t size)
{
    trail_string name = trail_analysis_text(analysis->answers, place->function);
    trail_string file = trail_analysis_text(analysis->answers, place->file);
    if (name.size == 0)
        (void)snprintf(buf, size, "0x%" PRIx64, place->pc);
    else
        (void)place_of_frame(name, file, place->line, PLACE_PARENTHESES, buf, size);
}

size_t place_caller(const struct analysis *analysis, trail_stack stack)
{
    const trail_place *places;
    size_t count = trail_analysis_stack(analysis->answers, stack, &places);
    size_t at = trail_analysis_stack_own(analysis->answers, stack) + 1;
    for (; at < count; at++) {
        trail_string name = trail_analysis_text(analysis->answers, places[at].function);
        trail_string file = trail_analysis_text(analysis->answers, places[at].file);
        if (frame_is_go(file) ||
            frame_rank(analysis->options.skip_frames, name, file) > FRAME_WRAPPER)
            break;
    }
    return at < count ? at : count;
}

const char *place_text(const struct analysis *analysis, trail_stack stack, char *buf, size_t size)
{
    const trail_place *places;
    size_t count = trail_analysis_stack(analysis->answers, stack, &places);
    if (count == 0) {
        (void)snprintf(buf, size, "(no stack)");
        return buf;
    }
    size_t own = trail_analysis_stack_own(analysis->answers, stack);
    frame_text(analysis, &places[own], buf, size);
    size_t used = strlen(buf);
    size_t by = place_caller(analysis, stack);
    if (by < count) {
        char short_name[FUNCTION_NAME_SIZE];
        trail_string caller =
            function_name_short(analysis_text(analysis, places[by].function), short_name);
        (void)snprintf(buf + used, size - used, " < %.*s",
                       (int)(caller.size < 100 ? caller.size : 100), caller.data);
    }
    return plain_inside(buf, size);
}

void place_show(const struct analysis *analysis, trail_stack stack, unsigned indent)
{
    const trail_place *places;
    size_t count = trail_analysis_stack(analysis->answers, stack, &places);
    for (size_t i = 0; i < count; i++) {
        printf("%*s", (int)indent, "");
        show_plain(analysis_text(analysis, places[i].function));
        trail_string file = trail_analysis_text(analysis->answers, places[i].file);
        if (file.size > 0)
            putchar(' ');
        show_plain(file);
        if (places[i].line > 0)
            printf(":%" PRIu64, places[i].line);
        putchar('\n');
    }
}

void place_json(const struct analysis *analysis, struct json *json, const char *key,
                trail_stack stack)
{
    const trail_place *places;
    size_t count = trail_analysis_stack(analysis->answers, stack, &places);
    json_open(json, key, '[');
    for (size_t i = 0; i < count; i++) {
        json_open(json, NULL, '{');
        json_text(json, "function", trail_analysis_text(analysis->answers, places[i].function));
        json_text(json, "file", trail_analysis_text(analysis->answers, places[i].file));
        json_number(json, "line", places[i].line);
        json_close(json, '}');
    }
    json_close(json, ']');
}
