/* Loads DuckDB, and runs statements. */
#include "sql/duckdb.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ui/cli.h"

/* MARK: Loading */

/* Where npm puts the library below the folder given as --prefix. */
static const char below[] = "node_modules/" DUCKDB_PACKAGE "/libduckdb.so";

static void *load_path(const char *folder, const char *rest)
{
    char path[4096];
    int size = snprintf(path, sizeof path, "%s/%s", folder, rest);
    if (size < 0 || (size_t)size >= sizeof path || access(path, R_OK) != 0)
        return NULL;
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* $TRAIL_DUCKDB is the library, or a folder that contains it. If it is set, no other place is
 * tried. */
static void *load_chosen(const char *chosen)
{
    void *library = load_path(chosen, "libduckdb.so");
    if (!library)
        library = load_path(chosen, below);
    return library ? library : dlopen(chosen, RTLD_NOW | RTLD_LOCAL);
}

static void *load_library(void)
{
    const char *chosen = getenv("TRAIL_DUCKDB"), *data = getenv("XDG_DATA_HOME");
    const char *home = getenv("HOME");
    char folder[4096] = "";
    if (chosen && *chosen)
        return load_chosen(chosen);
    if (data && *data)
        (void)snprintf(folder, sizeof folder, "%s/trail", data);
    else if (home && *home)
        (void)snprintf(folder, sizeof folder, "%s/.local/share/trail", home);
    void *library = *folder ? load_path(folder, below) : NULL;
    if (!library && *folder)
        library = load_path(folder, "libduckdb.so");
    return library ? library : dlopen("libduckdb.so", RTLD_NOW | RTLD_LOCAL);
}

static int report_missing(void)
{
    const char *chosen = getenv("TRAIL_DUCKDB");
    if (TRAIL_IS_STATIC) {
        print_message(STATIC_LACKS("DuckDB", "this"));
        return EXIT_INOUT;
    }
    if (chosen && *chosen)
        print_message("no libduckdb.so at TRAIL_DUCKDB=%s", chosen);
    else
        print_message("this needs DuckDB's library, libduckdb.so, which was not found");
    fputs("trail: install it with:\n"
          "  " DUCKDB_INSTALL "\n"
          "trail: or set TRAIL_DUCKDB to the library or its folder\n",
          stderr);
    return EXIT_INOUT;
}

static bool find_symbol(struct duckdb *duckdb, const char *name, void *pointer)
{
    void *symbol = dlsym(duckdb->library, name);
    memcpy(pointer, &symbol, sizeof symbol);
    return symbol != NULL;
}

const char *duckdb_load(struct duckdb *duckdb)
{
    *duckdb = (struct duckdb){0};
    duckdb->library = load_library();
    if (!duckdb->library)
        return NULL;
#define DUCKDB_FIND(result, name, arguments)                                                       \
    if (!find_symbol(duckdb, "duckdb_" #name, (void *)&duckdb->name))                              \
        return "duckdb_" #name;
    DUCKDB_FUNCTIONS(DUCKDB_FIND)
#undef DUCKDB_FIND
    return NULL;
}

/* MARK: Opening */

static bool configure(struct duckdb *duckdb, void *config, const struct duckdb_options *options)
{
    char threads[16];
    (void)snprintf(threads, sizeof threads, "%u", options->threads);
    const struct {
        const char *name, *value;
    } settings[] = {
        {"access_mode", "read_write"},
        {"autoinstall_known_extensions", "false"},
        {"autoload_known_extensions", "false"},
        {"temp_directory", options->spill ? options->spill : ""},
        {"memory_limit", options->memory},
        {"threads", options->threads ? threads : NULL},
        {"enable_external_access", options->files ? "true" : "false"},
        {"preserve_insertion_order", options->unordered ? "false" : "true"},
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        if (!settings[i].value)
            continue;
        if (duckdb->set_config(config, settings[i].name, settings[i].value) != 0) {
            print_message("DuckDB refuses the value '%s' for %s", settings[i].value,
                          settings[i].name);
            return false;
        }
    }
    return true;
}

static int open_database(struct duckdb *duckdb, const struct duckdb_options *options)
{
    void *config = NULL;
    char *message = NULL;
    if (duckdb->create_config(&config) != 0 || !configure(duckdb, config, options)) {
        duckdb->destroy_config(&config);
        return EXIT_USAGE;
    }
    int failed = duckdb->open_ext(NULL, &duckdb->database, config, &message);
    duckdb->destroy_config(&config);
    if (failed != 0 || duckdb->connect(duckdb->database, &duckdb->connection) != 0) {
        print_message("DuckDB does not start: %s", message ? message : "DuckDB gave no reason");
        duckdb->free(message);
        return EXIT_INOUT;
    }
    return EXIT_GOOD;
}

int duckdb_begin(struct duckdb *duckdb, const struct duckdb_options *options)
{
    const char *lacks = duckdb_load(duckdb);
    if (!duckdb->library)
        return report_missing();
    if (lacks) {
        print_message("this libduckdb.so has no %s: version 1.5 is needed", lacks);
        return EXIT_INOUT;
    }
    return open_database(duckdb, options);
}

/* The library is not unloaded, because its threads may still be running. */
void duckdb_end(struct duckdb *duckdb)
{
    if (duckdb->connection)
        duckdb->disconnect(&duckdb->connection);
    if (duckdb->database)
        duckdb->close(&duckdb->database);
}

bool duckdb_print_error(const char *message)
{
    static const char memory[] = "Out of Memory Error: ";
    if (!message)
        message = "DuckDB gave no reason";
    if (strncmp(message, memory, strlen(memory)) != 0) {
        print_message_lines(message);
        return false;
    }
    print_message("the query needs more memory: %.*s", (int)strcspn(message + strlen(memory), "\n"),
                  message + strlen(memory));
    return true;
}

int duckdb_run(struct duckdb *duckdb, const char *sql)
{
    duckdb_result result;
    int code = EXIT_GOOD;
    if (duckdb->query(duckdb->connection, sql, &result) != 0) {
        (void)duckdb_print_error(duckdb->result_error(&result));
        code = EXIT_USAGE;
    }
    duckdb->destroy_result(&result);
    return code;
}

void sql_put_text(FILE *to, const char *text)
{
    putc('\'', to);
    for (; *text; text++)
        fprintf(to, *text == '\'' ? "''" : "%c", *text);
    putc('\'', to);
}

char *sql_statement_with(const char *before, const char *text, const char *after)
{
    char *sql = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&sql, &size);
    if (!to)
        return NULL;
    fputs(before, to);
    sql_put_text(to, text);
    fputs(after, to);
    if (fclose(to) == 0)
        return sql;
    free(sql);
    return NULL;
}
