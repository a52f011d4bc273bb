/* Folders: those created for output, removed if it is not written; and the files of one. */
#ifndef TRAIL_UI_FOLDERS_H
#define TRAIL_UI_FOLDERS_H

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

/* "-" is stdin, and no folder. */
bool is_folder(const char *path);

/*
 * Calls `take` with the path of each regular file of a folder, in order of name, until it does not
 * return EXIT_GOOD; leaves out hidden files, which may be incomplete. Returns the last code of
 * `take`, or EXIT_INOUT after a message.
 */
int folder_each(const char *folder, int (*take)(void *context, const char *path), void *context);

#endif
