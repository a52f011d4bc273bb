/*
 * What `trail --help` and `trail help` print.
 */
#pragma once

#include <stdio.h>

#include "ui/options.h"

/* Returns the sub-command with that name, hidden ones included; NULL if there is none. */
const struct command *find_command(const char *name);

/* Prints the help of trail itself. */
void help_print(FILE *to);

/*
 * `trail help WORD...`: prints the help of the command with that name, else the commands that
 * answer a question about the words, else the options with that name. Without words: the help of
 * trail. Returns EXIT_GOOD, or EXIT_USAGE after an error on stderr.
 */
int help_run(int count, char **words);
