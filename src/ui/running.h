/* Prints rows of figures for all threads or Ps, and for each a line that shows when it ran
 * goroutines. */
#pragma once

#include "ui/rows.h"

/* When a thread or P ran. */
struct running {
    int64_t id, ns;
    int64_t task; /* the task, for vocabularies in which a thread is one; TRAIL_NONE: none */
    const int64_t *slices;
};

/* The kind of rows, which are in an array. */
struct running_kind {
    enum term one;    /* the term for one of them */
    enum term id;     /* the word before an ID */
    const char *list; /* the list's key in JSON */
    size_t size;      /* of a row */
    struct running (*get)(const void *of);
    put_row *put;
};

/* Writes the last member of a row. */
void running_json_slices(struct row *row, const int64_t *slices);

/* Prints the rows in the requested format. Returns the exit code. */
int running_show(const struct analysis *analysis, const struct running_kind *kind, const void *rows,
                 size_t count);

/* Prints only the lines of when each ran. */
int running_lines(const struct analysis *analysis, const struct running_kind *kind,
                  const void *rows, size_t count);
