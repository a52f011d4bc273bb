/*
 * trail view --perfetto: Perfetto's page, in the browser, reads the export of a trace from this
 * machine. The export is in a temporary file, which no other user can open.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/cpu_quota.h"
#include "base/output.h"
#include "base/temporary.h"
#include "base/text.h"
#include "commands/view_perfetto.h"
#include "ui/cli.h"
#include "ui/trace_file.h"

/* That page's policy lets it read from this address alone. */
#define SITE "https://ui.perfetto.dev"
enum { SITE_PORT = 9001 };

#define PATH "/trace.pftrace"

#define FILE_TITLE "a temporary file (see TMPDIR)"

/* The export: a file, which is mapped when it is complete. */
struct exported {
    struct output file;
    void *data;
    size_t size;
};

static int map(struct exported *export)
{
    struct stat status;
    int reason = export->file.reason;
    if (reason == 0 && fstat(export->file.fd, &status) != 0)
        reason = errno;
    if (reason != 0)
        return print_output_error(FILE_TITLE, reason);
    export->size = (size_t)status.st_size;
    export->data = mmap(NULL, export->size, PROT_READ, MAP_PRIVATE, export->file.fd, 0);
    return export->data != MAP_FAILED ? EXIT_GOOD : exit_no_memory();
}

/* Returns an exit code, EXIT_BAD if only the good part of a damaged trace was exported. */
static int make(struct exported *export, const char *word)
{
    trail_error err = no_error();
    trail_reader_options reading = {.partial = true, .ahead = true};
    trail_export_options options = {.title = path_name(source_title(word)),
                                    .perfetto_compressed = true,
                                    .perfetto_threads = cpu_quota_usable()};
    trail_export_stats stats = {0};
    trail_sink sink = output_sink(&export->file);
    int code = EXIT_GOOD;
    trail_source *source = open_source(word, &err);
    trail_reader *reader = source ? trail_reader_open(source, &reading, &err) : NULL;
    if (!reader || trail_export_perfetto(reader, &options, &sink, &stats, &err) < 0)
        code = export->file.reason ? EXIT_GOOD : print_error(word, &err);
    bool made = reader && (code == EXIT_GOOD || code == EXIT_BAD);
    trail_reader_close(reader);
    trail_source_close(source);
    return made ? worse_exit(code, map(export)) : code;
}

/* No client knows the address before the export is there. */
static void answer(void *context, const struct http_request *asked, struct http_answer *answered)
{
    static const char none[] = "There is only " PATH ".\n";
    const struct exported *export = context;
    bool is = strcmp(asked->path, PATH) == 0;
    *answered = (struct http_answer){.status = is ? 0 : 404,
                                     .type = is ? "application/octet-stream" : NULL,
                                     .data = is ? export->data : none,
                                     .size = is ? export->size : sizeof none - 1};
}

static void serve(const struct view_server *server, const struct http *http,
                  const sigset_t *signals)
{
    char url[200];
    (void)snprintf(url, sizeof url, SITE "/#!/?url=http://%s:%u" PATH "%%3Ftoken%%3D%s",
                   view_server_host(server), http_port(http), http_token(http));
    view_server_run(server, http, url, signals);
}

int view_perfetto(const struct view_server *server, const char *word)
{
    struct view_server at = *server;
    struct exported export = {.file.fd = temporary_file(), .data = MAP_FAILED};
    struct http_options options = {.handler = answer, .context = &export, .guest = SITE};
    struct http *http;
    sigset_t signals;
    if (export.file.fd < 0)
        return print_output_error(FILE_TITLE, errno);
    if (!at.has_port)
        at.port = SITE_PORT;
    view_server_block(&signals);
    int code = view_server_start(&at, &options, word, &http);
    if (code != EXIT_GOOD) {
        output_drop(&export.file);
        return code;
    }
    if (at.has_port && http_port(http) != SITE_PORT)
        print_message("the page of Perfetto can only read from port %d", SITE_PORT);
    /* Only the server's threads keep them blocked: Ctrl-C ends the making, too. */
    (void)sigprocmask(SIG_UNBLOCK, &signals, NULL);
    code = make(&export, word);
    (void)sigprocmask(SIG_BLOCK, &signals, NULL);
    if (export.data != MAP_FAILED) {
        serve(&at, http, &signals);
        http_stop(http);
        (void)munmap(export.data, export.size);
    } else {
        http_stop(http);
    }
    output_drop(&export.file);
    return code;
}
