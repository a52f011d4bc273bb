/* See scan.h. */
#include "sql/scan.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/part_name.h"
#include "ui/cli.h"
#include "ui/show.h"

/* MARK: The day */

/* Returns the wall clock at the first Sync of a v2 trace; 0: none; -1: *err is set. */
static int64_t wall_clock(trail_source *source, trail_error *err)
{
    const trail_event *events;
    int64_t seconds = 0;
    trail_clock_snapshot clocks;
    trail_reader *reader = trail_reader_open(source, NULL, err);
    if (!reader)
        return -1;
    if (trail_version_is_v2(trail_reader_version(reader))) {
        long count = trail_reader_next_batch(reader, &events);
        if (count == 1 && events[0].kind == TRAIL_SYNC && events[0].sync.final)
            count = trail_reader_next_batch(reader, &events); /* an error may follow it */
        if (count < 0) {
            *err = *trail_reader_error(reader);
            seconds = -1;
        }
        for (long i = 0; i < count && seconds == 0; i++)
            if (trail_reader_wall_clock(reader, &events[i], &clocks))
                seconds = clocks.wall_s;
    }
    trail_reader_close(reader);
    return seconds;
}

int32_t trace_day(struct input *input)
{
    trail_error err;
    struct stat file;
    struct part_name part;
    const char *path = part_name_parse(input->word, &part) ? part.file : input->word;
    trail_source *source = input_open(input, &err);
    int64_t seconds = source ? wall_clock(source, &err) : 0;
    if ((!source || seconds < 0) && err.code == TRAIL_NO_MEMORY)
        show_lacks();
    trail_source_close(source);
    if (seconds <= 0)
        seconds = !input->data && stat(path, &file) == 0 ? file.st_mtime : time(NULL);
    return (int32_t)(seconds / 86400);
}

/* MARK: Reading */

void scan_close(struct sql_scan *scan)
{
    trail_tables_close(scan->tables);
    trail_reader_close(scan->reader);
    trail_source_close(scan->source);
    *scan = (struct sql_scan){.next = scan->next};
}

void scan_report(struct sql_tables *tables, size_t file, const trail_error *err)
{
    pthread_mutex_lock(&tables->lock);
    if (!tables->reported[file])
        tables->code = worse_exit(tables->code, print_error(tables->inputs[file].word, err));
    tables->reported[file] = true;
    pthread_mutex_unlock(&tables->lock);
}

/* IDs need a complete pass over every trace, so they are computed when a query first uses one. */
static void find_ids(struct sql_tables *tables)
{
    pthread_mutex_lock(&tables->lock);
    for (size_t i = 0; i < tables->count && !*tables->ids[i]; i++)
        input_trace_id(&tables->inputs[i], tables->host, tables->ids[i]);
    pthread_mutex_unlock(&tables->lock);
}

/* Whether no earlier file has the same ID: a trace given twice would be joined with itself. */
static bool is_first(const struct sql_tables *tables, size_t file, trail_error *err)
{
    size_t first = 0;
    while (strcmp(tables->ids[first], tables->ids[file]) != 0)
        first++;
    if (first == file)
        return true;
    *err = no_error();
    err->code = TRAIL_USAGE;
    (void)snprintf(err->message, sizeof err->message, "the same trace as %s; it is left out",
                   tables->inputs[first].word);
    return false;
}

/* Whether a column is wanted that all tables have, counted from the last one. */
static bool wants_common(const uint32_t wanted[TRAIL_TABLES], size_t from_last)
{
    for (int i = 0; i < TRAIL_TABLES; i++)
        if ((wanted[i] >> (trail_table_get((trail_table_id)i)->column_count - from_last) & 1) != 0)
            return true;
    return false;
}

bool scan_open(struct sql_scan *scan, struct sql_tables *tables, size_t file,
               const uint32_t wanted[TRAIL_TABLES], trail_error *err)
{
    if (wants_common(wanted, TRAIL_TABLE_COMMON)) {
        find_ids(tables);
        if (!is_first(tables, file, err))
            return false;
    }
    trail_tables_options options = {
        .trace = tables->ids[file],
        .file = tables->files[file],
        .host = tables->host,
        .day = tables->day,
        .has_from = tables->window.has_from,
        .has_to = tables->window.has_to,
        .from_ns = tables->window.from_ns,
        .to_ns = tables->window.to_ns,
    };
    memcpy(options.wanted, wanted, sizeof options.wanted);
    if (!tables->has_day && wants_common(wanted, 1))
        options.day = trace_day(&tables->inputs[file]);
    scan->source = input_open(&tables->inputs[file], err);
    if (!scan->source)
        return false;
    scan->reader = trail_reader_open(scan->source, &tables->reader, err);
    if (!scan->reader)
        return false;
    scan->tables = trail_tables_open(scan->reader, &options, err);
    return scan->tables != NULL;
}

/* MARK: Counting */

/* Counts up to the end of the next batch. */
static long count_on(struct sql_scan *scan)
{
    const trail_event *events;
    trail_reader_stats stats;
    long more = trail_reader_next_batch(scan->reader, &events);
    trail_reader_get_stats(scan->reader, &stats);
    scan->counted = stats.events;
    return more;
}

bool scan_open_count(struct sql_scan *scan, struct sql_tables *tables, size_t file)
{
    trail_error err;
    trail_reader_options options = tables->reader;
    options.verdict_only = true;
    if (tables->count > 1) /* each has a thread of DuckDB */
        options.threads = 1;
    scan->source = input_open(&tables->inputs[file], &err);
    if (!scan->source)
        return false;
    scan->reader = trail_reader_open(scan->source, &options, &err);
    return scan->reader && count_on(scan) >= 0;
}

int scan_count(struct sql_scan *scan, size_t *count, trail_error *err)
{
    long more = 1;
    while (more > 0 && scan->counted - scan->given < TRAIL_TABLE_ROWS)
        more = count_on(scan);
    uint64_t left = scan->counted - scan->given;
    *count = left < TRAIL_TABLE_ROWS ? (size_t)left : TRAIL_TABLE_ROWS;
    scan->given += *count;
    if (*count > 0)
        return 1;
    if (more < 0)
        *err = *trail_reader_error(scan->reader);
    return (int)more;
}

/* MARK: Rows */

void *scan_type(const struct duckdb *duckdb, const trail_table_column *column)
{
    static const int types[] = {
        [TRAIL_CELL_I64] = DUCKDB_BIGINT,   [TRAIL_CELL_I32] = DUCKDB_INTEGER,
        [TRAIL_CELL_BOOL] = DUCKDB_BOOLEAN, [TRAIL_CELL_TEXT] = DUCKDB_VARCHAR,
        [TRAIL_CELL_DATE] = DUCKDB_DATE,
    };
    const char *words[256];
    uint64_t count = 0;
    if (column->cell != TRAIL_CELL_ENUM)
        return duckdb->create_logical_type(types[column->cell]);
    for (; column->words[count]; count++)
        words[count] = column->words[count];
    return duckdb->create_enum_type(words, count);
}

static void give_texts(const struct duckdb *duckdb, void *vector, const trail_values *values,
                       size_t count, bool copies)
{
    duckdb_text *to = duckdb->vector_get_data(vector);
    const trail_string *from = values->text;
    for (size_t i = 0; i < count; i++) {
        if (from[i].size <= DUCKDB_INLINE_TEXT) {
            to[i] = (duckdb_text){.size = (uint32_t)from[i].size};
            if (from[i].size > 0) /* the data of an empty text may be NULL */
                memcpy(to[i].start, from[i].data, from[i].size);
        } else if (copies || values->passes || from[i].size > UINT32_MAX) {
            duckdb->vector_assign_string_element_len(vector, i, from[i].data, from[i].size);
        } else {
            to[i].size = (uint32_t)from[i].size;
            memcpy(to[i].start, from[i].data, sizeof to[i].start);
            to[i].data = from[i].data;
        }
    }
}

size_t scan_cell_size(trail_cell cell)
{
    return cell == TRAIL_CELL_TEXT                             ? sizeof(trail_string)
           : cell == TRAIL_CELL_I64                            ? 8
           : cell == TRAIL_CELL_I32 || cell == TRAIL_CELL_DATE ? 4
                                                               : 1;
}

void scan_give(const struct duckdb *duckdb, void *vector, trail_cell cell,
               const trail_values *values, size_t count, bool copies)
{
    if (cell == TRAIL_CELL_TEXT)
        give_texts(duckdb, vector, values, count, copies);
    else
        memcpy(duckdb->vector_get_data(vector), values->any, count * scan_cell_size(cell));
    if (!values->valid)
        return;
    duckdb->vector_ensure_validity_writable(vector);
    memcpy(duckdb->vector_get_validity(vector), values->valid, (count + 63) / 64 * 8);
}
