/*
 * trail view --perfetto: Perfetto's page, in the browser, reads the export of a trace from this
 * machine. The export is in a temporary file, which no other user can open.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cpu_quota.h"
#include "base/output.h"
#include "base/temporary.h"
#include "base/text.h"
#include "commands/view_server.h"
#include "ui/cli.h"
#include "ui/trace_file.h"

/* That page's policy lets it read from this address alone. */
#define SITE "https://ui.perfetto.dev"
enum { SITE_PORT = 9001 };

#define PATH "/trace.pftrace"

/* The export, mapped. */
struct export
{
    void *data;
    size_t size;
};

static bool write_fd(void *context, const void *data, size_t size)
{
    return write_all(*(int *)context, data, size);
}

/* Returns an exit code; *made: there is an export, if of the good part of a damaged trace. */
static int export_to(int fd, const char *word, bool *made)
{
    trail_error err = no_error();
    trail_reader_options reading = {.partial = true, .ahead = true};
    trail_export_options options = {.title = path_name(source_title(word)),
                                    .perfetto_compressed = true,
                                    .perfetto_threads = cpu_quota_usable()};
    trail_export_stats stats = {0};
    trail_sink sink = {.write = write_fd, .context = &fd};
    int code = EXIT_GOOD;
    trail_source *source = open_source(word, &err);
    trail_reader *reader = source ? trail_reader_open(source, &reading, &err) : NULL;
    if (!reader || trail_export_perfetto(reader, &options, &sink, &stats, &err) < 0)
        code = print_error(word, &err);
    *made = reader && (code == EXIT_GOOD || code == EXIT_BAD);
    trail_reader_close(reader);
    trail_source_close(source);
    return code;
}

static int map(int fd, struct export *export)
{
    struct stat status;
    export->size = fstat(fd, &status) == 0 ? (size_t)status.st_size : 0;
    export->data =
        export->size > 0 ? mmap(NULL, export->size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    if (export->data != MAP_FAILED)
        return EXIT_GOOD;
    return print_output_error("a temporary file", errno);
}

static void answer(void *context, const struct http_request *asked, struct http_answer *answered)
{
    static const char none[] = "There is only " PATH ".\n";
    const struct export *export = context;
    bool is = strcmp(asked->path, PATH) == 0;
    *answered = (struct http_answer){.status = is ? 0 : 404,
                                     .type = is ? "application/octet-stream" : NULL,
                                     .data = is ? export->data : none,
                                     .size = is ? export->size : sizeof none - 1};
}

static int serve(const struct view_server *server, struct export *export, const char *word)
{
    struct http_options options = {.handler = answer, .context = export, .guest = SITE};
    struct http *http;
    sigset_t signals;
    char url[200];
    view_server_block(&signals);
    int code = view_server_start(server, &options, word, &http);
    if (code != EXIT_GOOD)
        return code;
    (void)snprintf(url, sizeof url, SITE "/#!/?url=http://%s:%u" PATH "%%3Ftoken%%3D%s",
                   server->host[0] ? server->host : "127.0.0.1", http_port(http), http_token(http));
    view_server_run(server, http, url, &signals);
    http_stop(http);
    return EXIT_GOOD;
}

int view_perfetto(const struct view_server *server, const char *word)
{
    struct view_server at = *server;
    struct export export;
    int fd = temporary_file();
    if (!at.host[0] && at.port == 0)
        at.port = SITE_PORT;
    if (fd < 0)
        return print_output_error("a temporary file", errno);
    bool made;
    int code = export_to(fd, word, &made);
    int served = made ? map(fd, &export) : code;
    (void)close(fd);
    if (made && served == EXIT_GOOD) {
        served = serve(&at, &export, word);
        (void)munmap(export.data, export.size);
    }
    return worse_exit(code, served);
}
