/*
 * Which goroutines `trail convert` keeps: those selected by ID, start function or task, and those
 * that interact with them.
 */
#ifndef TRAIL_COMMANDS_CONVERT_SELECT_H
#define TRAIL_COMMANDS_CONVERT_SELECT_H

#include "ui/cli.h"
#include "ui/input.h"
#include "ui/values.h"

#define SELECT_MOST 64 /* names of each kind */

/* Zero-initialised selects all. */
struct selection {
    struct id_list goroutines, tasks;
    const char *names[SELECT_MOST], *task_names[SELECT_MOST];
    size_t name_count, task_name_count;
};

bool selection_is_some(const struct selection *selection);

/* Each takes the value of an option. Returns EXIT_GOOD or EXIT_USAGE. */
int selection_goroutine(struct selection *selection, const struct command *command,
                        const char *value);
int selection_name(struct selection *selection, const struct command *command, const char *value);
int selection_task(struct selection *selection, const struct command *command, const char *value);

/*
 * Reads the trace, opened by `input` as often as necessary, and sets *ids to the selected
 * goroutines, ascending, to be freed by the caller. Returns EXIT_GOOD, or another code after a
 * message; errors of the trace itself are not reported.
 */
int selection_find(const struct selection *selection, const struct command *command,
                   struct input *input, const trail_reader_options *options, int64_t **ids,
                   size_t *count);

void selection_free(struct selection *selection);

#endif
