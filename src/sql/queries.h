/* Predefined queries: `trail sql FILE @NAME`. */
#pragma once

#include <stdbool.h>

struct sql_named {
    const char *name;
    const char *meaning;
    const char *sql;
};

/* Ends with a row without a name. */
extern const struct sql_named sql_queries[];

/*
 * Statements that define macros for queries: wall_ns(), stack(), path() and those for fields of
 * logs; and since_start(), through a temporary table trail_begins(file, ns). With `several` traces,
 * a call without the file is an error.
 */
const char *sql_macros(bool several);
const char *sql_macro_since_start(bool several);

/* Returns the row with that name; NULL: none. */
const struct sql_named *sql_named_find(const struct sql_named *rows, const char *name);

/* The same for queries. */
const struct sql_named *sql_query_find(const char *name);

/* Returns the most similar name; NULL if none is similar. */
const char *sql_query_near(const char *name);
