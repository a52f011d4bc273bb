/* See pass.h. */
#include "sql/pass.h"

#include <stdlib.h>

#include "base/cpu_quota.h"
#include "ui/cli.h"

/*
 * Bytes of a table's rows that may wait. DuckDB writes 122,880 rows at a time, in which it takes no
 * others; meanwhile there is room for as many.
 */
#define WAITING_SIZE ((size_t)32 << 20)

#define MAX_COLUMNS 32 /* trail_tables_options.wanted has a bit for each */

struct chunk {
    struct chunk *next;
    void *rows; /* a data chunk of DuckDB with all columns */
    size_t size;
};

/* The rows of a table that wait for its statement. Protected by the pass's lock. */
struct flow {
    struct chunk *first, **last;
    size_t size;
    bool ended; /* its statement takes no more */
    pthread_cond_t changed;
    void *types[MAX_COLUMNS];
    size_t row_size; /* of what has a fixed size */
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
    size_t next_file;
    bool over; /* all traces were read */
    int code;  /* not EXIT_GOOD: an error was reported, and everything stops */
};

/* MARK: Flows */

/* The lock is held. */
static void wake_all(struct sql_pass *pass)
{
    for (int i = 0; i < TRAIL_TABLES; i++)
        pthread_cond_broadcast(&pass->flows[i].changed);
}

static void stop(struct sql_pass *pass, int code)
{
    pthread_mutex_lock(&pass->lock);
    pass->code = code;
    wake_all(pass);
    pthread_mutex_unlock(&pass->lock);
}

static void chunk_free(const struct duckdb *duckdb, struct chunk *chunk)
{
    if (chunk)
        duckdb->destroy_data_chunk(&chunk->rows);
    free(chunk);
}

/* Returns NULL if out of memory. */
static struct chunk *chunk_new(const struct duckdb *duckdb, const struct flow *flow,
                               const trail_rows *rows)
{
    const trail_table *table = trail_table_get(rows->table);
    struct chunk *chunk = calloc(1, sizeof *chunk);
    if (!chunk)
        return NULL;
    chunk->rows = duckdb->create_data_chunk((void **)(uintptr_t)flow->types, table->column_count);
    chunk->size = flow->row_size * TRAIL_TABLE_ROWS;
    for (size_t i = 0; i < table->column_count; i++) {
        const trail_values *values = &rows->columns[i];
        scan_give(duckdb, duckdb->data_chunk_get_vector(chunk->rows, i), table->columns[i].cell,
                  values, rows->count, true);
        for (size_t row = 0; table->columns[i].cell == TRAIL_CELL_TEXT && row < rows->count; row++)
            chunk->size += values->text[row].size;
    }
    duckdb->data_chunk_set_size(chunk->rows, rows->count);
    return chunk;
}

/* Queues rows, when there is room. Returns false if no more are needed. */
static bool add_rows(struct sql_pass *pass, const trail_rows *rows)
{
    const struct duckdb *duckdb = pass->tables->duckdb;
    struct flow *flow = &pass->flows[rows->table];
    struct chunk *chunk = chunk_new(duckdb, flow, rows);
    if (!chunk) {
        stop(pass, exit_no_memory());
        return false;
    }
    pthread_mutex_lock(&pass->lock);
    while (flow->first && flow->size + chunk->size > WAITING_SIZE && !flow->ended &&
           pass->code == EXIT_GOOD)
        pthread_cond_wait(&flow->changed, &pass->lock);
    bool needed = !flow->ended && pass->code == EXIT_GOOD;
    if (needed) {
        *flow->last = chunk;
        flow->last = &chunk->next;
        flow->size += chunk->size;
        pthread_cond_broadcast(&flow->changed);
    }
    pthread_mutex_unlock(&pass->lock);
    if (!needed)
        chunk_free(duckdb, chunk);
    return needed;
}

/* Returns the next rows, when there are some; NULL: the end. */
static struct chunk *take_rows(struct sql_pass *pass, struct flow *flow)
{
    pthread_mutex_lock(&pass->lock);
    while (!flow->first && !pass->over && pass->code == EXIT_GOOD)
        pthread_cond_wait(&flow->changed, &pass->lock);
    struct chunk *chunk = pass->code == EXIT_GOOD ? flow->first : NULL;
    if (chunk) {
        flow->first = chunk->next;
        flow->last = chunk->next ? flow->last : &flow->first;
        flow->size -= chunk->size;
        pthread_cond_broadcast(&flow->changed);
    }
    pthread_mutex_unlock(&pass->lock);
    return chunk;
}

void pass_take(struct sql_pass *pass, trail_table_id id, const uint64_t *columns, size_t count,
               void *to)
{
    const struct duckdb *duckdb = pass->tables->duckdb;
    struct chunk *chunk = take_rows(pass, &pass->flows[id]);
    for (size_t i = 0; chunk && i < count; i++)
        if (columns[i] < trail_table_get(id)->column_count)
            duckdb->vector_reference_vector(duckdb->data_chunk_get_vector(to, i),
                                            duckdb->data_chunk_get_vector(chunk->rows, columns[i]));
    duckdb->data_chunk_set_size(to, chunk ? duckdb->data_chunk_get_size(chunk->rows) : 0);
    chunk_free(duckdb, chunk);
}

/* MARK: Threads */

static void read_trace(struct sql_pass *pass, size_t file)
{
    uint32_t wanted[TRAIL_TABLES];
    struct sql_scan scan = {0};
    trail_error err = no_error();
    trail_rows rows;
    for (int i = 0; i < TRAIL_TABLES; i++)
        wanted[i] = TRAIL_ALL_COLUMNS;
    int more = scan_open(&scan, pass->tables, file, wanted, &err) ? 1 : -1;
    while (more > 0) {
        more = trail_tables_next(scan.tables, &rows, &err);
        if (more > 0 && !add_rows(pass, &rows))
            more = 0;
    }
    if (more < 0)
        scan_report(pass->tables, file, &err);
    scan_close(&scan);
}

/* Returns false if there is none. */
static bool next_file(struct sql_pass *pass, size_t *file)
{
    pthread_mutex_lock(&pass->lock);
    bool is = pass->next_file < pass->tables->count && pass->code == EXIT_GOOD;
    if (is)
        *file = pass->next_file++;
    pthread_mutex_unlock(&pass->lock);
    return is;
}

static void *read_traces(void *context)
{
    struct sql_pass *pass = context;
    size_t file;
    while (next_file(pass, &file))
        read_trace(pass, file);
    return NULL;
}

/* Only the first error is reported. */
static void run(struct statement *statement, const char *sql)
{
    struct sql_pass *pass = statement->pass;
    const struct duckdb *duckdb = pass->tables->duckdb;
    duckdb_result result;
    bool good = duckdb->query(statement->connection, sql, &result) == 0;
    pthread_mutex_lock(&pass->lock);
    if (!good && pass->code == EXIT_GOOD) {
        duckdb_print_error(duckdb->result_error(&result));
        pass->code = EXIT_INOUT;
    }
    statement->flow->ended = true;
    wake_all(pass);
    pthread_mutex_unlock(&pass->lock);
    duckdb->destroy_result(&result);
}

static void *run_statement(void *context)
{
    struct statement *statement = context;
    run(statement, statement->use->sql);
    return NULL;
}

static bool start_statement(struct statement *statement)
{
    const struct duckdb *duckdb = statement->pass->tables->duckdb;
    statement->started = duckdb->connect(duckdb->database, &statement->connection) == 0 &&
                         pthread_create(&statement->thread, NULL, run_statement, statement) == 0;
    return statement->started;
}

/* Reads all traces, in this thread and, where there are CPUs, in others. */
static void read_all(struct sql_pass *pass)
{
    size_t most = cpu_quota_usable(), count = 0;
    pthread_t *threads = calloc(most, sizeof *threads);
    if (most > pass->tables->count)
        most = pass->tables->count;
    while (threads && count + 1 < most &&
           pthread_create(&threads[count], NULL, read_traces, pass) == 0)
        count++;
    (void)read_traces(pass);
    while (count > 0)
        pthread_join(threads[--count], NULL);
    free(threads);
    pthread_mutex_lock(&pass->lock);
    pass->over = true;
    wake_all(pass);
    pthread_mutex_unlock(&pass->lock);
}

/* MARK: The pass */

static void flow_init(struct flow *flow, const struct duckdb *duckdb, const trail_table *table)
{
    flow->last = &flow->first;
    pthread_cond_init(&flow->changed, NULL);
    for (size_t i = 0; i < table->column_count; i++) {
        flow->types[i] = scan_type(duckdb, &table->columns[i]);
        flow->row_size += table->columns[i].cell == TRAIL_CELL_TEXT ? sizeof(duckdb_text) : 8;
    }
}

static void flow_free(struct flow *flow, const struct duckdb *duckdb)
{
    while (flow->first) {
        struct chunk *chunk = flow->first;
        flow->first = chunk->next;
        chunk_free(duckdb, chunk);
    }
    for (size_t i = 0; i < MAX_COLUMNS && flow->types[i]; i++)
        duckdb->destroy_logical_type(&flow->types[i]);
    pthread_cond_destroy(&flow->changed);
}

static void begin(struct sql_pass *pass, const struct sql_use uses[TRAIL_TABLES])
{
    const struct duckdb *duckdb = pass->tables->duckdb;
    pthread_mutex_init(&pass->lock, NULL);
    for (int i = 0; i < TRAIL_TABLES; i++) {
        flow_init(&pass->flows[i], duckdb, trail_table_get((trail_table_id)i));
        pass->statements[i] =
            (struct statement){.pass = pass, .use = &uses[i], .flow = &pass->flows[i]};
    }
    pass->tables->pass = pass;
}

static int end(struct sql_pass *pass)
{
    struct duckdb *duckdb = pass->tables->duckdb;
    int code = pass->code;
    for (int i = 0; i < TRAIL_TABLES; i++) {
        duckdb->disconnect(&pass->statements[i].connection);
        flow_free(&pass->flows[i], duckdb);
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
    begin(pass, uses);
    for (int i = 0; i < TRAIL_TABLES && good; i++)
        good = start_statement(&pass->statements[i]);
    if (good) {
        read_all(pass);
    } else {
        print_message("cannot start a thread for each table");
        stop(pass, EXIT_INOUT);
    }
    for (int i = 0; i < TRAIL_TABLES; i++)
        if (pass->statements[i].started)
            pthread_join(pass->statements[i].thread, NULL);
    for (int i = 0; i < TRAIL_TABLES && pass->code == EXIT_GOOD; i++)
        if (uses[i].then)
            run(&pass->statements[i], uses[i].then);
    return end(pass);
}
