/*
 * A closed stdout: a pipe whose reader has gone, as `head` does when it has seen enough. That is not
 * reported; when files and children are cleaned up the command ends by SIGPIPE, as others do.
 */
#ifndef TRAIL_UI_CLOSED_STDOUT_H
#define TRAIL_UI_CLOSED_STDOUT_H

#include <stdbool.h>

/* Whether a write that failed with this errno failed for that; closed_stdout_end then has effect. */
bool closed_stdout_is(int reason);

/* Ends the process by SIGPIPE if stdout was found to be closed. */
void closed_stdout_end(void);

#endif
