/*
 * Which goroutines `trail convert` keeps: those selected by ID, start function or task, and those
 * that interact with them.
 */
#pragma once

#include "ui/cli.h"
#include "ui/input.h"
#include "ui/values.h"

#define SELECT_MOST 64 /* names of each kind */

/* Zero-initialised: selects all. */
struct selection {
    struct id_list goroutines, tasks;
    const char *names[SELECT_MOST], *task_names[SELECT_MOST];
    size_t name_count, task_name_count;
};

bool selection_is_some(const struct selection *selection);

/* Options for a request that has a `selection`. */
/* clang-format off */
#define SELECTION_ROWS(request, selection)                                                         \
    {'g', "goroutine", "N,...",                                                                    \
     "only these goroutines, those that woke or created them, and garbage collection",            \
     TO_IDS(request, selection.goroutines, "gG")},                                                 \
    {0, "name", "PATTERN", "the same for goroutines with this start function: 'main.*'",           \
     TO_PARSED(request, selection, struct selection, selection_name)},                             \
    {0, "task", "N|NAME",                                                                          \
     "the same for goroutines that took part in this task, or in any task of this type",           \
     TO_PARSED(request, selection, struct selection, selection_task)}
/* clang-format on */
int selection_name(const struct command *command, void *selection, const char *value);
int selection_task(const struct command *command, void *selection, const char *value);

/*
 * Reads the trace, opened by `input` as often as necessary, and sets *ids to the selected
 * goroutines, ascending, which the caller frees. Returns EXIT_GOOD, or another code after a
 * message; errors in the trace itself are not reported.
 */
int selection_find(const struct selection *selection, const struct command *command,
                   struct input *input, const trail_reader_options *options, int64_t **ids,
                   size_t *count);

void selection_free(struct selection *selection);
