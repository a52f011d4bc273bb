/*
 * Follow-up commands that show the events behind a figure, to be copied into a shell: for the same
 * file, quoted where necessary, with the same input options.
 */
#pragma once

#include "ui/analysis.h"

enum { FOLLOW_UP_SIZE = 1200 }; /* size of each buffer below */

/* Text like "18,22"; initialise as empty. */
struct goroutine_list {
    char text[300];
    size_t size;
};

/* Adds an ID unless it is in the list. Returns false if there is no room. */
bool goroutine_list_add(struct goroutine_list *list, int64_t goroutine);

struct follow_up {
    const char *goroutines; /* "18,22"; NULL: all */
    int64_t from_ns, ns;    /* since the first event; duration */
    bool stacks;
};

/* Returns "trail print --goroutine=18 --from=5ns --to=+7ns app.trace", in `buf`. */
const char *follow_up_print(const struct analysis *analysis, const struct follow_up *follow_up,
                            char *buf);

/* The same for one goroutine; TRAIL_NONE: all. */
const char *follow_up_of(const struct analysis *analysis, int64_t goroutine, int64_t begin_ns,
                         int64_t ns, char *buf);

/* Returns the end of such a command: "--repair app.trace". */
const char *follow_up_file(const struct analysis *analysis, char *buf);

/* Returns a word quoted for a shell if necessary, and as $'...' with escapes if it could control a
 * terminal. */
const char *shell_word(const char *word, char *buf);

/* The same for a name in the trace. */
const char *shell_name(trail_string name, char *buf);

/* The same for a file as a separate argument: a name that begins with "-" must not look like an
 * option. */
const char *shell_file(const char *path, char *buf);
