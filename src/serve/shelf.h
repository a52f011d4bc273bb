/*
 * The shelf of a trace: what the viewer computed of it, kept in a folder for the next time: the
 * lanes (timeline/kept.h) and the answers of analyses. The names of files are made of the trace's
 * file as it is (device, inode, size, times of its last change) and of all else that decides the
 * contents, so that nothing is out of date.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "serve/intake.h"

struct shelf {
    int folder;     /* of the user's own; -1: nothing is kept */
    uint64_t trace; /* of the name of each file */
};

/*
 * Returns the shelf of a trace. `variant` names whatever makes the contents besides the trace. A
 * trace that is still arriving, or is a part of a file, has none.
 */
struct shelf shelf_of(int folder, const struct intake *intake, const char *variant);

enum { SHELF_NAME = 40 };
void shelf_name(const struct shelf *shelf, const char *key, char name[SHELF_NAME]);

/* Opens a file to read, and notes that it was used. Returns -1 if there is none. */
int shelf_open(const struct shelf *shelf, const char *key);

/* Returns a kept answer, which the caller frees; NULL: there is none. */
char *shelf_take(const struct shelf *shelf, const char *key, size_t *size);

/* Keeps an answer, if that is possible. */
void shelf_put(const struct shelf *shelf, const char *key, const char *data, size_t size);
