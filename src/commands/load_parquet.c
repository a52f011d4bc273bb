/*
 * The store of trail load that is a folder of Parquet files, by table, host and day: one for each
 * batch, whose rows are collected by as many threads as read traces.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/hash.h"
#include "commands/load_store.h"
#include "commands/table_files.h"
#include "export/parquet.h"
#include "export/parquet_ids.h"
#include "ui/cli.h"
#include "ui/read_all.h"

/* MARK: Files */

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
    (void)snprintf(parts_of, sizeof parts_of, "/%s/host=*/day=*/.load-*", table);
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
    print_message(errno == EWOULDBLOCK ? LOAD_IS_LOCKED : "%s: %m", place->name);
    return EXIT_INOUT;
}

/* MARK: What is there */

static int query_ids(struct load_place *place, const char *pattern)
{
    struct duckdb_options options = {.files = true};
    struct duckdb duckdb = {0};
    char *sql = pattern ? sql_statement_with(LOAD_SELECT_IDS "read_parquet(", pattern,
                                             ", union_by_name = true)" LOAD_ARE_IDS)
                        : NULL;
    int code = sql ? duckdb_begin(&duckdb, &options) : exit_no_memory();
    if (code == EXIT_GOOD)
        code = load_take_ids(&duckdb, sql, &place->known);
    duckdb_end(&duckdb);
    free(sql);
    return code;
}

/* Returns false if out of memory. */
static bool take_listed(struct load_place *place, const char *ids)
{
    bool good = true;
    for (const char *end = ids; *end; ids = end + 1) {
        end = ids + strcspn(ids, ",");
        good = good && load_add_id(&place->known, ids, (size_t)(end - ids));
    }
    return good;
}

/* The IDs in batches, and in exports into the same folder. Files of other programs do not list
 * them. */
static int take_ids(struct load_place *place)
{
    static const char files[] = "/traces/host=*/day=*/*.parquet";
    glob_t found = {0};
    int code = load_find_files(place->name, files, &found);
    bool listed = true;
    for (size_t i = 0; i < found.gl_pathc && listed && code == EXIT_GOOD; i++) {
        char *ids = parquet_ids(found.gl_pathv[i]);
        listed = ids != NULL;
        if (listed && !take_listed(place, ids))
            code = exit_no_memory();
        free(ids);
    }
    if (code == EXIT_GOOD && !listed) {
        char *pattern = load_pattern_in(place->name, files);
        code = query_ids(place, pattern);
        free(pattern);
    }
    globfree(&found);
    return code;
}

int load_open_parquet(struct load_place *place)
{
    if (strchr(place->name, '\\')) {
        print_message("%s: DuckDB reads no folder with a backslash in its name", place->name);
        return EXIT_USAGE;
    }
    int code = lock_folder(place);
    if (code == EXIT_GOOD)
        code = load_merge_clean(place->name);
    if (code == EXIT_GOOD)
        code = remove_incomplete(place->name);
    return code == EXIT_GOOD ? take_ids(place) : code;
}

/* MARK: Writing */

/* The files of a batch, and the rows that each thread has collected for them. */
struct batch_files {
    struct table_files files;
    struct parquet *parquet[TRAIL_TABLES];
    uint32_t wanted[TRAIL_TABLES];
    struct parquet_rows *(*rows)[TRAIL_TABLES]; /* by thread; NULL: none yet */
    size_t threads;
    atomic_bool failed; /* rows were not taken: no memory, or an output has failed */
};

static int open_table(struct batch_files *batch, int table, char *path)
{
    int code = table_files_open(&batch->files, table, path, true);
    if (code != EXIT_GOOD)
        return code;
    trail_sink sink = output_sink(&batch->files.outputs[table]);
    batch->wanted[table] = table_files_wanted(table);
    batch->parquet[table] =
        parquet_open(trail_table_get((trail_table_id)table), batch->wanted[table], &sink);
    return batch->parquet[table] ? EXIT_GOOD : exit_no_memory();
}

static int open_batch(struct batch_files *batch, const char *folder, const struct load_batch *of,
                      const struct traces *traces)
{
    uint64_t hash = 0;
    char name[32];
    int code = EXIT_GOOD;
    for (size_t i = 0; i < of->count; i++)
        hash = hash_mix(hash, strtoull(of->traces[i].id, NULL, 16));
    (void)snprintf(name, sizeof name, "load-%016" PRIx64, hash);
    for (int i = 0; i < TRAIL_TABLES && code == EXIT_GOOD; i++)
        code = open_table(batch, i, table_files_path(folder, i, traces->host, traces->day, name));
    batch->threads = read_all_threads(traces);
    batch->rows = calloc(batch->threads, sizeof *batch->rows);
    return code == EXIT_GOOD && !batch->rows ? exit_no_memory() : code;
}

static bool take_rows(void *context, size_t thread, const trail_rows *rows)
{
    struct batch_files *batch = context;
    struct parquet_rows **own = &batch->rows[thread][rows->table];
    if (!*own)
        *own = parquet_rows_new(batch->parquet[rows->table]);
    bool good = *own && parquet_rows_add(*own, rows);
    if (!good)
        batch->failed = true;
    return good;
}

/* Returns false if rows are missing. */
static bool end_rows(struct batch_files *batch, bool keep)
{
    bool good = true;
    for (size_t i = 0; batch->rows && i < batch->threads; i++)
        for (int table = 0; table < TRAIL_TABLES; table++)
            if (batch->rows[i][table])
                good = parquet_rows_end(batch->rows[i][table], keep && good) && good;
    free((void *)batch->rows);
    return good;
}

/* Returns false if a file is incomplete. */
static bool end_tables(struct batch_files *batch, bool keep)
{
    trail_error err;
    bool good = true;
    for (int i = 0; i < TRAIL_TABLES; i++)
        if (batch->parquet[i])
            good = parquet_close(batch->parquet[i], keep, &err) == 0 && good;
    return good;
}

/* `read`: all traces were; otherwise the reason has been reported, unless rows were not taken. */
static int close_batch(struct batch_files *batch, bool read, int code)
{
    bool made = end_rows(batch, read);
    made = end_tables(batch, read && made) && made;
    bool lost = batch->failed || (read && !made);
    if (code == EXIT_GOOD && lost && !table_files_lost(&batch->files))
        code = exit_no_memory();
    if (code == EXIT_GOOD && !read && !lost)
        code = EXIT_INOUT;
    return table_files_close(&batch->files, read && made, code);
}

int load_write_parquet(const struct load_place *place, struct load_batch *batch)
{
    struct batch_files files = {0};
    struct traces traces;
    int code = load_traces_begin(&traces, batch) ? open_batch(&files, place->name, batch, &traces)
                                                 : exit_no_memory();
    bool read =
        code == EXIT_GOOD && read_all(&traces, files.threads, files.wanted, take_rows, &files);
    code = close_batch(&files, read, code);
    load_traces_end(&traces, batch);
    return code;
}
