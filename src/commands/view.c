/*
 * trail view: serves a trace to a browser on this machine.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands/version.h"
#include "commands/view_perfetto.h"
#include "serve/api.h"
#include "serve/assets.h"
#include "serve/intake.h"
#include "serve/rest.h"
#include "serve/runs.h"
#include "serve/shelf.h"
#include "ui/cache_folder.h"
#include "ui/cli.h"
#include "ui/skip_frames.h"
#include "ui/values.h"
#include "ui/words.h"

/* The server ends this long after the last request: the page polls the status. */
#define IDLE_NS (INT64_C(300) * 1000000000)

/* How long a page may take to open. */
#define OPENING_MS 500

struct request {
    const struct command *command;
    const char *words[API_TRACES];
    size_t count;
    struct view_server server;
    bool follow, cache, perfetto;
    int cache_folder; /* -1: none */
    trail_words vocabulary;
    const char *save, *source, *skip_frames;
};

/* MARK: Command line */

/* --http. */
static int parse_address(const struct command *command, void *member, const char *text)
{
    struct view_server *address = member;
    const char *colon = strrchr(text, ':');
    size_t size = colon ? (size_t)(colon - text) : strlen(text);
    int64_t port = 0;
    if (size >= sizeof address->host ||
        (colon && (!parse_id(colon + 1, "", &port) || port > 65535)))
        return usage_error(command, "'%s' is not an address like 127.0.0.1:8080", text);
    memcpy(address->host, text, size);
    address->host[size] = '\0';
    address->port = (uint16_t)port;
    address->has_port = colon != NULL;
    return EXIT_GOOD;
}

static const struct option rows[] = {
    {0, "http", "ADDRESS",
     "serve on this address: HOST:PORT, :PORT or HOST (default 127.0.0.1 and a free port)",
     TO_PARSED(struct request, server, struct view_server, parse_address)},
    {0, "no-open", NULL, "do not open a browser", TO_FLAG(struct request, server.no_open)},
    {0, "keep", NULL, "serve until Ctrl-C, even when no page is open",
     TO_FLAG(struct request, server.keep)},
    {0, "idle", "TIME", "end this time after the last request (300s)",
     TO_TIME(struct request, server.idle_ns), .expects = "a time like 300s"},
    {0, "save", "FILE", "with -: save the incoming trace to this file",
     TO_TEXT(struct request, save)},
    {0, "follow", NULL,
     "FILE is being written by the program at the other end of stdin, and is complete when that "
     "ends",
     TO_FLAG(struct request, follow)},
    {0, "cache", NULL,
     "keep what is computed of the trace in the cache folder, to view it again at once",
     TO_FLAG(struct request, cache)},
    {0, "perfetto", NULL, "open it in ui.perfetto.dev, which reads it from this machine",
     TO_FLAG(struct request, perfetto)},
    {0, "source", "DIR",
     "show the lines around a frame, of files that the trace names and that are below DIR (/: "
     "anywhere)",
     TO_TEXT(struct request, source)},
    WORDS_ROW(struct request, vocabulary),
    {0, "skip-frames", "FILE", SKIP_FRAMES_HELP, TO_TEXT(struct request, skip_frames)},
    {0},
};

/* MARK: Serving */

/* A served trace. */
struct served {
    const char *word;
    struct command_passed passed;
    struct intake *intake;
    struct shelf shelf;
    struct model *model;
    struct runs *runs;
    struct rest rest;
    pthread_t reader;
    bool reads; /* the thread is running */
};

/* What the server's handler needs. */
struct site {
    const struct request *request;
    pthread_rwlock_t lock; /* protects the two below: requests take it for reading, reopening the
                            * files for writing */
    struct api api;
    struct served *served; /* the traces, as many as the API has */
    pthread_mutex_t again; /* only one thread reopens the files at a time */
    const char *assets;    /* folder with the files of the page; NULL: the built-in ones */
};

static struct api api_of(const struct request *request, const struct served *served)
{
    struct api api = {
        .count = request->count, .words = request->vocabulary, .source = request->source};
    for (size_t i = 0; i < request->count; i++)
        api.traces[i] = (struct api_trace){.model = served[i].model,
                                           .runs = served[i].runs,
                                           .title = source_title(served[i].word)};
    return api;
}

/* Pauses reading while a page opens, until it has the data of its first picture. */
static void page_opens(const struct site *site)
{
    for (size_t i = 0; i < site->api.count; i++)
        rest_begin(&site->served[i].rest, OPENING_MS);
}

static void page_draws(const struct site *site)
{
    for (size_t i = 0; i < site->api.count; i++)
        rest_end(&site->served[i].rest);
}

static void *read_model(void *context)
{
    const struct served *served = context;
    do
        rest_before_reading(&served->rest, served->model);
    while (model_read(served->model));
    return NULL;
}

static int start_reading(struct served *served)
{
    int reason = pthread_create(&served->reader, NULL, read_model, served);
    served->reads = reason == 0;
    if (!served->reads)
        print_message("cannot start a thread: %s", strerror(reason));
    return served->reads ? EXIT_GOOD : EXIT_INOUT;
}

static int open_one(const struct request *request, struct served *served,
                    const struct intake *other)
{
    trail_error err = no_error();
    char variant[200];
    (void)snprintf(variant, sizeof variant, TRAIL_VERSION " %s", version_commit);
    served->shelf = shelf_of(request->cache_folder, served->intake, variant);
    served->model = model_open(served->intake, &served->shelf, &err);
    served->runs = runs_open(served->intake, other, &served->shelf, &served->passed);
    if (!served->model)
        return print_error(served->word, &err);
    return served->runs ? start_reading(served) : EXIT_INOUT;
}

/* Starts all intakes before the APIs, because a comparison uses both. */
static int open_all(const struct request *request, struct served *served)
{
    trail_error err = no_error();
    int code = EXIT_GOOD;
    for (size_t i = 0; i < request->count; i++) {
        struct intake_options from = {
            .path = request->words[i], .save = request->save, .follow = request->follow};
        served[i].word = request->words[i];
        served[i].passed =
            (struct command_passed){request->skip_frames, words_value(request->vocabulary)};
        served[i].intake = intake_open(&from, &err);
        if (!served[i].intake)
            return print_error(served[i].word, &err);
    }
    for (size_t i = 0; i < request->count && code == EXIT_GOOD; i++)
        code =
            open_one(request, &served[i], i == 0 && request->count > 1 ? served[1].intake : NULL);
    return code;
}

static void stop_reading(struct served *served)
{
    if (!served->reads)
        return;
    rest_end(&served->rest);
    model_stop(served->model);
    (void)pthread_join(served->reader, NULL);
}

static void close_all(const struct request *request, struct served *served)
{
    for (size_t i = 0; i < request->count; i++) {
        runs_stop(served[i].runs);
        stop_reading(&served[i]);
        model_close(served[i].model);
    }
    for (size_t i = 0; i < request->count; i++) {
        runs_close(served[i].runs);
        intake_close(served[i].intake);
    }
}

/* MARK: Reading again */

static bool is_stale(const struct site *site)
{
    for (size_t i = 0; i < site->api.count; i++)
        if (runs_are_stale(site->served[i].runs))
            return true;
    return false;
}

/* Replaces the traces by the files as they are now. Returns whether that succeeded. */
static bool read_anew(struct site *site)
{
    struct served *fresh = calloc(API_TRACES, sizeof *fresh), *old = site->served;
    if (!fresh || open_all(site->request, fresh) != EXIT_GOOD) {
        if (fresh)
            close_all(site->request, fresh);
        free(fresh);
        return false;
    }
    /* Ends the children first, because requests that wait for one hold the lock. */
    for (size_t i = 0; i < site->api.count; i++)
        runs_stop(old[i].runs);
    (void)pthread_rwlock_wrlock(&site->lock);
    site->served = fresh;
    site->api = api_of(site->request, fresh);
    (void)pthread_rwlock_unlock(&site->lock);
    close_all(site->request, old);
    free(old);
    return true;
}

/* /api/again: reopens a changed file, once, however many pages ask. */
static void answer_again(struct site *site, struct http_answer *answered)
{
    static const char good[] = "{\"again\":true}",
                      bad[] = "{\"error\":\"the file cannot be read\"}";
    (void)pthread_mutex_lock(&site->again);
    bool done = !is_stale(site) || read_anew(site);
    (void)pthread_mutex_unlock(&site->again);
    *answered = (struct http_answer){.status = done ? 0 : 500,
                                     .type = "application/json",
                                     .data = done ? good : bad,
                                     .size = done ? sizeof good - 1 : sizeof bad - 1};
}

/* Answers with a file of the page, or from the API. */
static void answer_one(struct site *site, const struct http_request *asked,
                       struct http_answer *answered)
{
    const char *path = asked->path;
    (void)api_find_trace(&site->api, &path);
    /* With two traces, the page shows both. */
    if (site->api.count > 1 && strcmp(asked->path, "/") == 0)
        path = "/compare.html";
    if (strcmp(asked->path, "/") == 0)
        page_opens(site);
    if (assets_answer(site->assets, asked, path, answered))
        return;
    api_answer(&site->api, asked, answered);
    if (strcmp(path, "/api/picture") == 0 || strcmp(path, "/api/group") == 0)
        page_draws(site);
}

static void answer(void *context, const struct http_request *asked, struct http_answer *answered)
{
    struct site *site = context;
    if (strcmp(asked->path, "/api/again") == 0) {
        answer_again(site, answered);
        return;
    }
    (void)pthread_rwlock_rdlock(&site->lock);
    answer_one(site, asked, answered);
    (void)pthread_rwlock_unlock(&site->lock);
}

static int serve(const struct request *request, struct site *site, const sigset_t *signals)
{
    struct http_options options = {.handler = answer, .context = site};
    struct http *http;
    char url[160];
    int code = view_server_start(&request->server, &options, request->words[0], &http);
    if (code != EXIT_GOOD)
        return code;
    (void)snprintf(url, sizeof url, "http://%s:%u/?token=%s", view_server_host(&request->server),
                   http_port(http), http_token(http));
    view_server_run(&request->server, http, url, signals);
    for (size_t i = 0; i < request->count; i++)
        runs_stop(site->served[i].runs);
    http_stop(http);
    return EXIT_GOOD;
}

/* A stream of requests must not starve a page that reopens the files. */
static void init_lock(pthread_rwlock_t *lock)
{
    pthread_rwlockattr_t attributes;
    (void)pthread_rwlockattr_init(&attributes);
    (void)pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    (void)pthread_rwlock_init(lock, &attributes);
    (void)pthread_rwlockattr_destroy(&attributes);
}

static int view(const struct request *request)
{
    struct site site = {.request = request,
                        .again = PTHREAD_MUTEX_INITIALIZER,
                        .served = calloc(API_TRACES, sizeof *site.served),
                        .assets = getenv("TRAIL_ASSETS")};
    sigset_t signals;
    if (!site.served)
        return EXIT_INOUT;
    init_lock(&site.lock);
    view_server_block(&signals);
    int code = open_all(request, site.served);
    site.api = api_of(request, site.served);
    if (code == EXIT_GOOD)
        code = serve(request, &site, &signals);
    close_all(request, site.served);
    free(site.served);
    (void)pthread_rwlock_destroy(&site.lock);
    return code;
}

/* The analyses, which read this file themselves, would report its errors only later. */
static int check_skip_frames(const struct request *request)
{
    const char **patterns = NULL;
    int code = request->skip_frames ? skip_frames_read(request->skip_frames, &patterns) : EXIT_GOOD;
    skip_frames_free(patterns);
    return code;
}

/* Standard input can be only one trace, and can signal the end of only one that is followed. */
static int check_words(const struct request *request)
{
    bool is_stdin = strcmp(request->words[0], "-") == 0;
    if (request->count == 1 && is_stdin && request->follow)
        return usage_error(request->command, "--follow needs a file");
    if (request->count == 1 && !is_stdin && request->save)
        return usage_error(request->command, "--save needs - (stdin): %s is already a file",
                           request->words[0]);
    if (request->perfetto && (request->count > 1 || request->follow || request->save ||
                              request->cache || request->source || request->skip_frames))
        return usage_error(request->command, "--perfetto takes one trace, and only the options "
                                             "--http, --no-open, --keep and --idle");
    if (request->count == 1)
        return EXIT_GOOD;
    if (is_stdin || strcmp(request->words[1], "-") == 0 || request->follow || request->save)
        return usage_error(request->command,
                           "only files can be compared: no -, --follow or --save");
    return EXIT_GOOD;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct request request = {.command = command, .cache_folder = -1, .server.idle_ns = IDLE_NS};
    struct options options;
    int code = options_each(&options, command, argc, argv, NULL, &request);
    if (code != EXIT_GOOD)
        return code;
    if (options.word_count == 0 || options.word_count > API_TRACES)
        return usage_error(command, options.word_count == 0 ? "no file given (- is stdin)"
                                                            : "two files at most");
    request.count = (size_t)options.word_count;
    for (size_t i = 0; i < request.count; i++)
        request.words[i] = options.words[i];
    code = check_words(&request);
    if (code == EXIT_GOOD)
        code = check_skip_frames(&request);
    if (code == EXIT_GOOD && request.cache)
        code = cache_folder_open("view", &request.cache_folder);
    if (code == EXIT_GOOD)
        code = request.perfetto ? view_perfetto(&request.server, request.words[0]) : view(&request);
    if (request.cache_folder >= 0)
        cache_folder_close(request.cache_folder);
    return code;
}

const struct command command_view = {
    COMMAND_ROW(view),
    .synopsis = "[options] FILE [FILE]",
    .details =
        "Serves the trace to a browser on this machine, and prints the address. It can be looked "
        "at while it is still being read. Two files are shown one above the other, with a common "
        "time and their differences. Ctrl-C ends it, or some minutes without a page.",
    .examples =
        "  trail view app.trace\n"
        "  trail view before.trace after.trace\n"
        "  trail view --perfetto app.trace\n"
        "  trail view --no-open --http=:8080 app.trace   # and ssh -L 8080:localhost:8080\n",
};
