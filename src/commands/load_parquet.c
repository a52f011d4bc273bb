/*
 * The store of trail load that is a folder of Parquet files, by table, host and day: one for each
 * batch.
 */
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
#include "commands/load_store.h"
#include "commands/table_parquet.h"
#include "export/parquet_ids.h"
#include "ui/cli.h"

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

static int open_batch(struct table_parquet *to, const char *folder, const struct load_batch *of,
                      const struct traces *traces)
{
    uint64_t hash = 0;
    char name[32];
    int code = EXIT_GOOD;
    for (size_t i = 0; i < of->count; i++)
        hash = hash_mix(hash, strtoull(of->traces[i].id, NULL, 16));
    (void)snprintf(name, sizeof name, "load-%016" PRIx64, hash);
    for (int i = 0; i < TRAIL_TABLES && code == EXIT_GOOD; i++)
        code =
            table_parquet_open(to, i, table_files_wanted(i),
                               table_files_path(folder, i, traces->host, traces->day, name), true);
    return code;
}

int load_write_parquet(const struct load_place *place, struct load_batch *batch)
{
    struct table_parquet to = {0};
    struct traces traces;
    int code = load_traces_begin(&traces, batch) ? open_batch(&to, place->name, batch, &traces)
                                                 : exit_no_memory();
    code = table_parquet_write(&to, &traces, false, code);
    load_traces_end(&traces, batch);
    return code;
}
