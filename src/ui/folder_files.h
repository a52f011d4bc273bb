/* The files of a folder that a command is given instead of a file. */
#pragma once

#include <stdbool.h>

/* "-" is stdin, and no folder. */
bool is_folder(const char *path);

/*
 * Calls `take` with the path of each regular file of a folder, in order of name, until it does not
 * return EXIT_GOOD; leaves out hidden files, which may be incomplete. Returns the last code of
 * `take`, or EXIT_INOUT after a message.
 */
int folder_each(const char *folder, int (*take)(void *context, const char *path), void *context);
