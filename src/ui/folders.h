/* Folders that are created for output, and removed if it is not written. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The created folders, outer before inner. Zero-initialised: empty. */
struct folders {
    char **made;
    size_t count, capacity;
};

/* Creates a folder and its parents. Returns EXIT_GOOD, or EXIT_INOUT after a message. */
int folders_make(struct folders *folders, const char *path);

/* Frees the list; unless `stay`, removes those of its folders that are empty. */
void folders_end(struct folders *folders, bool stay);
