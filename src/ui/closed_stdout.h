/*
 * A closed stdout: a pipe whose reader has exited, for example `head`. This is not reported; after
 * cleaning up files and children, the command ends by SIGPIPE, as others do.
 */
#pragma once

#include <stdbool.h>

/* Whether this errno of a failed write means that stdout is closed; closed_stdout_end then ends the
 * process. */
bool closed_stdout_is(int reason);

/* Ends the process by SIGPIPE if stdout was found to be closed. */
void closed_stdout_end(void);
