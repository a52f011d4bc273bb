/*
 * Which goroutines `trail convert` keeps: those asked for by number, start function or task, and those
 * that have a part in what they did.
 */
#ifndef TRAIL_COMMANDS_CONVERT_SELECT_H
#define TRAIL_COMMANDS_CONVERT_SELECT_H

#include "ui/cli.h"
#include "ui/input.h"
#include "ui/values.h"

#define SELECT_MOST 64 /* names, of each kind */

/* Zero-initialised: all. */
struct selection {
    struct id_list goroutines, tasks;
    const char *names[SELECT_MOST], *task_names[SELECT_MOST];
    size_t name_count, task_name_count;
};

bool selection_is_some(const struct selection *selection);

/* Each takes a value of an option. EXIT_GOOD or EXIT_USAGE. */
int selection_goroutine(struct selection *selection, const struct command *command,
                        const char *value);
int selection_name(struct selection *selection, const struct command *command, const char *value);
int selection_task(struct selection *selection, const struct command *command, const char *value);

/*
 * Reads the trace, to be opened by `input` as often as need be, and finds them: *ids, ascending, to be
 * freed. EXIT_GOOD, or another code after telling why not; what is wrong with the trace itself is not
 * told.
 */
int selection_find(const struct selection *selection, const struct command *command,
                   struct input *input, const trail_reader_options *options, int64_t **ids,
                   size_t *count);

void selection_free(struct selection *selection);

#endif
