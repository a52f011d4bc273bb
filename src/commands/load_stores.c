/* The stores of trail load; the one that is a DuckDB database, and what others share with it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/text.h"
#include "commands/load_store.h"
#include "sql/pass.h"
#include "ui/cli.h"

bool load_add_id(struct idmap *ids, const char *digits, size_t size)
{
    char text[TRACE_ID_SIZE] = "";
    memcpy(text, digits, size < sizeof text ? size : sizeof text - 1);
    return idmap_put(ids, strtoull(text, NULL, 16), ids);
}

/* MARK: Traces */

bool load_traces_begin(struct traces *traces, const struct load_batch *batch)
{
    struct input *inputs = calloc(batch->count + 1, sizeof *inputs);
    const char **files = calloc(batch->count + 1, sizeof *files);
    *traces = (struct traces){
        .inputs = inputs,
        .files = files,
        .count = batch->count,
        .host = batch->host,
        .has_day = true,
        .day = batch->count > 0 ? batch->traces[0].day : 0,
        .reader = {.partial = true, .threads = 1},
    };
    if (!inputs || !files || !traces_init(traces))
        return false;
    for (size_t i = 0; i < batch->count; i++) {
        inputs[i].word = batch->traces[i].path;
        files[i] = path_name(batch->traces[i].path);
        memcpy(traces->ids[i], batch->traces[i].id, TRACE_ID_SIZE);
    }
    return true;
}

void load_traces_end(struct traces *traces, struct load_batch *batch)
{
    batch->code = traces->code;
    for (size_t i = 0; traces->reported && i < batch->count; i++)
        batch->damaged += traces->reported[i];
    batch->unopened = traces->unopened;
    batch->damaged -= batch->unopened;
    traces_free(traces);
    free(traces->inputs);
    free((void *)traces->files);
}

/* MARK: DuckDB */

/* A database that contains the tables of a batch's traces. */
struct session {
    struct duckdb duckdb;
    struct sql_tables sql;
};

/* session_close must be called in either case. */
static int session_open(struct session *session, const struct load_batch *batch)
{
    struct duckdb_options options = {.files = true, .unordered = true, .threads = 1};
    session->sql.duckdb = &session->duckdb;
    if (!load_traces_begin(&session->sql.traces, batch))
        return exit_no_memory();
    int code = duckdb_begin(&session->duckdb, &options);
    return code == EXIT_GOOD ? sql_tables_register(&session->sql) : code;
}

static void session_close(struct session *session, struct load_batch *batch)
{
    duckdb_end(&session->duckdb);
    sql_tables_forget(&session->sql);
    load_traces_end(&session->sql.traces, batch);
}

int load_take_ids(struct duckdb *duckdb, const char *sql, struct idmap *ids)
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
    print_message(LOAD_IS_LOCKED, place->name);
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
    return code == EXIT_GOOD
               ? load_take_ids(duckdb, LOAD_SELECT_IDS "store.traces" LOAD_ARE_IDS, &place->known)
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
    {"parquet:", load_open_parquet, load_write_parquet, load_merge_parquet},
    {"duckdb:", open_database, write_database, NULL},
    {"clickhouse://", load_open_clickhouse, load_write_clickhouse, NULL},
    {0},
};
