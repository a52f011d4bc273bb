/*
 * Confines a process that reads files of other users: it can read files, and answer on one
 * descriptor. It cannot write a file, start a program, connect, or signal another process; its
 * memory is limited, its death leaves no core file. With servers of debug information
 * (DEBUGINFOD_URLS), which libdw asks itself, only the last two hold.
 */
#pragma once

#include <stdbool.h>

enum { CONFINE_FD = 0 };

/* Whether this build limits memory and system calls: not with sanitizers, which need both. */
extern const bool confine_filters;

/*
 * Confines the calling process; `fd` becomes CONFINE_FD, and all other descriptors are closed.
 * Blocks signals, so that Ctrl-C ends its parent only. Returns false if the descriptors cannot be
 * arranged. A kernel without seccomp filters does not limit system calls.
 */
bool confine(int fd);
