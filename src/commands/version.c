#include "commands/version.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "commands/machine.h"
#include "host/libunwind.h"
#include "serve/http.h"
#include "sql/duckdb.h"
#include "ui/cli.h"

#define LONGEST_LOAD_MS 5000

/* What is known about a library. Below PIPE_BUF, so that a pipe passes it in one piece. */
struct library {
    bool usable;
    char text[2000]; /* version and file; or why it is not usable */
};

/* MARK: In a child */

/* Writes "VERSION, FILE": the file that contains a function. */
static void describe(struct library *library, const char *version, void *function)
{
    Dl_info place;
    char *path = NULL;
    if (dladdr(function, &place) && place.dli_fname)
        path = realpath(place.dli_fname, NULL);
    library->usable = true;
    (void)snprintf(library->text, sizeof library->text, "%s%s%s", version,
                   *version && path ? ", " : "", path ? path : "");
    free(path);
}

static void look_for_duckdb(struct library *library)
{
    struct duckdb duckdb;
    const char *lacks = duckdb_load(&duckdb);
    if (!duckdb.library)
        (void)snprintf(library->text, sizeof library->text,
                       "libduckdb.so not found; trail sql needs it");
    else if (lacks)
        (void)snprintf(library->text, sizeof library->text,
                       "libduckdb.so has no %s; trail sql needs version 1.5", lacks);
    else
        describe(library, duckdb.library_version(),
                 dlsym(duckdb.library, "duckdb_library_version"));
}

static void look_for_microhttpd(struct library *library)
{
    trail_error err = no_error();
    const char *version = http_library_version(&err);
    if (version)
        (void)snprintf(library->text, sizeof library->text, "%s", version);
    else
        (void)snprintf(library->text, sizeof library->text, "%s", err.message);
    library->usable = version != NULL;
}

static void look_for_libunwind(struct library *library)
{
    void *handle = dlopen(LIBUNWIND_FILE, RTLD_NOW | RTLD_LOCAL);
    void *function = handle ? dlsym(handle, "unw_backtrace") : NULL;
    if (function)
        describe(library, "", function);
    else
        (void)snprintf(library->text, sizeof library->text,
                       "%s; libtrail-record needs it for stacks whose bounds it does not know",
                       dlerror());
}

/* MARK: Outside */

/* Reads what the child has written. Returns false if it has ended, or the time is up, before
 * that. */
static bool await(int fd, struct library *library, bool *over)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    struct library found;
    int events = poll(&ready, 1, LONGEST_LOAD_MS);
    *over = events == 0;
    if (events <= 0 || read(fd, &found, sizeof found) != (ssize_t)sizeof found)
        return false;
    *library = found;
    library->text[sizeof library->text - 1] = '\0';
    return true;
}

/*
 * Libraries are loaded in a child: loading one runs its code, which may crash or never return, and
 * DuckDB's file may be on a disk that does not answer.
 */
static void look(void (*look_for)(struct library *library), struct library *library)
{
    int ends[2];
    bool over = false;
    if (pipe2(ends, O_CLOEXEC) < 0) {
        (void)snprintf(library->text, sizeof library->text, "not tried: no pipe");
        return;
    }
    pid_t child = fork();
    if (child == 0) {
        look_for(library);
        _exit(write(ends[1], library, sizeof *library) < 0);
    }
    (void)close(ends[1]);
    if (child < 0)
        (void)snprintf(library->text, sizeof library->text, "not tried: no process");
    else if (!await(ends[0], library, &over))
        (void)snprintf(library->text, sizeof library->text, "%s",
                       over ? "it does not load within 5 s" : "it crashes when it is loaded");
    (void)close(ends[0]);
    if (child > 0) {
        (void)kill(child, SIGKILL);
        /* A child in an uninterruptible read is left to init. */
        (void)waitpid(child, NULL, over ? WNOHANG : 0);
    }
}

void version_print(void)
{
    static const struct {
        const char *name, *todo;
        void (*look_for)(struct library *library);
    } rows[] = {
        {"DuckDB", DUCKDB_INSTALL, look_for_duckdb},
        {"libmicrohttpd", NULL, look_for_microhttpd},
        {"libunwind", "apt install libunwind8", look_for_libunwind},
    };
    char first[64];
    struct facts facts;
    (void)snprintf(first, sizeof first, "trail " TRAIL_VERSION " (%s)", version_commit);
    facts_begin(&facts, false);
    facts_open(&facts, first);
    if (TRAIL_IS_STATIC)
        fact(&facts, FACT_NOTE, "DuckDB", NULL, STATIC_LACKS("DuckDB", "trail sql"));
    for (size_t i = 0; i < sizeof rows / sizeof *rows && !TRAIL_IS_STATIC; i++) {
        struct library library = {0};
        look(rows[i].look_for, &library);
        fact(&facts, library.usable ? FACT_OK : FACT_NOTE, rows[i].name,
             library.usable ? NULL : rows[i].todo, "%s", library.text);
    }
    machine_switches_fact(&facts);
    facts_close(&facts);
}
