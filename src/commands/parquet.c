#include "commands/parquet.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/output.h"
#include "sql/pass.h"
#include "ui/cli.h"
#include "ui/folders.h"

/* Written under temporary names until all files are complete. */
struct parquet {
    char *beside[TRAIL_TABLES], *paths[TRAIL_TABLES]; /* NULL: not this table */
    struct folders folders;
};

static char *path_of(const struct sql_tables *sql, int table, const char *folder, const char *name)
{
    char *path = NULL, day[32];
    time_t seconds = (time_t)sql->day * 86400;
    struct tm parts;
    if (!gmtime_r(&seconds, &parts) || strftime(day, sizeof day, "%Y-%m-%d", &parts) == 0 ||
        asprintf(&path, "%s/%s/host=%s/day=%s/%s.parquet", folder,
                 trail_table_get((trail_table_id)table)->name, sql->host, day, name) < 0)
        return NULL;
    return path;
}

/* DuckDB opens the file by name. */
static char *part_of(const char *path)
{
    char ending[32];
    (void)snprintf(ending, sizeof ending, "%ld.part", (long)getpid());
    return output_hidden(path, ending);
}

/* Leaves out columns whose values are in the folders' names. */
static char *copy_statement(int table, const char *path, bool in_folder)
{
    char *statement = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&statement, &size);
    if (!to)
        return NULL;
    fprintf(to, "COPY (SELECT *%s FROM %s) TO ", in_folder ? " EXCLUDE (host, day)" : "",
            trail_table_get((trail_table_id)table)->name);
    sql_put_text(to, path);
    fputs(PARQUET_FORMAT, to);
    return fclose(to) == 0 ? statement : NULL;
}

/* Takes the path, which may be NULL. Returns a statement that the caller frees; NULL: out of
 * memory. */
static char *copy_to(struct parquet *parquet, int table, char *path, bool in_folder)
{
    parquet->paths[table] = path;
    char *beside = parquet->beside[table] = path ? part_of(path) : NULL;
    return beside ? copy_statement(table, beside, in_folder) : NULL;
}

/* Gives all files their final names or, on an error, removes the new ones. */
static int name_all(const struct parquet *parquet)
{
    bool fresh[TRAIL_TABLES] = {false};
    int code = EXIT_GOOD;
    _Static_assert(TRAIL_TABLE_TRACES == TRAIL_TABLES - 1, "it gets its name last");
    for (int i = 0; i < TRAIL_TABLES && code == EXIT_GOOD; i++) {
        fresh[i] = parquet->paths[i] && access(parquet->paths[i], F_OK) != 0;
        if (parquet->paths[i] && rename(parquet->beside[i], parquet->paths[i]) < 0)
            code = print_output_error(parquet->paths[i], errno);
    }
    for (int i = 0; i < TRAIL_TABLES && code != EXIT_GOOD; i++)
        if (fresh[i])
            (void)unlink(parquet->paths[i]);
    return code;
}

static int finish(struct parquet *parquet, int code)
{
    if (code == EXIT_GOOD)
        code = name_all(parquet);
    for (int i = 0; i < TRAIL_TABLES; i++) {
        if (code != EXIT_GOOD && parquet->beside[i])
            (void)unlink(parquet->beside[i]);
        free(parquet->beside[i]);
        free(parquet->paths[i]);
    }
    folders_end(&parquet->folders, code == EXIT_GOOD);
    return code;
}

int parquet_write_one(struct sql_tables *sql, trail_table_id table, const char *path)
{
    struct parquet parquet = {0};
    char *statement = copy_to(&parquet, (int)table, strdup(path), false);
    int code = statement ? duckdb_run(sql->duckdb, statement) : exit_no_memory();
    free(statement);
    return finish(&parquet, code == EXIT_GOOD ? code : EXIT_INOUT);
}

/* Creates the folder of a file. */
static int make_folder_of(struct folders *folders, char *path)
{
    char *name = strrchr(path, '/');
    *name = '\0';
    int code = folders_make(folders, path);
    *name = '/';
    return code;
}

int parquet_write(struct sql_tables *sql, const char *folder, const char *name)
{
    struct parquet parquet = {0};
    struct sql_use uses[TRAIL_TABLES] = {0};
    char *statements[TRAIL_TABLES] = {0};
    int code = EXIT_GOOD;
    for (int i = 0; i < TRAIL_TABLES && code == EXIT_GOOD; i++) {
        char *path = path_of(sql, i, folder, name);
        uses[i].sql = statements[i] = copy_to(&parquet, i, path, true);
        code = statements[i] ? make_folder_of(&parquet.folders, path) : exit_no_memory();
    }
    if (code == EXIT_GOOD)
        code = sql_pass(sql, uses);
    for (int i = 0; i < TRAIL_TABLES; i++)
        free(statements[i]);
    return finish(&parquet, code);
}
