/* Runs analyses as processes of the command, and keeps their answers. */
#include "serve/runs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/grow.h"
#include "serve/answers.h"
#include "serve/command_line.h"

enum {
    AT_A_TIME = 2,
    RUN_SECONDS = 120,
    SQL_SECONDS = 60,
    BYTES_A_SECOND = 2 << 20, /* more time for traces that take longer to read than that */
    POLL_MS = 100,            /* interval for checking whether the client is still connected */
    MOST_QUERY = 16 << 10,
    LESS_PRIORITY = 19, /* niceness of computing ahead */
    DIFF_DAMAGED = 4,   /* exit status of trail diff for a damaged trace; its output is usable */
};

#define MOST_OUTPUT ((size_t)64 << 20)

/* Smaller traces are analysed in about a tenth of a second, without computing ahead. */
#define AHEAD_BYTES (INT64_C(16) << 20)

/* MARK: Runs */

static const char program[] = "/proc/self/exe"; /* trail itself */

struct runs {
    const struct intake *intake;
    const struct intake *other; /* NULL: none */
    const struct shelf *shelf;  /* NULL: none */
    struct command_passed passed;
    pthread_mutex_t lock;   /* protects everything below */
    pthread_cond_t changed; /* a run has ended, or `stop` */
    unsigned running;       /* for which clients wait */
    bool stop;
    bool has_sql;
    struct answers answers;
    pthread_t preparation;
    bool prepares;
};

/* Output of a child process. */
struct output {
    char *data;
    size_t size, capacity;
    char error[512]; /* first line of stderr */
    int status;
    const char *ended; /* why it was killed; NULL: it was not */
};

static int64_t now_ms(void)
{
    return now_ns() / 1000000;
}

static bool is_stopped(struct runs *runs)
{
    (void)pthread_mutex_lock(&runs->lock);
    bool stop = runs->stop;
    (void)pthread_mutex_unlock(&runs->lock);
    return stop;
}

/* Returns why the child must be killed, or NULL. `request` NULL: no client waits for it. */
static const char *why_end(struct runs *runs, const struct http_request *request, int64_t until_ms)
{
    if (is_stopped(runs))
        return "the server ends";
    if (request && http_is_gone(request))
        return "the client has gone";
    return now_ms() > until_ms ? "it takes too long" : NULL;
}

/* Reads the child's output. Returns false at its end. */
static bool take_output(struct output *output, int fd)
{
    if (!GROW(output->data, output->capacity, output->size + 65536)) {
        output->ended = "no memory";
        return false;
    }
    ssize_t n = read(fd, output->data + output->size, output->capacity - output->size);
    if (n < 0)
        return errno == EINTR;
    output->size += (size_t)n;
    if (output->size > MOST_OUTPUT)
        output->ended = "the answer is longer than 64 MB";
    return n > 0 && !output->ended;
}

/* Gets the first line of stderr, without the command's name. */
static void take_error(struct output *output, int fd)
{
    char text[sizeof output->error];
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    const char *line = strncmp(text, "trail: ", 7) == 0 ? text + 7 : text;
    (void)snprintf(output->error, sizeof output->error, "%s", line);
}

static bool spawn(pid_t *pid, struct words *words, int out, int err)
{
    extern char **environ;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    (void)sigemptyset(&none);
    if (posix_spawn_file_actions_init(&actions) != 0)
        return false;
    if (posix_spawnattr_init(&attributes) != 0) {
        (void)posix_spawn_file_actions_destroy(&actions);
        return false;
    }
    (void)posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_adddup2(&actions, out, 1);
    (void)posix_spawn_file_actions_adddup2(&actions, err, 2);
    (void)posix_spawnattr_setsigmask(&attributes, &none);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    int reason = posix_spawn(pid, program, &actions, &attributes, words->items, environ);
    (void)posix_spawnattr_destroy(&attributes);
    (void)posix_spawn_file_actions_destroy(&actions);
    return reason == 0;
}

static void follow(struct runs *runs, const struct http_request *request, struct output *output,
                   pid_t pid, int fd, int seconds)
{
    int64_t until_ms = now_ms() + (int64_t)seconds * 1000;
    bool more = true;
    while (more && !output->ended) {
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
        if (poll(&poll_fd, 1, POLL_MS) > 0)
            more = take_output(output, fd);
        if (!output->ended)
            output->ended = why_end(runs, request, until_ms);
    }
    if (output->ended)
        (void)kill(pid, SIGKILL);
    while (waitpid(pid, &output->status, 0) < 0 && errno == EINTR)
        ;
}

/* How long a run may take, of which `seconds` are for small traces. */
static int time_for(const struct runs *runs, int seconds)
{
    int64_t bytes = intake_size(runs->intake);
    if (runs->other)
        bytes += intake_size(runs->other);
    return seconds + (int)(bytes > 0 ? bytes / BYTES_A_SECOND : 0);
}

/* Returns false if the child could not be started. */
static bool run_child(struct runs *runs, const struct http_request *request, struct words *words,
                      struct output *output, int seconds)
{
    int ends[2], err = memfd_create("stderr", MFD_CLOEXEC);
    pid_t pid = 0;
    if (err < 0)
        return false;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        (void)close(err);
        return false;
    }
    bool started = spawn(&pid, words, ends[1], err);
    (void)close(ends[1]);
    if (started) {
        follow(runs, request, output, pid, ends[0], time_for(runs, seconds));
        take_error(output, err);
    }
    (void)close(ends[0]);
    (void)close(err);
    return started;
}

/* Releases the lock until a run has ended, or briefly. */
static void wait_for_change(struct runs *runs)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += POLL_MS * 1000000L;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    (void)pthread_cond_timedwait(&runs->changed, &runs->lock, &until);
}

/* Called with the lock held. */
static bool is_pointless(const struct runs *runs, const struct http_request *request)
{
    return runs->stop || (request && http_is_gone(request));
}

/*
 * Waits for a free slot. Returns false if the server stops or the client has gone. A run for which
 * no client waits takes no slot, so that clients need not wait for it.
 */
static bool begin(struct runs *runs, const struct http_request *request)
{
    (void)pthread_mutex_lock(&runs->lock);
    while (runs->running >= AT_A_TIME && !is_pointless(runs, request))
        wait_for_change(runs);
    bool good = !is_pointless(runs, request);
    runs->running += good && request;
    (void)pthread_mutex_unlock(&runs->lock);
    return good;
}

static void end(struct runs *runs, const struct http_request *request)
{
    (void)pthread_mutex_lock(&runs->lock);
    runs->running -= request != NULL;
    (void)pthread_cond_broadcast(&runs->changed);
    (void)pthread_mutex_unlock(&runs->lock);
}

/* MARK: Cache */

/* Appends a line to `key`, which it frees. The caller frees the result; NULL if out of memory. */
static char *lengthen(char *key, const char *word)
{
    char *longer = NULL;
    if (key && asprintf(&longer, "%s\n%s", key, word) < 0)
        longer = NULL;
    free(key);
    return longer;
}

/* Appends the size and modification time of a file. */
static char *lengthen_by_file(char *key, const char *path)
{
    struct stat status = {0};
    char text[64];
    (void)stat(path, &status);
    (void)snprintf(text, sizeof text, "%lld %lld.%ld", (long long)status.st_size,
                   (long long)status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
    return lengthen(key, text);
}

/*
 * Returns the cache key: the command line and the state of its files. The caller frees it; NULL if
 * out of memory.
 */
static char *make_key(const struct words *words, const char *path, const char *other)
{
    char *key = lengthen_by_file(strdup(""), path);
    if (other)
        key = lengthen_by_file(key, other);
    for (size_t i = 0; key && i < words->count; i++)
        key = lengthen(key, words->items[i]);
    return key;
}

enum found { FOUND, NOT_FOUND, POINTLESS };

/*
 * Answers from the cache, if necessary after a run in progress for the same key. NOT_FOUND: the
 * caller computes the answer and calls keep; *answer may be NULL. Takes ownership of the key.
 */
static enum found look_up(struct runs *runs, struct exchange *exchange, char *key,
                          struct answer **answer)
{
    enum found found = FOUND;
    (void)pthread_mutex_lock(&runs->lock);
    while ((*answer = answers_find(&runs->answers, key)) && !(*answer)->data &&
           !is_pointless(runs, exchange->request))
        wait_for_change(runs);
    if (!*answer) {
        found = NOT_FOUND;
        *answer = answers_begin(&runs->answers, key);
        key = NULL;
    } else if ((*answer)->data) {
        out_bytes(exchange->json.out, (*answer)->data, (*answer)->size);
    } else {
        found = POINTLESS;
    }
    (void)pthread_mutex_unlock(&runs->lock);
    free(key);
    return found;
}

/* Returns the answer from the shelf, which the caller frees; NULL: it is not there. */
static char *take_kept(const struct runs *runs, const struct answer *answer, size_t *size)
{
    return runs->shelf && answer ? shelf_take(runs->shelf, answer->key, size) : NULL;
}

static void put_kept(const struct runs *runs, const struct answer *answer, const char *data,
                     size_t size)
{
    if (runs->shelf && answer && data)
        shelf_put(runs->shelf, answer->key, data, size);
}

/* Takes ownership of the data; NULL: no answer. */
static void keep(struct runs *runs, struct answer *answer, char *data, size_t size)
{
    (void)pthread_mutex_lock(&runs->lock);
    answers_end(&runs->answers, answer, data, size);
    (void)pthread_cond_broadcast(&runs->changed);
    (void)pthread_mutex_unlock(&runs->lock);
}

/* MARK: Answers */

/* Refuses the request if the child failed. Returns whether its output is an answer. */
static bool check_output(struct exchange *exchange, const struct output *output)
{
    int code = WIFEXITED(output->status) ? WEXITSTATUS(output->status) : -1;
    if (output->ended)
        exchange_refuse(exchange, 503, "%s", output->ended);
    else if (code == 2)
        exchange_refuse(exchange, 400, "%s", output->error);
    else if ((code != 0 && code != 1 && code != DIFF_DAMAGED) || output->size == 0)
        exchange_refuse(exchange, code == 1 ? 400 : 500, "%s",
                        output->error[0] ? output->error : "it failed");
    return exchange->status == 0;
}

bool runs_are_stale(const struct runs *runs)
{
    return intake_is_changed(runs->intake);
}

/* The lanes show what was read first: an answer from other bytes would contradict them. */
static bool check_file(const struct intake *intake, struct exchange *exchange)
{
    if (intake && intake_is_overwritten(intake))
        exchange_refuse(exchange, 409, "the file has changed since it was read: read it again");
    return exchange->status == 0;
}

/* Runs a command. Returns its output, which the caller frees; NULL: the request was refused. */
static char *compute(struct runs *runs, struct exchange *exchange, struct words *words, int seconds,
                     size_t *size)
{
    struct output output = {0};
    if (!begin(runs, exchange->request)) {
        exchange_refuse(exchange, 503, "the server ends");
        return NULL;
    }
    if (!run_child(runs, exchange->request, words, &output, seconds))
        exchange_refuse(exchange, 500, "trail cannot start itself again");
    end(runs, exchange->request);
    if (exchange->status != 0 || !check_output(exchange, &output) ||
        !check_file(runs->intake, exchange) || !check_file(runs->other, exchange)) {
        free(output.data);
        return NULL;
    }
    *size = output.size;
    return output.data;
}

/* Runs a command, or answers from the cache. `other`: a second file that it reads, or NULL. */
static void run(struct runs *runs, struct exchange *exchange, struct words *words, const char *path,
                const char *other, int seconds)
{
    struct answer *answer = NULL;
    size_t size = 0;
    char *key = words->failed ? NULL : make_key(words, path, other);
    if (!key) {
        exchange_refuse(exchange, 500, "no memory");
        return;
    }
    enum found found = look_up(runs, exchange, key, &answer);
    if (found == POINTLESS)
        exchange_refuse(exchange, 503, "the server ends");
    if (found != NOT_FOUND)
        return;
    char *data = take_kept(runs, answer, &size);
    if (!data) {
        data = compute(runs, exchange, words, seconds, &size);
        put_kept(runs, answer, data, size);
    }
    if (data)
        out_bytes(exchange->json.out, data, size);
    keep(runs, answer, data, size);
}

/* Gets the trace's file. If it is not complete, refuses the request and returns false. */
static bool find_file(const struct intake *intake, struct exchange *exchange,
                      char path[INTAKE_PATH])
{
    if (!check_file(intake, exchange))
        return false;
    if (intake_path(intake, path))
        return true;
    exchange_refuse(exchange, 501, "the trace is still arriving: it can be analysed at its end");
    return false;
}

void runs_answer_command(struct runs *runs, struct exchange *exchange)
{
    struct words words = {0};
    char path[INTAKE_PATH], second[INTAKE_PATH];
    unsigned traces = command_line_traces(exchange);
    const char *other = traces == 2 && runs->other ? second : NULL;
    if (traces == 0 || !find_file(runs->intake, exchange, path) ||
        (other && !find_file(runs->other, exchange, second)))
        return;
    struct command_files files = {path, other, runs->passed};
    if (command_line(exchange, &files, &words))
        run(runs, exchange, &words, path, other, RUN_SECONDS);
    words_free(&words);
}

/* `trail sql` gives DuckDB no access to files, and locks its configuration. */
void runs_answer_sql(struct runs *runs, struct exchange *exchange)
{
    struct words words = {0};
    char path[INTAKE_PATH];
    const char *query = parameter_text(exchange, "query");
    if (!query || !*query || strlen(query) > MOST_QUERY)
        exchange_refuse(exchange, 400, "query is SQL, of at most %d bytes", MOST_QUERY);
    else if (!runs_can_sql(runs))
        exchange_refuse(exchange, 501, "DuckDB is not installed: see docs/sql.md");
    if (exchange->status != 0 || !query || !find_file(runs->intake, exchange, path))
        return;
    WORDS_ADD(&words, "trail", "sql", "--json", "--memory-limit=1G", "--", path);
    /* A leading space makes it a query, not a file; @ begins the name of a query. */
    bool is_bare = *query == '@' || strcmp(query, ".queries") == 0;
    words_add(&words, is_bare ? "%s" : " %s", query);
    run(runs, exchange, &words, path, NULL, SQL_SECONDS);
    words_free(&words);
}

/*
 * The answer's type is one that browsers do not display: as a page of this server, the file would
 * have access to the API.
 */
void runs_answer_embed(struct runs *runs, struct exchange *exchange, const char *title)
{
    struct words words = {0};
    char path[INTAKE_PATH];
    if (!find_file(runs->intake, exchange, path))
        return;
    exchange->type = "application/octet-stream";
    WORDS_ADD(&words, "trail", "report", "--embed");
    words_add(&words, "--title=%s", title);
    WORDS_ADD(&words, "--output=-", "--", path);
    run(runs, exchange, &words, path, NULL, RUN_SECONDS);
    words_free(&words);
}

/* MARK: Ahead */

static bool discard(void *context, const void *data, size_t size)
{
    (void)context;
    (void)data;
    (void)size;
    return true;
}

/* Alternating names and values of parameters, then NULL. */
static const char *const ahead[][5] = {
#define PANEL(command, name, value) {"command", #command, name, value},
#include "serve/ahead.def"
};

enum { AHEAD = sizeof ahead / sizeof *ahead };

/* Returns the same key as for the page's request. The caller frees it; NULL: none. */
static char *make_key_ahead(const struct runs *runs, const char *const *own, const char *path)
{
    struct command_files files = {path, NULL, runs->passed};
    struct words words = {0};
    struct out nowhere;
    char *key = NULL;
    if (!out_init(&nowhere, discard, NULL))
        return NULL;
    struct exchange exchange = {.own = own, .json = {.out = &nowhere}};
    if (command_line(&exchange, &files, &words))
        key = make_key(&words, path, NULL);
    out_drop(&nowhere);
    words_free(&words);
    return key;
}

/*
 * Marks the answers as being computed, except those requested already or on the shelf, which stay
 * NULL. Returns how many there are.
 */
static size_t begin_ahead(struct runs *runs, const char *path, struct answer *answers[AHEAD])
{
    size_t count = 0;
    (void)pthread_mutex_lock(&runs->lock);
    for (size_t i = 0; i < AHEAD; i++) {
        char *key = make_key_ahead(runs, ahead[i], path);
        size_t size = 0;
        if (key && !answers_find(&runs->answers, key))
            answers[i] = answers_begin(&runs->answers, key);
        else
            free(key);
        char *data = take_kept(runs, answers[i], &size);
        if (data) {
            answers_end(&runs->answers, answers[i], data, size);
            answers[i] = NULL;
        }
        count += answers[i] != NULL;
    }
    (void)pthread_mutex_unlock(&runs->lock);
    return count;
}

static void keep_line(struct runs *runs, struct answer *answer, const char *line, size_t size)
{
    char *copy = answer && size > 0 ? malloc(size) : NULL;
    if (copy)
        memcpy(copy, line, size);
    put_kept(runs, answer, copy, size);
    if (answer)
        keep(runs, answer, copy, size);
}

/* Keeps the answers of `trail panels`, each with the end of its line. */
static void end_ahead(struct runs *runs, struct answer *answers[AHEAD], const struct output *output)
{
    size_t at = 0;
    for (size_t i = 0; i < AHEAD; i++) {
        const char *line = at < output->size ? output->data + at : NULL;
        const char *end = line ? memchr(line, '\n', output->size - at) : NULL;
        size_t size = end ? (size_t)(end - line) + 1 : 0;
        keep_line(runs, answers[i], line, size);
        at += size;
    }
}

static void add_command_ahead(struct words *words, const struct runs *runs, const char *path)
{
    WORDS_ADD(words, "trail", "panels");
    for (size_t i = 0; i < AHEAD; i++)
        for (const char *const *own = ahead[i] + 2; *own; own += 2)
            words_add(words, "--%s=%s", own[0], own[1]);
    if (runs->passed.skip_frames)
        words_add(words, "--skip-frames=%s", runs->passed.skip_frames);
    if (runs->passed.words)
        words_add(words, "--words=%s", runs->passed.words);
    WORDS_ADD(words, "--", path);
}

/*
 * Computes the first requests of the page's panels, with low priority because the model is still
 * reading. On Linux each thread has a niceness, and its children inherit it.
 */
static void compute_ahead(struct runs *runs, const char *path)
{
    struct answer *answers[AHEAD] = {0};
    struct output output = {0};
    struct exchange exchange = {0};
    struct words words = {0};
    if (intake_size(runs->intake) < AHEAD_BYTES)
        return;
    (void)!nice(LESS_PRIORITY);
    add_command_ahead(&words, runs, path);
    if (begin_ahead(runs, path, answers) == 0 || words.failed ||
        !run_child(runs, NULL, &words, &output, RUN_SECONDS) || !check_output(&exchange, &output))
        output.size = 0;
    end_ahead(runs, answers, &output);
    free(output.data);
    words_free(&words);
}

/* MARK: Life */

bool runs_can_run(const struct runs *runs)
{
    char path[INTAKE_PATH];
    return intake_path(runs->intake, path);
}

bool runs_can_sql(const struct runs *runs)
{
    return __atomic_load_n(&runs->has_sql, __ATOMIC_RELAXED);
}

/* Finds out whether DuckDB is available with the simplest query. */
static void probe_sql(struct runs *runs, const char *path)
{
    struct words words = {0};
    struct output output = {0};
    WORDS_ADD(&words, "trail", "sql", "--json", "--", path, "select 1");
    if (!words.failed && run_child(runs, NULL, &words, &output, SQL_SECONDS))
        __atomic_store_n(&runs->has_sql,
                         !output.ended && WIFEXITED(output.status) &&
                             WEXITSTATUS(output.status) == 0,
                         __ATOMIC_RELAXED);
    free(output.data);
    words_free(&words);
}

/* Begins when the file is complete: for most traces at once. */
static void *prepare(void *context)
{
    struct runs *runs = context;
    char path[INTAKE_PATH];
    while (!intake_path(runs->intake, path)) {
        struct timespec pause = {.tv_nsec = POLL_MS * 1000000L};
        if (is_stopped(runs))
            return NULL;
        (void)nanosleep(&pause, NULL);
    }
    probe_sql(runs, path);
    compute_ahead(runs, path);
    return NULL;
}

struct runs *runs_open(const struct intake *intake, const struct intake *other,
                       const struct shelf *shelf, const struct command_passed *passed)
{
    struct runs *runs = calloc(1, sizeof *runs);
    if (!runs)
        return NULL;
    runs->intake = intake;
    runs->other = other;
    runs->shelf = shelf;
    runs->passed = *passed;
    (void)pthread_mutex_init(&runs->lock, NULL);
    (void)pthread_cond_init(&runs->changed, NULL);
    runs->prepares = pthread_create(&runs->preparation, NULL, prepare, runs) == 0;
    return runs;
}

void runs_stop(struct runs *runs)
{
    if (!runs)
        return;
    (void)pthread_mutex_lock(&runs->lock);
    runs->stop = true;
    (void)pthread_cond_broadcast(&runs->changed);
    (void)pthread_mutex_unlock(&runs->lock);
    if (runs->prepares)
        (void)pthread_join(runs->preparation, NULL);
    runs->prepares = false;
}

void runs_close(struct runs *runs)
{
    if (!runs)
        return;
    answers_free(&runs->answers);
    (void)pthread_cond_destroy(&runs->changed);
    (void)pthread_mutex_destroy(&runs->lock);
    free(runs);
}
