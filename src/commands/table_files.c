/* See table_files.h. */
#include "commands/table_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ui/cli.h"

char *table_files_path(const char *folder, int table, const char *host, int32_t day,
                       const char *name)
{
    char *path = NULL, text[32];
    time_t seconds = (time_t)day * 86400;
    struct tm parts;
    if (!gmtime_r(&seconds, &parts) || strftime(text, sizeof text, "%Y-%m-%d", &parts) == 0 ||
        asprintf(&path, "%s/%s/host=%s/day=%s/%s.parquet", folder,
                 trail_table_get((trail_table_id)table)->name, host, text, name) < 0)
        return NULL;
    return path;
}

/* The host and the day, which the folders have, are the last columns of all tables. */
uint32_t table_files_wanted(int table)
{
    return (UINT32_C(1) << (trail_table_get((trail_table_id)table)->column_count - 2)) - 1;
}

static int make_folder_of(struct folders *folders, char *path)
{
    char *name = strrchr(path, '/'); /* there is one */
    *name = '\0';
    int code = folders_make(folders, path);
    *name = '/';
    return code;
}

int table_files_open(struct table_files *files, int table, char *path, bool with_folder)
{
    if (!path)
        return exit_no_memory();
    files->paths[table] = path;
    int code = with_folder ? make_folder_of(&files->folders, path) : EXIT_GOOD;
    if (code == EXIT_GOOD)
        code = open_output_beside(&files->outputs[table], path);
    files->open[table] = code == EXIT_GOOD;
    return code;
}

bool table_files_lost(const struct table_files *files)
{
    for (int i = 0; i < TRAIL_TABLES; i++)
        if (files->outputs[i].reason)
            return true;
    return false;
}

/* Gives all files their final names or, on an error, removes the new ones. */
static int name_files(struct table_files *files)
{
    bool fresh[TRAIL_TABLES] = {false};
    bool good = true;
    trail_error err;
    _Static_assert(TRAIL_TABLE_TRACES == TRAIL_TABLES - 1, "it gets its name last");
    for (int i = 0; i < TRAIL_TABLES && good; i++)
        if (files->open[i])
            good = output_settle(&files->outputs[i], files->paths[i], &err);
    for (int i = 0; i < TRAIL_TABLES && good; i++) {
        fresh[i] = files->open[i] && access(files->paths[i], F_OK) != 0;
        if (files->open[i])
            good = output_name(&files->outputs[i], files->paths[i], &err);
    }
    if (good)
        return EXIT_GOOD;
    for (int i = 0; i < TRAIL_TABLES; i++)
        if (fresh[i])
            (void)unlink(files->paths[i]);
    return print_error_message(&err);
}

/* Reports the first error of writing, which the others usually have, too. */
static int print_lost(const struct table_files *files)
{
    for (int i = 0; i < TRAIL_TABLES; i++)
        if (files->open[i] && files->outputs[i].reason)
            return print_output_error(files->paths[i], files->outputs[i].reason);
    return EXIT_GOOD;
}

int table_files_close(struct table_files *files, bool made, int code)
{
    int named = made ? name_files(files) : print_lost(files);
    for (int i = 0; i < TRAIL_TABLES; i++) {
        if (files->open[i])
            output_drop(&files->outputs[i]);
        free(files->paths[i]);
    }
    folders_end(&files->folders, made && named == EXIT_GOOD);
    return worse_exit(code, named);
}
