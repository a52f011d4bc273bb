/*
 * What all threads or Ps did: rows of figures, and when they ran goroutines, over the time, a line each.
 */
#ifndef TRAIL_UI_RUNNING_H
#define TRAIL_UI_RUNNING_H

#include "ui/analysis.h"
#include "ui/table.h"

/* When one ran. */
struct running {
    int64_t id, ns;
    int64_t task; /* which task it is, for vocabularies in which it is one; TRAIL_NONE: none */
    const int64_t *slices;
};

/* What the rows are of: `rows` is what the library gave, `i` a number in it. */
struct running_kind {
    enum term id;       /* before an ID: its first word */
    const char *list;   /* in JSON */
    const char *titles; /* of the table, for table_begin_with */
    struct running (*get)(const void *rows, size_t i);
    void (*json)(struct json *json, const void *rows, size_t i); /* members between ID and slices */
    void (*cells)(const struct analysis *analysis, struct table *table, const void *rows,
                  size_t i); /* behind the ID */
};

/* Shows them as the analysis asks for; returns what the command exits with. */
int running_show(const struct analysis *analysis, const struct running_kind *kind, const void *rows,
                 size_t count);

/* Only when each ran, in lines. */
int running_lines(const struct analysis *analysis, const struct running_kind *kind,
                  const void *rows, size_t count);

#endif
