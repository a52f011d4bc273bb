/*
 * Where trail load puts tables: folders of Parquet files, a database of DuckDB, or a server of
 * ClickHouse. A store has a row for each trace in its table `traces`, which is written last: a
 * trace that has one is not loaded again.
 */
#pragma once

#include <glob.h>

#include "base/idmap.h"
#include "sql/tables.h"

struct load_trace {
    char *path;
    uint64_t size; /* of the file */
    int32_t day;
    char id[TRACE_ID_SIZE];
};

struct load_place {
    const char *name;   /* a folder, a file, or the address of a server */
    struct idmap known; /* the IDs of the traces already in the store; the values mean nothing */
    int lock; /* an open descriptor that keeps other processes from writing there; -1: none */
};

/* Traces of one day that are written together: all of them or none. */
struct load_batch {
    const struct load_trace *traces;
    size_t count;
    const char *host;
    size_t damaged; /* set: how many traces were damaged and read only in part; each was reported */
    size_t unopened; /* set: how many have no rows, as when removed meanwhile; each was reported */
    int code;        /* set: the worst exit code of reading the traces */
};

struct load_merged {
    size_t from, into; /* files */
};

struct load_store {
    const char *prefix; /* "parquet:" */
    /* Opens the store at the place after the prefix, and adds the IDs of its traces to `known`. */
    int (*open)(struct load_place *place);
    /* Writes the whole batch, or fails. */
    int (*write)(const struct load_place *place, struct load_batch *batch);
    /* Merges small files, and adds their number to `merged`; NULL: there are none. */
    int (*merge)(const struct load_place *place, struct load_merged *merged);
};

/* The last one has no prefix. The functions return EXIT_GOOD, or an exit code after a message. */
extern const struct load_store load_stores[];

/* Adds an ID given in hexadecimal digits. Returns false if out of memory. */
bool load_add_id(struct idmap *ids, const char *digits, size_t size);

/*
 * Adds the IDs that a query returns, which are texts. What a store calls an ID may be of any type.
 */
int load_take_ids(struct duckdb *duckdb, const char *sql, struct idmap *ids);
#define LOAD_SELECT_IDS "SELECT CAST(trace AS VARCHAR) FROM "
#define LOAD_ARE_IDS    " WHERE trace IS NOT NULL"

#define LOAD_IS_LOCKED "%s: another trail load writes there"

/*
 * The traces of a batch, to be read. False: out of memory. load_traces_end must be called in either
 * case, and sets the results of the batch.
 */
bool load_traces_begin(struct traces *traces, const struct load_batch *batch);
void load_traces_end(struct traces *traces, struct load_batch *batch);

/* The table of a DuckDB database that is there while a batch is not complete. */
#define LOAD_UNFINISHED "trail_unfinished"

/* MARK: Parquet */

/* In the folder of the store: no pattern of readers has files so near its top. */
#define LOAD_MERGE_FOLDER ".trail-merge"

/* Returns the pattern of paths below a folder, for glob(3) and DuckDB; NULL: out of memory. */
char *load_pattern_in(const char *folder, const char *rest);

/* globfree must be called in either case. */
int load_find_files(const char *folder, const char *rest, glob_t *found);

int load_open_parquet(struct load_place *place);
int load_write_parquet(const struct load_place *place, struct load_batch *batch);
int load_merge_parquet(const struct load_place *place, struct load_merged *merged);

/* Removes what an interrupted merge has left. */
int load_merge_clean(const char *folder);

/* MARK: ClickHouse */

int load_open_clickhouse(struct load_place *place);
int load_write_clickhouse(const struct load_place *place, struct load_batch *batch);
