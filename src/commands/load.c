/*
 * trail load: puts the tables of many traces into a store, each trace once. The traces of a day are
 * written in batches, so that the store has few, large files.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/order.h"
#include "commands/load_store.h"
#include "ui/cli.h"
#include "ui/folder_files.h"
#include "ui/show.h"
#include "ui/trace_file.h"

/* Maximum bytes and traces of a batch; a larger trace is a batch of its own. */
#define BATCH_SIZE  (UINT64_C(1) << 29)
#define BATCH_COUNT ((size_t)4096)

struct request {
    const struct command *command;
    const char *to, *host;
    bool merge;
    const struct load_store *store;
    const char *place; /* what follows its prefix */
    char own_host[TRACE_HOST_SIZE];
};

static const struct option rows[] = {
    {0, "to", "STORE", "parquet:DIR, duckdb:FILE or clickhouse://HOST[:PORT]",
     TO_TEXT(struct request, to)},
    {0, "host", "NAME", "the machine on which the traces were made (this one)",
     TO_TEXT(struct request, host)},
    {0, "merge", NULL, "then merge the Parquet files of days that have more than 16 small ones",
     TO_FLAG(struct request, merge)},
    {0},
};

struct load {
    const struct request *request;
    struct load_place place;
    struct load_trace *traces; /* to be loaded */
    size_t count, capacity;
    size_t loaded, damaged, present, others, unreadable;
    struct load_merged merged;
    int code;
};

/* MARK: Files */

/* Returns false if out of memory. */
static bool add_trace(struct load *load, const char *path, uint64_t size)
{
    struct input input = {.word = path};
    struct load_trace trace = {.size = size, .day = trace_day(&input)};
    input_trace_id(&input, load->request->host, trace.id);
    if (!show_is_whole())
        return false;
    if (idmap_find(&load->place.known, strtoull(trace.id, NULL, 16))) {
        load->present++;
        return true;
    }
    trace.path = strdup(path);
    if (!trace.path || !GROW(load->traces, load->capacity, load->count + 1) ||
        !load_add_id(&load->place.known, trace.id, strlen(trace.id))) {
        free(trace.path);
        return false;
    }
    load->traces[load->count++] = trace;
    return true;
}

/* `listed`: found in a folder, which may also contain other files. */
static int add_file(struct load *load, const char *path, bool listed)
{
    struct stat file = {0};
    trail_error err = no_error();
    trail_source *source = open_source(path, &err);
    trail_reader *reader = source ? trail_reader_open(source, NULL, &err) : NULL;
    trail_reader_close(reader);
    trail_source_close(source);
    if (!reader && listed && err.code == TRAIL_NOT_A_TRACE) {
        load->others++;
        return EXIT_GOOD;
    }
    if (!reader) {
        load->unreadable++;
        load->code = worse_exit(load->code, print_error(path, &err));
        return err.code == TRAIL_NO_MEMORY ? EXIT_INOUT : EXIT_GOOD;
    }
    return stat(path, &file) == 0 && add_trace(load, path, (uint64_t)file.st_size)
               ? EXIT_GOOD
               : exit_no_memory();
}

static int take_listed(void *load, const char *path)
{
    return add_file(load, path, true);
}

static int add_word(struct load *load, const char *word)
{
    return is_folder(word) ? folder_each(word, take_listed, load) : add_file(load, word, false);
}

/* MARK: Batches */

static int by_day(const void *a, const void *b)
{
    const struct load_trace *x = a, *y = b;
    return ORDER(x->day, y->day) ?: strcmp(x->path, y->path);
}

/* Returns how many traces, from `begin` on, make one batch. */
static size_t batch_count(const struct load *load, size_t begin)
{
    const struct load_trace *traces = load->traces + begin;
    size_t count = 0, left = load->count - begin;
    uint64_t size = 0;
    do {
        size += traces[count++].size;
    } while (count < left && count < BATCH_COUNT && traces[count].day == traces[0].day &&
             size + traces[count].size <= BATCH_SIZE);
    return count;
}

static int write_batches(struct load *load)
{
    const struct request *request = load->request;
    int code = EXIT_GOOD;
    if (load->count > 0)
        qsort(load->traces, load->count, sizeof *load->traces, by_day);
    for (size_t i = 0; i < load->count && code == EXIT_GOOD;) {
        struct load_batch batch = {
            .traces = load->traces + i, .count = batch_count(load, i), .host = request->host};
        code = request->store->write(&load->place, &batch);
        i += batch.count;
        load->code = worse_exit(load->code, batch.code);
        if (code == EXIT_GOOD) {
            load->loaded += batch.count - batch.unopened;
            load->unreadable += batch.unopened;
            load->damaged += batch.damaged;
        }
    }
    return code;
}

static void print_counts(const struct load *load)
{
    printf("%zu trace%s loaded", load->loaded, load->loaded == 1 ? "" : "s");
    if (load->damaged > 0)
        printf(", of %zu only the good part", load->damaged);
    if (load->present > 0)
        printf("; %zu loaded before", load->present);
    if (load->unreadable > 0)
        printf("; %zu file%s not readable", load->unreadable, load->unreadable == 1 ? "" : "s");
    if (load->others > 0)
        printf("; %zu file%s not a trace", load->others, load->others == 1 ? "" : "s");
    if (load->merged.from > 0)
        printf("; %zu files merged into %zu", load->merged.from, load->merged.into);
    putchar('\n');
}

static int load_all(struct load *load, char **words, int count)
{
    const struct request *request = load->request;
    load->place = (struct load_place){.name = request->place, .lock = -1};
    int code = request->store->open(&load->place);
    for (int i = 0; i < count && code == EXIT_GOOD; i++)
        code = add_word(load, words[i]);
    if (code == EXIT_GOOD)
        code = write_batches(load);
    if (code == EXIT_GOOD && request->merge)
        code = request->store->merge(&load->place, &load->merged);
    print_counts(load);
    for (size_t i = 0; i < load->count; i++)
        free(load->traces[i].path);
    free(load->traces);
    idmap_free(&load->place.known);
    if (load->place.lock >= 0)
        (void)close(load->place.lock);
    return worse_exit(load->code, code);
}

/* MARK: The command line */

static int find_store(struct request *request)
{
    for (request->store = load_stores; request->store->prefix; request->store++) {
        size_t size = strlen(request->store->prefix);
        request->place = request->to + size;
        if (strncmp(request->to, request->store->prefix, size) == 0 && *request->place)
            return EXIT_GOOD;
    }
    return usage_error(request->command,
                       "--to is parquet:DIR, duckdb:FILE or clickhouse://HOST, not '%s'",
                       request->to);
}

static int run(const struct command *command, int argc, char **argv)
{
    struct request request = {.command = command};
    struct load load = {.request = &request};
    struct options options;
    int code = options_each(&options, command, argc, argv, NULL, &request);
    if (code != EXIT_GOOD)
        return code;
    if (options.word_count == 0 && !request.merge)
        return usage_error(command, "no trace given: trail load --to=parquet:DIR FILE|FOLDER...");
    if (!request.to)
        return usage_error(command, "no store given: --to=parquet:DIR");
    code = find_store(&request);
    if (code == EXIT_GOOD && request.merge && !request.store->merge)
        return usage_error(command, "--merge needs --to=parquet:DIR, not '%s'", request.to);
    if (code == EXIT_GOOD)
        code = trace_host_find(command, &request.host, request.own_host);
    return code == EXIT_GOOD ? load_all(&load, options.words, options.word_count) : code;
}

const struct command command_load = {
    COMMAND_ROW(load),
    .synopsis = "[options] --to=STORE [FILE|FOLDER...]",
    .details =
        "Loads the tables of traces into Parquet files, a DuckDB database or ClickHouse: those of "
        "each trace once, even if the command is repeated or was interrupted. The exit "
        "status is 1 if a trace was damaged, of which the good part was loaded, and 3 if a file "
        "could not be read.",
    .examples = "  trail load --to=parquet:/srv/traces --host=web1 /var/traces\n"
                "  trail load --to=duckdb:traces.db *.trace\n"
                "  trail load --to=clickhouse://db1 /var/traces\n"
                "  trail load --to=parquet:/srv/traces --merge",
};
