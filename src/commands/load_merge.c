/*
 * Merges the small Parquet files of each host and day, as frequent loads and exports leave them.
 *
 * The folder of a table's day is replaced at once: DIR/.trail-merge gets the merged file and links
 * to the files that stay, and exchanges its name with that folder. A listing therefore has each row
 * once at any time, and what a killed run leaves in DIR/.trail-merge is superfluous, before and
 * after the exchange. The table `traces` is last: files of a batch are complete while it has
 * theirs.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/text.h"
#include "commands/load_store.h"
#include "export/parquet_ids.h"
#include "ui/cli.h"

/* Bytes of a batch in all tables, up to which its files are small, and of the batches that are
 * merged into one. */
#define SMALL_SIZE  (UINT64_C(1) << 27)
#define MERGED_SIZE (UINT64_C(1) << 29)

/* The end of a COPY statement, but for the last bracket. */
#define PARQUET_FORMAT                                                                             \
    " (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1, DICTIONARY_SIZE_LIMIT 2000"

/* This many small files may stay: merging each load's would write a day's rows over and over. */
#define SMALL_COUNT ((size_t)16)

struct batch {
    const char *name; /* of its file in each table */
    uint64_t size;
};

struct merge {
    const char *folder;
    char *beside; /* FOLDER/.trail-merge */
    struct duckdb *duckdb;
    struct load_merged *merged;
};

/* MARK: Paths */

static char *join(const char *folder, const char *name)
{
    char *path = NULL;
    return asprintf(&path, "%s/%s", folder, name) >= 0 ? path : NULL;
}

/* `day`: "host=HOST/day=DAY". */
static char *table_day(const char *folder, int table, const char *day)
{
    char *path = NULL;
    const char *name = trail_table_get((trail_table_id)table)->name;
    return asprintf(&path, "%s/%s/%s", folder, name, day) >= 0 ? path : NULL;
}

static int failed(const char *path)
{
    print_message("%s: cannot be merged: %s", path, strerror(errno));
    return EXIT_INOUT;
}

/*
 * Calls `take` with each entry of a folder, also hidden ones, until it does not return EXIT_GOOD.
 */
static int each_entry(const char *folder, int (*take)(void *context, const char *path),
                      void *context)
{
    static const char *const patterns[] = {"/*", "/.[!.]*"};
    int code = EXIT_GOOD;
    for (size_t i = 0; i < 2 && code == EXIT_GOOD; i++) {
        glob_t found = {0};
        code = load_find_files(folder, patterns[i], &found);
        for (size_t j = 0; j < found.gl_pathc && code == EXIT_GOOD; j++)
            code = take(context, found.gl_pathv[j]);
        globfree(&found);
    }
    return code;
}

/* MARK: The folder beside */

static int take_unlinked(void *context, const char *path)
{
    (void)context;
    return unlink(path) == 0 ? EXIT_GOOD : failed(path);
}

int load_merge_clean(const char *folder)
{
    char *beside = join(folder, LOAD_MERGE_FOLDER);
    if (!beside)
        return exit_no_memory();
    int code = each_entry(beside, take_unlinked, NULL);
    if (code == EXIT_GOOD && rmdir(beside) < 0 && errno != ENOENT)
        code = failed(beside);
    free(beside);
    return code;
}

/* The files to be merged, of one table and day. */
struct files {
    char **paths;
    size_t count;
    const char *to; /* the folder in which the others get a link or their name */
};

static bool is_merged(const struct files *files, const char *path)
{
    for (size_t i = 0; i < files->count; i++)
        if (strcmp(path_name(files->paths[i]), path_name(path)) == 0)
            return true;
    return false;
}

/* An incomplete file, whose name is hidden, gets no link: its writer could not rename that. */
static int take_linked(void *context, const char *path)
{
    const struct files *files = context;
    if (is_merged(files, path) || *path_name(path) == '.')
        return EXIT_GOOD;
    char *to = join(files->to, path_name(path));
    int code = !to ? exit_no_memory() : link(path, to) == 0 ? EXIT_GOOD : failed(path);
    free(to);
    return code;
}

/* A file without a link was created since, by an export. */
static int take_moved(void *context, const char *path)
{
    const struct files *files = context;
    if (is_merged(files, path))
        return take_unlinked(NULL, path);
    char *to = join(files->to, path_name(path));
    int code = to ? EXIT_GOOD : exit_no_memory();
    if (to && syscall(SYS_renameat2, AT_FDCWD, path, AT_FDCWD, to, RENAME_NOREPLACE) < 0)
        code = errno == EEXIST   ? take_unlinked(NULL, path)
               : errno == ENOENT ? EXIT_GOOD /* the export has removed it */
                                 : failed(path);
    free(to);
    return code;
}

/* MARK: One table of a day */

/* The merged file lists the IDs if all of them do, which only those of the table `traces` can. */
static void put_ids(FILE *text, const struct files *files)
{
    char *ids = NULL, *list = NULL;
    size_t size = 0, i;
    FILE *to = open_memstream(&list, &size);
    for (i = 0; to && i < files->count && (ids = parquet_ids(files->paths[i])); i++) {
        fprintf(to, i > 0 ? ",%s" : "%s", ids);
        free(ids);
    }
    if (to && fclose(to) == 0 && i == files->count) {
        fputs(", KV_METADATA {" PARQUET_IDS ": ", text);
        sql_put_text(text, list);
        fputs("}", text);
    }
    free(list);
}

static int copy_files(struct duckdb *duckdb, const struct files *files, const char *to)
{
    char *sql = NULL;
    size_t size = 0;
    FILE *text = open_memstream(&sql, &size);
    bool good = text != NULL;
    if (!text)
        return exit_no_memory();
    fputs("COPY (FROM read_parquet([", text);
    for (size_t i = 0; i < files->count; i++) {
        char *pattern = load_pattern_in(files->paths[i], "");
        good = good && pattern;
        fputs(i > 0 ? "," : "", text);
        sql_put_text(text, pattern ? pattern : "");
        free(pattern);
    }
    /* Versions of trail may differ in their columns. */
    fputs("], union_by_name = true, hive_partitioning = false)) TO ", text);
    sql_put_text(text, to);
    fputs(PARQUET_FORMAT, text);
    put_ids(text, files);
    fputs(")", text);
    good = fclose(text) == 0 && good;
    int code = !good ? exit_no_memory() : duckdb_run(duckdb, sql) == 0 ? EXIT_GOOD : EXIT_INOUT;
    free(sql);
    return code;
}

/* A power failure must not take the rows after the merged files are gone. */
static int sync_file(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool good = fd >= 0 && fsync(fd) == 0;
    int code = good ? EXIT_GOOD : failed(path);
    if (fd >= 0)
        (void)close(fd);
    return code;
}

/* Returns an exit code after a message. */
static int exchange(const char *a, const char *b)
{
    return syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE) == 0 ? EXIT_GOOD
                                                                                  : failed(b);
}

/* Makes the folder that takes the place of the day's. A link would itself be exchanged. */
static int make_beside(const struct merge *merge, const char *day)
{
    struct stat folder;
    int result = lstat(day, &folder);
    if (result == 0 && !S_ISDIR(folder.st_mode)) {
        errno = ENOTDIR;
        result = -1;
    }
    if (result < 0)
        return failed(day);
    return mkdir(merge->beside, 0777) == 0 && chmod(merge->beside, folder.st_mode & 07777) == 0
               ? EXIT_GOOD
               : failed(merge->beside);
}

/* The merged files are removed once the folder with the new one has taken its place. */
static int replace_files(const struct merge *merge, const char *day, const char *name,
                         struct files *files)
{
    char *to = join(merge->beside, name);
    if (!to)
        return exit_no_memory();
    files->to = merge->beside;
    int code = make_beside(merge, day);
    if (code == EXIT_GOOD)
        code = copy_files(merge->duckdb, files, to);
    if (code == EXIT_GOOD)
        code = sync_file(to);
    if (code == EXIT_GOOD)
        code = each_entry(day, take_linked, files);
    if (code == EXIT_GOOD)
        code = sync_file(merge->beside);
    if (code == EXIT_GOOD)
        code = exchange(merge->beside, day);
    if (code == EXIT_GOOD) {
        files->to = day;
        code = each_entry(merge->beside, take_moved, files);
        merge->merged->from += files->count;
        merge->merged->into++;
    }
    free(to);
    return worse_exit(code, load_merge_clean(merge->folder));
}

/* After an interrupted run, a table may have been merged before. */
static int merge_table(const struct merge *merge, const char *day, const char *name,
                       const struct batch *batches, size_t count)
{
    struct files files = {.paths = calloc(count + 1, sizeof *files.paths)};
    int code = EXIT_GOOD;
    if (!files.paths)
        return exit_no_memory();
    for (size_t i = 0; i < count && code == EXIT_GOOD; i++) {
        char *path = join(day, batches[i].name);
        if (!path)
            code = exit_no_memory();
        else if (access(path, F_OK) == 0)
            files.paths[files.count++] = path;
        else
            free(path);
    }
    if (code == EXIT_GOOD && files.count > 0)
        code = replace_files(merge, day, name, &files);
    for (size_t i = 0; i < files.count; i++)
        free(files.paths[i]);
    free(files.paths);
    return code;
}

/* MARK: A day */

static int merge_batches(const struct merge *merge, const char *day, const struct batch *batches,
                         size_t count)
{
    uint64_t hash = 0;
    char name[40];
    int code = EXIT_GOOD;
    for (size_t i = 0; i < count; i++)
        hash = hash_mix(hash, hash_bytes(batches[i].name, strlen(batches[i].name)));
    (void)snprintf(name, sizeof name, "merge-%016" PRIx64 ".parquet", hash);
    for (int i = 0; i < TRAIL_TABLES && code == EXIT_GOOD; i++) {
        char *folder = table_day(merge->folder, i, day);
        code = folder ? merge_table(merge, folder, name, batches, count) : exit_no_memory();
        free(folder);
    }
    return code;
}

/* Returns the bytes of a batch in all tables. */
static uint64_t batch_size(const struct merge *merge, const char *day, const char *name)
{
    uint64_t size = 0;
    for (int i = 0; i < TRAIL_TABLES; i++) {
        struct stat file;
        char *folder = table_day(merge->folder, i, day), *path = folder ? join(folder, name) : NULL;
        if (path && stat(path, &file) == 0)
            size += (uint64_t)file.st_size;
        free(path);
        free(folder);
    }
    return size;
}

/* `found`: the files of the table `traces`. */
static int merge_found(const struct merge *merge, const char *day, const glob_t *found)
{
    struct batch *small = calloc(found->gl_pathc + 1, sizeof *small);
    size_t count = 0;
    int code = small ? EXIT_GOOD : exit_no_memory();
    for (size_t i = 0; small && i < found->gl_pathc; i++) {
        const char *name = path_name(found->gl_pathv[i]);
        uint64_t size = batch_size(merge, day, name);
        if (size < SMALL_SIZE)
            small[count++] = (struct batch){name, size};
    }
    for (size_t i = 0, begin; count > SMALL_COUNT && i < count && code == EXIT_GOOD;) {
        uint64_t size = 0;
        for (begin = i; i < count && size + small[i].size <= MERGED_SIZE; i++)
            size += small[i].size;
        if (i - begin > 1)
            code = merge_batches(merge, day, small + begin, i - begin);
    }
    free(small);
    return code;
}

static int take_day(void *context, const char *path)
{
    const struct merge *merge = context;
    const char *day = path + strlen(merge->folder) + strlen("/traces/");
    glob_t found = {0};
    int code = load_find_files(path, "/*.parquet", &found);
    if (code == EXIT_GOOD)
        code = merge_found(merge, day, &found);
    globfree(&found);
    return code;
}

int load_merge_parquet(const struct load_place *place, struct load_merged *merged)
{
    struct duckdb_options options = {.files = true, .unordered = true};
    struct duckdb duckdb = {0};
    struct merge merge = {.folder = place->name, .duckdb = &duckdb, .merged = merged};
    glob_t days = {0};
    merge.beside = join(place->name, LOAD_MERGE_FOLDER);
    int code = merge.beside ? duckdb_begin(&duckdb, &options) : exit_no_memory();
    if (code == EXIT_GOOD)
        code = load_find_files(place->name, "/traces/host=*/day=*", &days);
    for (size_t i = 0; i < days.gl_pathc && code == EXIT_GOOD; i++)
        code = take_day(&merge, days.gl_pathv[i]);
    globfree(&days);
    duckdb_end(&duckdb);
    free(merge.beside);
    return code;
}
