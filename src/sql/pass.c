/* See pass.h. */
#include "sql/pass.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "ui/cli.h"
#include "ui/read_all.h"

/*
 * Bytes of each table's rows that may wait. DuckDB takes no rows while it writes a row group of
 * 122,880; a queue holds about as many.
 */
#define WAITING_SIZE ((size_t)32 << 20)

/* Those that trail_tables_options.wanted has a bit for. */
#define MAX_COLUMNS (8 * sizeof(((trail_tables_options *)NULL)->wanted[0]))

/* Of the threads that run the statements. */
#define STACK_SIZE ((size_t)1 << 20)

/* A copy of rows, with all columns, in one block of memory. */
struct chunk {
    struct chunk *next;
    size_t size;
    size_t count;
    trail_values columns[MAX_COLUMNS];
    _Alignas(8) char data[];
};

/* The rows of a table that wait for its statement. Protected by the pass's lock. */
struct flow {
    struct chunk *first, **last;
    size_t size;
    pthread_cond_t changed;
    struct chunk *taken; /* by its statement, whose thread alone uses this member */
};

struct statement {
    struct sql_pass *pass;
    const struct sql_use *use;
    struct flow *flow;
    void *connection;
    pthread_t thread;
    bool started;
};

struct sql_pass {
    struct sql_tables *tables;
    struct flow flows[TRAIL_TABLES];
    struct statement statements[TRAIL_TABLES];
    pthread_mutex_t lock; /* protects the members below */
    bool over;            /* all traces were read */
    bool failed;          /* an error was reported, and everything stops */
};

/* MARK: Flows */

/* The lock is held. */
static void wake_all(struct sql_pass *pass)
{
    for (int i = 0; i < TRAIL_TABLES; i++)
        pthread_cond_broadcast(&pass->flows[i].changed);
}

/* Stops everything. Returns whether this is the first error, which the caller reports. */
static bool fail(struct sql_pass *pass)
{
    pthread_mutex_lock(&pass->lock);
    bool first = !pass->failed;
    pass->failed = true;
    wake_all(pass);
    pthread_mutex_unlock(&pass->lock);
    return first;
}

static size_t padded(size_t size)
{
    return (size + 7) / 8 * 8;
}

/* Copies bytes to *end, moves *end past them, to a multiple of 8, and returns the copy. */
static void *put(char **end, const void *data, size_t size)
{
    char *copy = *end;
    if (size > 0) /* the data of an empty text may be NULL */
        memcpy(copy, data, size);
    *end += padded(size);
    return copy;
}

/* Returns the bytes of all values of a column, as put() copies them. */
static size_t column_size(const trail_table_column *column, const trail_values *values,
                          size_t count)
{
    size_t size = padded(count * scan_cell_size(column->cell));
    if (values->valid)
        size += (count + 63) / 64 * 8;
    for (size_t row = 0; column->cell == TRAIL_CELL_TEXT && row < count; row++)
        size += padded(values->text[row].size);
    return size;
}

static void copy_column(trail_cell cell, trail_values *copy, const trail_values *values,
                        size_t count, char **end)
{
    trail_string *texts = put(end, values->any, count * scan_cell_size(cell));
    copy->any = texts;
    if (values->valid)
        copy->valid = put(end, values->valid, (count + 63) / 64 * 8);
    for (size_t row = 0; cell == TRAIL_CELL_TEXT && row < count; row++)
        texts[row].data = put(end, texts[row].data, texts[row].size);
}

/*
 * Returns NULL if out of memory. No function of DuckDB is called, which would throw an exception
 * then: only its own callers catch that.
 */
static struct chunk *chunk_new(const trail_rows *rows)
{
    const trail_table *table = trail_table_get(rows->table);
    size_t size = sizeof(struct chunk);
    for (size_t i = 0; i < table->column_count; i++)
        size += column_size(&table->columns[i], &rows->columns[i], rows->count);
    struct chunk *chunk = malloc(size);
    if (!chunk)
        return NULL;
    *chunk = (struct chunk){.size = size, .count = rows->count};
    char *end = chunk->data;
    for (size_t i = 0; i < table->column_count; i++)
        copy_column(table->columns[i].cell, &chunk->columns[i], &rows->columns[i], rows->count,
                    &end);
    return chunk;
}

/* Queues rows, when there is room. */
static bool take_rows(void *context, size_t thread, const trail_rows *rows)
{
    struct sql_pass *pass = context;
    (void)thread;
    struct flow *flow = &pass->flows[rows->table];
    struct chunk *chunk = chunk_new(rows);
    if (!chunk) {
        if (fail(pass))
            (void)exit_no_memory();
        return false;
    }
    pthread_mutex_lock(&pass->lock);
    while (flow->first && flow->size + chunk->size > WAITING_SIZE && !pass->failed)
        pthread_cond_wait(&flow->changed, &pass->lock);
    bool needed = !pass->failed;
    if (needed) {
        *flow->last = chunk;
        flow->last = &chunk->next;
        flow->size += chunk->size;
        pthread_cond_broadcast(&flow->changed);
    }
    pthread_mutex_unlock(&pass->lock);
    if (!needed)
        free(chunk);
    return needed;
}

/* Returns the next rows, when there are some; NULL: the end. */
static struct chunk *next_rows(struct sql_pass *pass, struct flow *flow)
{
    pthread_mutex_lock(&pass->lock);
    while (!flow->first && !pass->over && !pass->failed)
        pthread_cond_wait(&flow->changed, &pass->lock);
    struct chunk *chunk = pass->failed ? NULL : flow->first;
    if (chunk) {
        flow->first = chunk->next;
        flow->last = chunk->next ? flow->last : &flow->first;
        flow->size -= chunk->size;
        pthread_cond_broadcast(&flow->changed);
    }
    pthread_mutex_unlock(&pass->lock);
    return chunk;
}

/* DuckDB may throw out of this function, which therefore owns nothing. */
void pass_take(struct sql_pass *pass, trail_table_id id, const uint64_t *columns, size_t count,
               void *to)
{
    const struct duckdb *duckdb = pass->tables->duckdb;
    const trail_table *table = trail_table_get(id);
    struct flow *flow = &pass->flows[id];
    free(flow->taken);
    struct chunk *chunk = flow->taken = next_rows(pass, flow);
    for (size_t i = 0; chunk && i < count; i++)
        if (columns[i] < table->column_count)
            scan_give(duckdb, duckdb->data_chunk_get_vector(to, i), table->columns[columns[i]].cell,
                      &chunk->columns[columns[i]], chunk->count, true);
    duckdb->data_chunk_set_size(to, chunk ? chunk->count : 0);
}

/* MARK: Threads */

/* Whether all rows of a table were taken. */
static bool is_complete(struct sql_pass *pass, const struct flow *flow)
{
    pthread_mutex_lock(&pass->lock);
    bool is = pass->over && !flow->first;
    pthread_mutex_unlock(&pass->lock);
    return is;
}

static void run(struct statement *statement, const char *sql)
{
    struct sql_pass *pass = statement->pass;
    const struct duckdb *duckdb = pass->tables->duckdb;
    duckdb_result result;
    if (duckdb->query(statement->connection, sql, &result) != 0) {
        if (fail(pass))
            (void)duckdb_print_error(duckdb->result_error(&result));
    } else if (!is_complete(pass, statement->flow) && fail(pass)) {
        print_message("DuckDB did not take all rows of a table: %s", sql);
    }
    duckdb->destroy_result(&result);
}

static void *run_statement(void *context)
{
    struct statement *statement = context;
    run(statement, statement->use->sql);
    return NULL;
}

/* Without arenas of their own, for each of which malloc reserves 64 MB of addresses. */
static void limit_arenas(void)
{
#ifdef M_ARENA_MAX
    (void)mallopt(M_ARENA_MAX, 2);
#endif
}

static bool start_statement(struct statement *statement)
{
    const struct duckdb *duckdb = statement->pass->tables->duckdb;
    pthread_attr_t attributes;
    if (duckdb->connect(duckdb->database, &statement->connection) != 0) {
        print_message("DuckDB gives no connection to its database");
        return false;
    }
    int error = pthread_attr_init(&attributes);
    if (error == 0) {
        (void)pthread_attr_setstacksize(&attributes, STACK_SIZE);
        error = pthread_create(&statement->thread, &attributes, run_statement, statement);
        pthread_attr_destroy(&attributes);
    }
    statement->started = error == 0;
    if (error != 0)
        print_message("cannot start a thread for each of the %d tables: %s; see ulimit -u and -v",
                      TRAIL_TABLES, strerror(error));
    return error == 0;
}

static void read_traces(struct sql_pass *pass)
{
    uint32_t wanted[TRAIL_TABLES];
    for (int i = 0; i < TRAIL_TABLES; i++)
        wanted[i] = TRAIL_ALL_COLUMNS;
    if (!read_all(&pass->tables->traces, read_all_threads(&pass->tables->traces), wanted, take_rows,
                  pass))
        (void)fail(pass);
    pthread_mutex_lock(&pass->lock);
    pass->over = true;
    wake_all(pass);
    pthread_mutex_unlock(&pass->lock);
}

/* MARK: The pass */

static void flow_free(struct flow *flow)
{
    free(flow->taken);
    while (flow->first) {
        struct chunk *chunk = flow->first;
        flow->first = chunk->next;
        free(chunk);
    }
    pthread_cond_destroy(&flow->changed);
}

static void begin(struct sql_pass *pass, const struct sql_use uses[TRAIL_TABLES])
{
    pthread_mutex_init(&pass->lock, NULL);
    for (int i = 0; i < TRAIL_TABLES; i++) {
        pass->flows[i].last = &pass->flows[i].first;
        pthread_cond_init(&pass->flows[i].changed, NULL);
        pass->statements[i] =
            (struct statement){.pass = pass, .use = &uses[i], .flow = &pass->flows[i]};
    }
    pass->tables->pass = pass;
}

static int end(struct sql_pass *pass)
{
    struct duckdb *duckdb = pass->tables->duckdb;
    int code = pass->failed ? EXIT_INOUT : EXIT_GOOD;
    for (int i = 0; i < TRAIL_TABLES; i++) {
        duckdb->disconnect(&pass->statements[i].connection);
        flow_free(&pass->flows[i]);
    }
    pthread_mutex_destroy(&pass->lock);
    pass->tables->pass = NULL;
    free(pass);
    return code;
}

int sql_pass(struct sql_tables *tables, const struct sql_use uses[TRAIL_TABLES])
{
    struct sql_pass *pass = calloc(1, sizeof *pass);
    bool good = true;
    if (!pass)
        return exit_no_memory();
    pass->tables = tables;
    limit_arenas();
    begin(pass, uses);
    for (int i = 0; i < TRAIL_TABLES && good; i++)
        good = start_statement(&pass->statements[i]);
    if (good)
        read_traces(pass);
    else
        (void)fail(pass);
    for (int i = 0; i < TRAIL_TABLES; i++)
        if (pass->statements[i].started)
            pthread_join(pass->statements[i].thread, NULL);
    for (int i = 0; i < TRAIL_TABLES && !pass->failed; i++)
        if (uses[i].then)
            run(&pass->statements[i], uses[i].then);
    return end(pass);
}
