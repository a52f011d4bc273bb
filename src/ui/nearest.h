/*
 * Of the names of a trace, the one that is most likely meant by a word that is none of them.
 *
 *     struct nearest nearest = {.word = word};
 *     for (...)
 *         nearest_offer(&nearest, name);
 *     usage_error(command, "no task '%s'%s", word, nearest_hint(&nearest));
 */
#ifndef TRAIL_UI_NEAREST_H
#define TRAIL_UI_NEAREST_H

#include <stdbool.h>
#include <trail/read.h>

/* Zero-initialised but for the word. */
struct nearest {
    const char *word;
    bool found;
    unsigned distance;
    char name[256];
    char hint[300];
};

/* One of the names there are; an empty one is none. What has the word in it is near. */
void nearest_offer(struct nearest *nearest, trail_string name);

/* "; did you mean 'parse'?", or "" if there is no name. Valid as long as `nearest`. */
const char *nearest_hint(struct nearest *nearest);

#endif
