/*
 * The store of trail load that is a ClickHouse server. clickhouse-client, which every installation
 * has, receives the rows: twelve clients, one per table, run in parallel while the traces are read
 * once.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "commands/load_store.h"
#include "ui/cli.h"
#include "ui/trace_file.h"

extern char **environ;

#define CLIENT "clickhouse-client"

/* A running client. Its input is a socket: writing to one whose reader has exited need not raise
 * SIGPIPE. */
struct client {
    const char *place;
    char query[128];
    pid_t pid; /* 0: not started */
    int in;    /* what it reads */
    bool failed;
};

/* MARK: The client */

/* Starts the client with `in` as its input and `out` as its output; -1: inherited from this
 * process. Returns an error number. */
static int spawn(struct client *client, char *const *argv, int in, int out)
{
    posix_spawn_file_actions_t actions;
    int reason = posix_spawn_file_actions_init(&actions);
    if (reason != 0)
        return reason;
    (void)posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
    if (out >= 0)
        (void)posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    reason = posix_spawnp(&client->pid, argv[0], &actions, NULL, argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    return reason;
}

/* Starts a client of a server HOST[:PORT] with a query; without one, it reads statements from its
 * input. */
static bool client_start(struct client *client, int out)
{
    const char *place = client->place, *colon = strrchr(place, ':');
    char host[256], port[16] = "9000", to[] = "--host", at[] = "--port", query[] = "--query",
                    several[] = "--multiquery", program[] = CLIENT;
    int ends[2], size = (int)(colon ? colon - place : (ptrdiff_t)strlen(place));
    (void)snprintf(host, sizeof host, "%.*s", size, place);
    if (colon)
        (void)snprintf(port, sizeof port, "%s", colon + 1);
    char *argv[] = {program,
                    to,
                    host,
                    at,
                    port,
                    *client->query ? query : several,
                    *client->query ? client->query : NULL,
                    NULL};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
        print_message("cannot start " CLIENT ": %m");
        return false;
    }
    int reason = spawn(client, argv, ends[0], out);
    (void)close(ends[0]);
    client->in = ends[1];
    if (reason == 0)
        return true;
    (void)close(ends[1]);
    client->pid = 0;
    print_message("cannot start " CLIENT ": %s", strerror(reason));
    return false;
}

static bool client_write(void *context, const void *data, size_t size)
{
    struct client *client = context;
    const char *at = data;
    if (client->failed || (client->pid == 0 && !client_start(client, -1)))
        client->failed = true;
    while (!client->failed && size > 0) {
        ssize_t n = send(client->in, at, size, MSG_NOSIGNAL);
        if (n >= 0) {
            at += n;
            size -= (size_t)n;
        } else if (errno != EINTR) {
            client->failed = true;
        }
    }
    return !client->failed;
}

/* Waits for the client, which ends when its input does. Returns whether it succeeded. */
static bool client_end(struct client *client)
{
    int status = 0;
    if (client->pid == 0)
        return !client->failed;
    (void)close(client->in);
    while (waitpid(client->pid, &status, 0) < 0 && errno == EINTR) {
    }
    client->pid = 0;
    return !client->failed && status == 0;
}

/* MARK: The store */

static int failed(const struct load_place *place)
{
    print_message("clickhouse://%s: " CLIENT " has failed", place->name);
    return EXIT_INOUT;
}

static int create_tables(const struct load_place *place)
{
    struct client client = {.place = place->name};
    trail_sink sink = {.write = client_write, .context = &client};
    trail_error err;
    bool good = trail_tables_schema(TRAIL_DIALECT_CLICKHOUSE, &sink, &err) == 0;
    return client_end(&client) && good ? EXIT_GOOD : failed(place);
}

/* Reads the IDs that a server lists, one per line. Returns whether it lists nothing else. */
static bool take_ids(FILE *from, struct idmap *ids)
{
    char line[2 * TRACE_ID_SIZE];
    bool good = true;
    while (good && fgets(line, sizeof line, from)) {
        size_t size = strcspn(line, "\n");
        good = line[size] == '\n' && load_add_id(ids, line, size);
    }
    return good;
}

int load_open_clickhouse(struct load_place *place)
{
    struct client client = {.place = place->name,
                            .query = "SELECT DISTINCT trace FROM trail.traces FORMAT TSV"};
    int code = create_tables(place), ends[2];
    if (code != EXIT_GOOD)
        return code;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return failed(place);
    bool started = client_start(&client, ends[1]);
    (void)close(ends[1]);
    FILE *from = fdopen(ends[0], "r");
    bool good = started && from && take_ids(from, &place->known);
    if (from)
        (void)fclose(from); /* a client that is still writing then ends */
    return client_end(&client) && good ? EXIT_GOOD : failed(place);
}

/* Returns false if a client has failed. */
static bool write_trace(const struct load_trace *trace, struct load_batch *batch,
                        const trail_sink *sinks)
{
    trail_tables_options options = {
        .trace = trace->id, .file = path_name(trace->path), .host = batch->host, .day = trace->day};
    trail_reader_options reading = {.partial = true, .threads = 1};
    trail_error err = no_error();
    for (int i = 0; i < TRAIL_TABLES; i++)
        options.wanted[i] = TRAIL_ALL_COLUMNS;
    trail_source *source = open_source(trace->path, &err);
    trail_reader *reader = source ? trail_reader_open(source, &reading, &err) : NULL;
    int result =
        reader ? trail_tables_write(reader, &options, TRAIL_ROWS_ROWBINARY, sinks, NULL, &err) : -1;
    trail_reader_close(reader);
    trail_source_close(source);
    bool lost = false;
    for (int i = 0; i < TRAIL_TABLES; i++)
        lost = lost || ((const struct client *)sinks[i].context)->failed;
    if (result < 0 && !lost) {
        batch->code = worse_exit(batch->code, print_error(trace->path, &err));
        batch->damaged++;
    }
    return !lost;
}

/* Completes the rows of the table `traces` last; if a batch fails, they are not sent. */
int load_write_clickhouse(const struct load_place *place, struct load_batch *batch)
{
    struct client clients[TRAIL_TABLES] = {0};
    trail_sink sinks[TRAIL_TABLES];
    bool good = true;
    for (int i = 0; i < TRAIL_TABLES; i++) {
        clients[i].place = place->name;
        (void)snprintf(clients[i].query, sizeof clients[i].query,
                       "INSERT INTO trail.%s FORMAT RowBinary",
                       trail_table_get((trail_table_id)i)->name);
        sinks[i] = (trail_sink){.write = client_write, .context = &clients[i]};
    }
    for (size_t i = 0; i < batch->count && good; i++)
        good = write_trace(&batch->traces[i], batch, sinks);
    for (int i = 0; i < TRAIL_TABLES; i++) {
        if (i == TRAIL_TABLE_TRACES && !good && clients[i].pid > 0)
            (void)kill(clients[i].pid, SIGKILL);
        good = client_end(&clients[i]) && good;
    }
    return good ? EXIT_GOOD : failed(place);
}
