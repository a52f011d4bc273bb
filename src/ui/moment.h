/*
 * The command that shows what a figure is of, to be copied: of the same file, in quotes where a
 * shell needs them, and read in the same way.
 */
#ifndef TRAIL_UI_MOMENT_H
#define TRAIL_UI_MOMENT_H

#include "ui/analysis.h"

enum { MOMENT_SIZE = 1200 }; /* of each buffer below */

/* "18,22": starts empty. */
struct goroutine_list {
    char text[300];
    size_t size;
};

/* Adds one that is not in it; false: there is no room. */
bool goroutine_list_add(struct goroutine_list *list, int64_t goroutine);

struct moment {
    const char *goroutines; /* "18,22"; NULL: all */
    int64_t from_ns, ns;    /* since the first event; how long */
    bool stacks;
};

/* "trail print --goroutine=18 --from=5ns --to=+7ns app.trace". Into `buf`, which is returned. */
const char *moment_print(const struct analysis *analysis, const struct moment *moment, char *buf);

/* The same of one goroutine; TRAIL_NONE: of all. */
const char *moment_of(const struct analysis *analysis, int64_t goroutine, int64_t begin_ns,
                      int64_t ns, char *buf);

/* What such a command ends with: "--repair app.trace". */
const char *moment_file(const struct analysis *analysis, char *buf);

/* A word for a shell: as it is, or in quotes; with escapes, $'...', for what would steer a terminal. */
const char *moment_word(const char *word, char *buf);

/* The same of a name in the trace. */
const char *moment_name(trail_string name, char *buf);

#endif
