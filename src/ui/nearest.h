/*
 * Finds the name in a trace that a mistyped word most likely means.
 *
 *     struct nearest nearest = {.word = word};
 *     for (...)
 *         nearest_offer(&nearest, name);
 *     usage_error(command, "no task '%s'%s", word, nearest_hint(&nearest));
 */
#pragma once

#include <stdbool.h>
#include <trail/read.h>

/* Set the word; zero-initialise the rest. */
struct nearest {
    const char *word;
    bool found;
    unsigned distance;
    char name[512];
    char hint[540];
};

/* Offers one of the existing names; ignores empty ones. A name that contains the word is near. */
void nearest_offer(struct nearest *nearest, trail_string name);

/* Returns "; did you mean 'parse'?", or "" without any name. Valid as long as `nearest`. */
const char *nearest_hint(struct nearest *nearest);
