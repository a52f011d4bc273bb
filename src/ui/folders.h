/*
 * Folders that are made for what is written, and go again if it is not.
 */
#ifndef TRAIL_UI_FOLDERS_H
#define TRAIL_UI_FOLDERS_H

#include <stdbool.h>
#include <stddef.h>

/* Those that were not there before; the outer before the inner. All zero: none. */
struct folders {
    char **made;
    size_t count, capacity;
};

/* Makes a folder, and those above it. EXIT_GOOD, or EXIT_INOUT after telling why not. */
int folders_make(struct folders *folders, const char *path);

/* Frees the list; unless they are to stay, removes those of it that are empty. */
void folders_end(struct folders *folders, bool stay);

#endif
