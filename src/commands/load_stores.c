/* The stores of trail load that DuckDB writes: Parquet files, and a DuckDB database. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/text.h"
#include "commands/load_store.h"
#include "commands/parquet.h"
#include "sql/pass.h"
#include "ui/cli.h"
#include "ui/folders.h"

bool load_add_id(struct idmap *ids, const char *digits, size_t size)
{
    char text[TRACE_ID_SIZE] = "";
    memcpy(text, digits, size < sizeof text ? size : sizeof text - 1);
    return idmap_put(ids, strtoull(text, NULL, 16), ids);
}

#define IS_LOCKED "%s: another trail load writes there"

/* MARK: Traces in DuckDB */

/* A database that contains the tables of a batch's traces. */
struct session {
    struct duckdb duckdb;
    struct sql_tables sql;
    struct input *inputs;
    const char **files;
};

static bool take_traces(struct session *session, const struct load_batch *batch)
{
    session->inputs = calloc(batch->count + 1, sizeof *session->inputs);
    session->files = calloc(batch->count + 1, sizeof *session->files);
    if (!session->inputs || !session->files)
        return false;
    for (size_t i = 0; i < batch->count; i++) {
        session->inputs[i].word = batch->traces[i].path;
        session->files[i] = path_name(batch->traces[i].path);
    }
    return true;
}

/* session_close must be called in either case. */
static int session_open(struct session *session, const struct load_batch *batch)
{
    struct duckdb_options options = {.files = true, .unordered = true, .threads = "1"};
    if (!take_traces(session, batch))
        return exit_no_memory();
    session->sql = (struct sql_tables){
        .duckdb = &session->duckdb,
        .inputs = session->inputs,
        .files = session->files,
        .count = batch->count,
        .host = batch->host,
        .has_day = true,
        .day = batch->count > 0 ? batch->traces[0].day : 0,
        .reader = {.partial = true, .threads = 1},
    };
    int code = duckdb_begin(&session->duckdb, &options);
    if (code == EXIT_GOOD)
        code = sql_tables_register(&session->sql);
    for (size_t i = 0; code == EXIT_GOOD && i < batch->count; i++)
        memcpy(session->sql.ids[i], batch->traces[i].id, TRACE_ID_SIZE);
    return code;
}

static void session_close(struct session *session, struct load_batch *batch)
{
    batch->code = session->sql.code;
    for (size_t i = 0; session->sql.reported && i < batch->count; i++)
        batch->damaged += session->sql.reported[i];
    batch->unopened = session->sql.unopened;
    batch->damaged -= batch->unopened;
    duckdb_end(&session->duckdb);
    sql_tables_free(&session->sql);
    free(session->inputs);
    free((void *)session->files);
}

/* What a store calls an ID may be of any type. */
#define SELECT_IDS "SELECT CAST(trace AS VARCHAR) FROM "
#define ARE_IDS    " WHERE trace IS NOT NULL"

/* Adds the IDs that a query returns, which are texts. */
static int take_ids(struct duckdb *duckdb, const char *sql, struct idmap *ids)
{
    duckdb_result result;
    void *chunk;
    bool good = true;
    int code = EXIT_GOOD;
    if (duckdb->query(duckdb->connection, sql, &result) != 0) {
        (void)duckdb_print_error(duckdb->result_error(&result));
        code = EXIT_INOUT;
    }
    while (code == EXIT_GOOD && (chunk = duckdb->fetch_chunk(result))) {
        const duckdb_text *texts = duckdb->vector_get_data(duckdb->data_chunk_get_vector(chunk, 0));
        for (uint64_t i = 0; i < duckdb->data_chunk_get_size(chunk); i++)
            if (texts[i].size > DUCKDB_INLINE_TEXT)
                good = good && load_add_id(ids, texts[i].data, texts[i].size);
        duckdb->destroy_data_chunk(&chunk);
    }
    duckdb->destroy_result(&result);
    return good ? code : exit_no_memory();
}

/* MARK: Parquet */

/* Files of a batch are load-HASH.parquet. */
#define FILES "/host=*/day=*/load-*.parquet"

char *load_pattern_in(const char *folder, const char *rest)
{
    char *pattern = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&pattern, &size);
    if (!to)
        return NULL;
    for (; *folder; folder++)
        fprintf(to, strchr("*?[", *folder) ? "[%c]" : "%c", *folder);
    fputs(rest, to);
    if (fclose(to) == 0)
        return pattern;
    free(pattern);
    return NULL;
}

int load_find_files(const char *folder, const char *rest, glob_t *found)
{
    char *pattern = load_pattern_in(folder, rest);
    int result = pattern ? glob(pattern, GLOB_NOSORT, NULL, found) : GLOB_NOSPACE;
    free(pattern);
    return result == 0 || result == GLOB_NOMATCH ? EXIT_GOOD : exit_no_memory();
}

/* Returns the path of the file of the table `traces` that belongs to a file of another table; NULL:
 * out of memory. */
static char *traces_beside(const char *folder, const char *path)
{
    const char *rest = strchr(path + strlen(folder) + 1, '/');
    char *traces = NULL;
    return rest && asprintf(&traces, "%s/traces%s", folder, rest) >= 0 ? traces : NULL;
}

/* Removes the files of a table that an interrupted run has left: incomplete ones, and those of
 * incomplete batches. */
static int remove_incomplete_of(const char *folder, const char *table)
{
    char parts_of[80], files_of[80];
    glob_t parts = {0}, found = {0};
    (void)snprintf(parts_of, sizeof parts_of, "/%s/host=*/day=*/.load-*.part", table);
    (void)snprintf(files_of, sizeof files_of, "/%s" FILES, table);
    int code = load_find_files(folder, parts_of, &parts);
    if (code == EXIT_GOOD)
        code = load_find_files(folder, files_of, &found);
    for (size_t i = 0; i < parts.gl_pathc; i++)
        (void)unlink(parts.gl_pathv[i]);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        char *traces = traces_beside(folder, found.gl_pathv[i]);
        if (traces && access(traces, F_OK) < 0 && errno == ENOENT)
            (void)unlink(found.gl_pathv[i]);
        free(traces);
    }
    globfree(&parts);
    globfree(&found);
    return code;
}

/* All folders but the tables' own belong to the user. */
static int remove_incomplete(const char *folder)
{
    int code = EXIT_GOOD;
    for (int i = 0; i < TRAIL_TABLES && code == EXIT_GOOD; i++)
        code = remove_incomplete_of(folder, trail_table_get((trail_table_id)i)->name);
    return code;
}

static int lock_folder(struct load_place *place)
{
    struct folders folders = {0};
    int code = folders_make(&folders, place->name);
    folders_end(&folders, true);
    if (code != EXIT_GOOD)
        return code;
    place->lock = open(place->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (place->lock >= 0 && flock(place->lock, LOCK_EX | LOCK_NB) == 0)
        return EXIT_GOOD;
    print_message(errno == EWOULDBLOCK ? IS_LOCKED : "%s: %m", place->name);
    return EXIT_INOUT;
}

/* The IDs in batches, and in exports into the same folder. */
static int take_parquet_ids(struct load_place *place, struct duckdb *duckdb)
{
    static const char files[] = "/traces/host=*/day=*/*.parquet";
    glob_t found = {0};
    int code = load_find_files(place->name, files, &found);
    char *pattern = load_pattern_in(place->name, files), *sql = NULL;
    if (code == EXIT_GOOD && found.gl_pathc > 0) {
        sql = pattern ? sql_statement_with(SELECT_IDS "read_parquet(", pattern, ")" ARE_IDS) : NULL;
        code = sql ? take_ids(duckdb, sql, &place->known) : exit_no_memory();
    }
    globfree(&found);
    free(pattern);
    free(sql);
    return code;
}

static int open_parquet(struct load_place *place)
{
    struct load_batch none = {.host = ""};
    struct session session = {0};
    int code = lock_folder(place);
    if (code == EXIT_GOOD)
        code = load_merge_clean(place->name);
    if (code == EXIT_GOOD)
        code = remove_incomplete(place->name);
    if (code == EXIT_GOOD)
        code = session_open(&session, &none);
    if (code == EXIT_GOOD)
        code = take_parquet_ids(place, &session.duckdb);
    session_close(&session, &none);
    return code;
}

static int write_parquet(const struct load_place *place, struct load_batch *batch)
{
    struct session session = {0};
    uint64_t hash = 0;
    char name[32];
    for (size_t i = 0; i < batch->count; i++)
        hash = hash_mix(hash, strtoull(batch->traces[i].id, NULL, 16));
    (void)snprintf(name, sizeof name, "load-%016" PRIx64, hash);
    int code = session_open(&session, batch);
    if (code == EXIT_GOOD)
        code = parquet_write(&session.sql, place->name, name);
    session_close(&session, batch);
    return code;
}

/* MARK: A database of DuckDB */

/*
 * The tables of a batch are written in as many transactions, because each has a connection of its
 * own. Until all are committed, UNFINISHED lists the IDs of the batch; the next run deletes the
 * rows of these traces.
 */
#define UNFINISHED "store." LOAD_UNFINISHED

/* Creates missing tables, and adds no rows: fails if one is a view, which could be endless. */
static int create_tables(struct duckdb *duckdb)
{
    char sql[200];
    int code = EXIT_GOOD;
    for (int i = 0; i < TRAIL_TABLES && code == EXIT_GOOD; i++) {
        const char *name = trail_table_get((trail_table_id)i)->name;
        (void)snprintf(sql, sizeof sql,
                       "CREATE TABLE IF NOT EXISTS store.%s AS FROM %s LIMIT 0;"
                       "INSERT INTO store.%s BY NAME FROM %s LIMIT 0",
                       name, name, name, name);
        code = duckdb_run(duckdb, sql);
    }
    return code;
}

/* A view of that name, which could be endless, is refused. */
static int remove_unfinished(struct duckdb *duckdb)
{
    char sql[200];
    int code = duckdb_run(duckdb, "BEGIN; CREATE TABLE IF NOT EXISTS " UNFINISHED
                                  " (trace VARCHAR); DELETE FROM " UNFINISHED " WHERE false");
    for (int i = 0; i < TRAIL_TABLES && code == EXIT_GOOD; i++) {
        (void)snprintf(sql, sizeof sql,
                       "DELETE FROM store.%s WHERE CAST(trace AS VARCHAR) IN (FROM " UNFINISHED ")",
                       trail_table_get((trail_table_id)i)->name);
        code = duckdb_run(duckdb, sql);
    }
    return code == EXIT_GOOD ? duckdb_run(duckdb, "DROP TABLE " UNFINISHED "; COMMIT") : code;
}

static int note_unfinished(struct duckdb *duckdb, const struct load_batch *batch)
{
    char *sql = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&sql, &size);
    if (!to)
        return exit_no_memory();
    fputs("CREATE TABLE " UNFINISHED " AS SELECT unnest([", to);
    for (size_t i = 0; i < batch->count; i++)
        fprintf(to, "%s'%s'", i > 0 ? "," : "", batch->traces[i].id);
    fputs("]) AS trace", to);
    int code = fclose(to) == 0 ? duckdb_run(duckdb, sql) : exit_no_memory();
    free(sql);
    return code;
}

static int add_rows(struct session *session)
{
    char sql[TRAIL_TABLES][120];
    struct sql_use uses[TRAIL_TABLES];
    for (int i = 0; i < TRAIL_TABLES; i++) {
        const char *name = trail_table_get((trail_table_id)i)->name;
        (void)snprintf(sql[i], sizeof sql[i], "BEGIN; INSERT INTO store.%s BY NAME FROM %s", name,
                       name);
        uses[i] = (struct sql_use){.sql = sql[i], .then = "COMMIT"};
    }
    uses[TRAIL_TABLE_TRACES].then = "DROP TABLE " UNFINISHED "; COMMIT";
    return sql_pass(&session->sql, uses);
}

static int attach(struct duckdb *duckdb, const char *file)
{
    char *sql = sql_statement_with("ATTACH ", file, " AS store");
    int code = sql ? duckdb_run(duckdb, sql) : exit_no_memory();
    free(sql);
    return code;
}

/* Only one process has a database attached; the lock keeps others away between the batches, too. */
static int lock_database(struct load_place *place)
{
    place->lock = open(place->name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (place->lock < 0 || flock(place->lock, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
        return EXIT_GOOD;
    print_message(IS_LOCKED, place->name);
    return EXIT_INOUT;
}

typedef int (*database_fn)(struct session *session, void *context);

static int with_database(const struct load_place *place, struct load_batch *batch, database_fn use,
                         void *context)
{
    struct session session = {0};
    int code = session_open(&session, batch);
    if (code == EXIT_GOOD)
        code = attach(&session.duckdb, place->name);
    if (code == EXIT_GOOD)
        code = use(&session, context);
    if (code == EXIT_GOOD)
        code = duckdb_run(&session.duckdb, "DETACH store");
    session_close(&session, batch);
    return code == EXIT_GOOD ? code : EXIT_INOUT;
}

static int add_batch(struct session *session, void *batch)
{
    int code = note_unfinished(&session->duckdb, batch);
    return code == EXIT_GOOD ? add_rows(session) : code;
}

static int write_database(const struct load_place *place, struct load_batch *batch)
{
    return with_database(place, batch, add_batch, batch);
}

static int prepare_database(struct session *session, void *context)
{
    struct load_place *place = context;
    struct duckdb *duckdb = &session->duckdb;
    int code = place->lock < 0 ? lock_database(place) : EXIT_GOOD;
    if (code == EXIT_GOOD)
        code = create_tables(duckdb);
    if (code == EXIT_GOOD)
        code = remove_unfinished(duckdb);
    return code == EXIT_GOOD ? take_ids(duckdb, SELECT_IDS "store.traces" ARE_IDS, &place->known)
                             : code;
}

/* Locked before it is attached, or else, if it is new, thereafter. */
static int open_database(struct load_place *place)
{
    struct load_batch none = {.host = ""};
    int code = lock_database(place);
    return code == EXIT_GOOD ? with_database(place, &none, prepare_database, place) : code;
}

const struct load_store load_stores[] = {
    {"parquet:", open_parquet, write_parquet, load_merge_parquet},
    {"duckdb:", open_database, write_database, NULL},
    {"clickhouse://", load_open_clickhouse, load_write_clickhouse, NULL},
    {0},
};
