/* Options that select goroutines; places of stacks as text. */
#include "ui/goroutine_filter.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/text.h"
#include "ui/nearest.h"
#include "words/function_name.h"
#include "words/place.h"
#include "words/wrappers.h"

trail_goroutine_filter goroutine_filter_of(const struct goroutine_filter *filter,
                                           struct analysis *analysis)
{
    if (filter->name)
        analysis->options.what |= TRAIL_ANALYZE_GROUPS;
    if (filter->goroutines.count > 0)
        analysis->options.what |= TRAIL_ANALYZE_GOROUTINES;
    return (trail_goroutine_filter){
        .name = filter->name,
        .goroutines = filter->goroutines.ids,
        .goroutine_count = filter->goroutines.count,
    };
}

size_t goroutine_index(const trail_goroutine *rows, size_t count, int64_t id)
{
    return SEARCH(i, 0, count, rows[i].id < id);
}

static int check_goroutines(const struct goroutine_filter *filter, const struct analysis *analysis)
{
    const trail_goroutine *rows;
    size_t count = trail_analysis_goroutines(analysis->answers, &rows);
    for (size_t i = 0; i < filter->goroutines.count; i++) {
        int64_t id = filter->goroutines.ids[i];
        size_t place = goroutine_index(rows, count, id);
        if (place == count || rows[place].id != id)
            return usage_error(analysis->command,
                               "no %s %" PRId64 " in the trace or window; '%s' lists them",
                               term(&analysis->vocabulary, TERM_task), id,
                               term(&analysis->vocabulary, TERM_task_command));
    }
    return EXIT_GOOD;
}

static int print_no_name(const struct goroutine_filter *filter, const struct analysis *analysis,
                         const trail_group *rows, size_t count)
{
    struct nearest nearest = {.word = filter->name};
    for (size_t i = 0; i < count; i++)
        nearest_offer(&nearest, trail_analysis_text(analysis->answers, rows[i].name));
    return usage_error(analysis->command, "no %s has the start function '%s'%s",
                       term(&analysis->vocabulary, TERM_task), filter->name,
                       nearest_hint(&nearest));
}

int goroutine_filter_check(const struct goroutine_filter *filter, const struct analysis *analysis)
{
    const trail_group *rows;
    size_t count = trail_analysis_groups(analysis->answers, &rows);
    bool found = filter->name == NULL;
    for (size_t i = 0; !found && i < count; i++)
        found = text_is(trail_analysis_text(analysis->answers, rows[i].name), filter->name);
    return found ? check_goroutines(filter, analysis)
                 : print_no_name(filter, analysis, rows, count);
}

int goroutine_filter_no_match(const char *name, const struct analysis *analysis)
{
    const struct goroutine_filter filter = {.name = name};
    int code = name ? goroutine_filter_check(&filter, analysis) : EXIT_GOOD;
    return code != EXIT_GOOD ? code
                             : usage_error(analysis->command,
                                           "no such %s in the trace or window; '%s' lists them",
                                           term(&analysis->vocabulary, TERM_task),
                                           term(&analysis->vocabulary, TERM_task_command));
}

void goroutine_filter_free(struct goroutine_filter *filter)
{
    free(filter->goroutines.ids);
}

/* MARK: Stacks */

/* Writes "main.work (main.go:42)" to `buf`. */
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

/*
 * Returns the index of the innermost frame of `a` that differs from that of `b`; the number of
 * frames if none does.
 */
static size_t first_difference(const struct analysis *analysis, trail_stack a, trail_stack b)
{
    const trail_place *x, *y;
    size_t x_count = trail_analysis_stack(analysis->answers, a, &x);
    size_t y_count = trail_analysis_stack(analysis->answers, b, &y), at = 0;
    while (at < x_count && at < y_count && x[at].function == y[at].function &&
           x[at].file == y[at].file && x[at].line == y[at].line)
        at++;
    return at;
}

void place_add_difference(const struct analysis *analysis, trail_stack stack, trail_stack other,
                          char *buf, size_t size)
{
    const trail_place *places;
    size_t count = trail_analysis_stack(analysis->answers, stack, &places);
    size_t at = first_difference(analysis, stack, other);
    size_t used = strlen(buf);
    char frame[200];
    if (at >= count || used >= size)
        return;
    frame_text(analysis, &places[at], frame, sizeof frame);
    bool is_called = at < trail_analysis_stack_own(analysis->answers, stack);
    (void)snprintf(buf + used, size - used, "%s%s", is_called ? ", calling " : " < ... < ", frame);
    (void)plain_inside(buf, size);
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
