/*
 * Conditions of `trail record --snapshot-if`:
 *
 *     task[:NAME] > TIME
 *     region[:NAME] > TIME
 *     wait[:KIND] > TIME
 *     lock > TIME
 *
 * NAME may be in double quotes; KIND is one of wire/wait_kinds.def. Without KIND, `wait` covers all
 * kinds except waits for work, and `lock` covers waits for locks that other threads hold.
 */
#pragma once

#include "collect/recorder_state.h"
#include "ui/cli.h"

/* Zero-initialised: none. The limits own their names. */
struct record_slow {
    struct slow_limit *limits;
    const char **texts; /* the conditions, valid as long as argv */
    size_t count;
};

/* Parses a condition and adds it to the struct record_slow. Returns EXIT_GOOD, or EXIT_USAGE after
 * a message. */
int record_slow_add(const struct command *command, void *slow, const char *text);

/*
 * Returns EXIT_GOOD if all conditions can be met by what is recorded with these options; otherwise
 * EXIT_USAGE after a message.
 */
int record_slow_check(const struct record_slow *slow, const struct command *command,
                      const struct recorder_options *options);

/* Prints that a snapshot was written or, if the path is NULL, that there was no room for it. */
void record_slow_print(const struct slow_event *event, const char *path);

/* Prints how many slow events had no snapshot because of the limits on snapshots. */
void record_slow_print_left_out(const struct recorder *recorder);

void record_slow_free(struct record_slow *slow);
