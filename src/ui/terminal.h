/*
 * The guards of stdout and stderr, where these are terminals: what passes them, base/terminal.h says.
 */
#ifndef TRAIL_UI_TERMINAL_H
#define TRAIL_UI_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

/* Puts guards in front of stdout and stderr, if they are terminals. */
void terminal_guard(void);

/* Writes trail's own controls to stdout or stderr. */
void terminal_control(FILE *to, const char *controls);

/* Ends the guard of stdout, after its last flush. False with errno set. */
bool terminal_end(void);

#endif
