/*
 * Filters for stdout and stderr where these are terminals; base/terminal.h describes what passes.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

/* Installs filters for stdout and stderr, if they are terminals. */
void terminal_guard(void);

/* From now on lines of stdout are wrapped, if it is a terminal or the variable COLUMNS is set. */
void terminal_wrap(void);

/* Stops wrapping unless stdout is a terminal: what follows is for programs. */
void terminal_unwrap(void);

/* Whether stdout shows colours: a terminal, unless the variable NO_COLOR is set. */
bool terminal_colours(void);

/* Writes control sequences of trail itself to stdout or stderr. */
void terminal_control(FILE *to, const char *controls);

/* Removes the filter of stdout, after its last flush. Returns false with errno set on error. */
bool terminal_end(void);
