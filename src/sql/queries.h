/*
 * Queries that have names: `trail sql FILE @NAME`.
 */
#ifndef TRAIL_SQL_QUERIES_H
#define TRAIL_SQL_QUERIES_H

struct sql_named {
    const char *name;
    const char *meaning;
    const char *sql;
};

/* Ended by one without a name. */
extern const struct sql_named sql_queries[];

/* NULL: there is none of that name. */
const struct sql_named *sql_query_find(const char *name);

/* That whose name is most like it; NULL: none is. */
const char *sql_query_near(const char *name);

#endif
