/*
 * The server's runs of commands: how many at a time, for how long, how much output, and what
 * happens to them when the client is gone. The clock, the client and the time-outs of condition
 * variables are the test's, so that it need not wait for limits; the command is this program itself
 * (see child).
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "../lib/unit.h"
#include "serve/runs.h"

/* The limits documented in runs.h. */
enum { AT_A_TIME = 2, RUN_SECONDS = 120, SQL_SECONDS = 60, KEPT = 32 };
#define MOST_OUTPUT ((size_t)64 << 20)
#define KEPT_MOST   ((size_t)32 << 20)
#define AHEAD_BYTES (INT64_C(16) << 20)

/* MARK: The child */

static int child_that_ends(const char *how)
{
    int status = 0;
    char out[100] = "", err[1000] = "";
    (void)sscanf(how, "end=%d out=%99s err=%999[^_]", &status, out, err);
    (void)!write(1, out, strlen(out));
    (void)!write(2, err, strlen(err));
    if (status < 0)
        (void)raise(-status);
    return status;
}

static int descriptor(const char *name)
{
    const char *number = getenv(name);
    return number ? atoi(number) : -1;
}

/* Whether it has a lower priority than the server. */
static bool is_behind(void)
{
    return getpriority(PRIO_PROCESS, 0) > getpriority(PRIO_PROCESS, (id_t)getppid());
}

static int child_of_panels(int events, int go)
{
    static const char lines[] = "{1}\n{12}\n{123}\n{1234}\n";
    char byte;
    if (!is_behind() || write(events, "b", 1) != 1 || read(go, &byte, 1) != 1)
        return 9;
    return write(1, lines, sizeof lines - 1) > 0 ? 0 : 9;
}

/*
 * Reports on TEST_EVENTS that it has begun. The number in the request selects what it does then: 1
 * or none waits for a byte from TEST_GO and answers; 2 waits until it is killed; others are a
 * number of bytes to write. A query "end=STATUS out=WORD err=TEXT_" gives the exit status or
 * signal, and the output. `panels` also waits for a byte, and answers with a line for each panel,
 * each of a different size.
 */
static int child(int count, char **args)
{
    int events = descriptor("TEST_EVENTS"), go = descriptor("TEST_GO");
    static char chunk[65536];
    size_t left = 0;
    char byte;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int i = 1; i < count; i++) {
        const char *number = strstr(args[i], "limit=");
        if (number)
            left = strtoul(number + 6, NULL, 10);
    }
    if (strcmp(args[1], "panels") == 0)
        return child_of_panels(events, go);
    if (strncmp(args[count - 1], " end=", 5) == 0)
        return child_that_ends(args[count - 1] + 1);
    if (left == 0 && strcmp(args[1], "sql") != 0)
        left = 1;
    if (left == 0)
        return 0; /* the probe for DuckDB */
    if (write(events, "b", 1) != 1)
        return 9;
    if (left == 1 && read(go, &byte, 1) == 1)
        return write(1, "{}", 2) > 0 ? 0 : 9;
    if (left == 2)
        for (;;)
            (void)pause();
    memset(chunk, 'x', sizeof chunk);
    while (left > 0) {
        ssize_t n = write(1, chunk, left < sizeof chunk ? left : sizeof chunk);
        if (n < 0)
            return 9;
        left -= (size_t)n;
    }
    return 0;
}

/* MARK: What is not there */

static int events[2], go[2]; /* pipes that the children inherit */
static int64_t clock_ms;     /* atomic: CLOCK_MONOTONIC */
static unsigned looks;       /* atomic: number of readings */
static bool gone;            /* atomic: the client */
static int64_t trace_size;

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker's names for what stands in for another */
int __real_clock_gettime(clockid_t id, struct timespec *now);
int __wrap_clock_gettime(clockid_t id, struct timespec *now);
int __wrap_clock_gettime(clockid_t id, struct timespec *now)
{
    if (id != CLOCK_MONOTONIC)
        return __real_clock_gettime(id, now);
    int64_t ms = __atomic_load_n(&clock_ms, __ATOMIC_SEQ_CST);
    *now = (struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    (void)__atomic_add_fetch(&looks, 1, __ATOMIC_SEQ_CST);
    return 0;
}

/* The first wait of a thread is reported as an event. */
int __real_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  const struct timespec *until)
{
    static _Thread_local bool waited;
    if (!waited && write(events[1], "w", 1) != 1)
        abort();
    waited = true;
    return __real_pthread_cond_timedwait(cond, mutex, until);
}

/* NOLINTEND(bugprone-reserved-identifier) */

bool http_is_gone(const struct http_request *request)
{
    const bool *its = request->connection;
    return __atomic_load_n(&gone, __ATOMIC_SEQ_CST) || __atomic_load_n(its, __ATOMIC_SEQ_CST);
}

/* `path` of a request is "COMMAND/NAME=VALUE", or "NAME=VALUE" for gc, with at most one
 * parameter. */
static const char *parameter_of(const struct http_request *request)
{
    const char *slash = strchr(request->path, '/');
    return slash ? slash + 1 : request->path;
}

const char *http_query(const struct http_request *request, const char *name)
{
    static _Thread_local char command[32];
    const char *parameter = parameter_of(request);
    size_t size = strlen(name);
    if (strcmp(name, "command") == 0 && parameter == request->path)
        return "gc";
    if (strcmp(name, "command") == 0) {
        (void)snprintf(command, sizeof command, "%.*s", (int)(parameter - request->path - 1),
                       request->path);
        return command;
    }
    return strncmp(parameter, name, size) == 0 && parameter[size] == '=' ? parameter + size + 1
                                                                         : NULL;
}

void http_each_query(const struct http_request *request,
                     bool (*each)(void *context, const char *name), void *context)
{
    char name[32];
    const char *parameter = parameter_of(request);
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(parameter, "="), parameter);
    if (each(context, "command") && *name)
        (void)each(context, name);
}

bool intake_is_changed(const struct intake *intake)
{
    (void)intake;
    return false;
}

bool intake_is_overwritten(const struct intake *intake)
{
    (void)intake;
    return false;
}

bool intake_identity(const struct intake *intake, uint64_t *identity)
{
    (void)intake;
    *identity = 1;
    return true;
}

/* The trace is complete, in tests to which it does not matter. */
bool intake_path(const struct intake *intake, char path[INTAKE_PATH])
{
    (void)intake;
    (void)snprintf(path, INTAKE_PATH, "/dev/null");
    return true;
}

int64_t intake_size(const struct intake *intake)
{
    (void)intake;
    return trace_size;
}

/* MARK: Asking */

struct asked {
    struct runs *runs;
    struct http_request request;
    struct out out;
    struct exchange exchange;
    size_t size; /* of the answer */
    pthread_t thread;
    bool sql;
    bool done; /* atomic */
    bool gone; /* atomic: its client */
};

static bool count(void *context, const void *data, size_t size)
{
    (void)data;
    *(size_t *)context += size;
    return true;
}

static void *answer(void *context)
{
    struct asked *asked = context;
    if (asked->sql)
        runs_answer_sql(asked->runs, &asked->exchange);
    else
        runs_answer_command(asked->runs, &asked->exchange);
    __atomic_store_n(&asked->done, true, __ATOMIC_SEQ_CST);
    return NULL;
}

static bool is_done(const struct asked *asked)
{
    return __atomic_load_n(&asked->done, __ATOMIC_SEQ_CST);
}

static void ask(struct asked *asked, struct runs *runs, const char *parameter)
{
    memset(asked, 0, sizeof *asked);
    assert_true(out_init(&asked->out, count, &asked->size));
    asked->runs = runs;
    asked->sql = strncmp(parameter, "query", 5) == 0;
    asked->request.path = parameter;
    asked->request.connection = &asked->gone;
    asked->exchange.request = &asked->request;
    asked->exchange.json.out = &asked->out;
    assert_int_equal(pthread_create(&asked->thread, NULL, answer, asked), 0);
}

static void finish(struct asked *asked)
{
    trail_error err;
    assert_int_equal(pthread_join(asked->thread, NULL), 0);
    assert_int_equal(out_finish(&asked->out, &err), 0);
}

static void expect_answer(struct asked *asked, size_t size)
{
    finish(asked);
    assert_string_equal(asked->exchange.wrong, "");
    assert_int_equal(asked->size, size);
}

static void expect_refusal(struct asked *asked, const char *why)
{
    finish(asked);
    assert_int_equal(asked->exchange.status, 503);
    assert_string_equal(asked->exchange.wrong, why);
    assert_int_equal(asked->size, 0);
}

/* Waits until this many children have begun (b) and threads wait for their turn (w), in any order;
 * no more may follow. */
static void expect_events(int begun, int waiting)
{
    while (begun + waiting > 0) {
        char event;
        assert_int_equal(read(events[0], &event, 1), 1);
        begun -= event == 'b';
        waiting -= event == 'w';
        assert_true(begun >= 0 && waiting >= 0);
    }
}

/* Without a child: its begin would be reported before the answer. */
static void expect_kept(struct runs *runs, const char *exchange, size_t size)
{
    struct asked asked;
    struct pollfd event = {.fd = events[0], .events = POLLIN};
    ask(&asked, runs, exchange);
    expect_answer(&asked, size);
    assert_int_equal(poll(&event, 1, 0), 0);
}

static void expect_run(struct runs *runs, const char *exchange, size_t size)
{
    struct asked asked;
    ask(&asked, runs, exchange);
    expect_events(1, 0);
    expect_answer(&asked, size);
}

static void let_go(int children)
{
    while (children-- > 0)
        assert_int_equal(write(go[1], "g", 1), 1);
}

static struct runs *open_runs_with(const struct shelf *shelf)
{
    struct runs *runs = runs_open(NULL, NULL, shelf, &(struct command_passed){0});
    assert_non_null(runs);
    while (!runs_can_sql(runs))
        (void)sched_yield();
    return runs;
}

static struct runs *open_runs(void)
{
    return open_runs_with(NULL);
}

static void close_runs(struct runs *runs)
{
    runs_stop(runs);
    runs_close(runs);
    __atomic_store_n(&gone, false, __ATOMIC_SEQ_CST);
}

/* MARK: Tests */

TEST(two_run_at_a_time_and_the_others_take_turns)
{
    struct runs *runs = open_runs();
    struct asked asked[4];
    /* Each is a new exchange: answered requests are not sent again. */
    const char *const questions[] = {"limit=1", "limit=01", "limit=001", "limit=0001"};
    for (int i = 0; i < 4; i++)
        ask(&asked[i], runs, questions[i]);
    expect_events(AT_A_TIME, 4 - AT_A_TIME);
    let_go(1);
    expect_events(1, 0);
    let_go(1);
    expect_events(1, 0);
    let_go(2);
    for (int i = 0; i < 4; i++)
        expect_answer(&asked[i], 2);
    close_runs(runs);
}

TEST(what_has_been_answered_is_not_run_again)
{
    struct runs *runs = open_runs();
    char exchange[40];
    let_go(1);
    expect_run(runs, "limit=1", 2);
    expect_kept(runs, "limit=1", 2);
    (void)snprintf(exchange, sizeof exchange, "limit=%zu", KEPT_MOST - 2);
    expect_run(runs, exchange, KEPT_MOST - 2);
    expect_kept(runs, exchange, KEPT_MOST - 2);
    expect_kept(runs, "limit=1", 2);
    /* The total size is limited: the least recently used answer is dropped first. */
    expect_run(runs, "limit=3", 3);
    expect_kept(runs, "limit=1", 2);
    expect_run(runs, exchange, KEPT_MOST - 2);
    (void)snprintf(exchange, sizeof exchange, "limit=%zu", KEPT_MOST + 1);
    expect_run(runs, exchange, KEPT_MOST + 1);
    expect_run(runs, exchange, KEPT_MOST + 1);
    close_runs(runs);
}

TEST(the_answer_asked_for_longest_ago_is_forgotten)
{
    struct runs *runs = open_runs();
    char exchange[40];
    for (size_t i = 0; i < KEPT + 1; i++) {
        (void)snprintf(exchange, sizeof exchange, "limit=%zu", 100 + i);
        expect_run(runs, exchange, 100 + i);
        expect_kept(runs, "limit=100", 100);
    }
    expect_kept(runs, "limit=102", 102);
    expect_run(runs, "limit=101", 101);
    close_runs(runs);
}

TEST(the_shelf_outlives_the_server)
{
    char path[] = "/tmp/trail-shelf-XXXXXX", name[SHELF_NAME];
    assert_non_null(mkdtemp(path));
    int folder = open(path, O_RDONLY | O_DIRECTORY);
    struct shelf shelf = shelf_of(folder, NULL, "1"), other = shelf_of(folder, NULL, "2");
    size_t size;
    let_go(2);
    struct runs *runs = open_runs_with(&shelf);
    expect_run(runs, "limit=1", 2);
    close_runs(runs);
    runs = open_runs_with(&shelf);
    expect_kept(runs, "limit=1", 2);
    close_runs(runs);
    /* Another build, or another trace. */
    runs = open_runs_with(&other);
    expect_run(runs, "limit=1", 2);
    close_runs(runs);
    /* A file is for one question only. */
    shelf_put(&shelf, "one", "1", 1);
    char *taken = shelf_take(&shelf, "one", &size);
    assert_true(taken && size == 1 && *taken == '1');
    free(taken);
    shelf_name(&shelf, "two", name);
    char from[SHELF_NAME];
    shelf_name(&shelf, "one", from);
    assert_int_equal(renameat(folder, from, folder, name), 0);
    assert_null(shelf_take(&shelf, "two", &size));
    assert_null(shelf_take(&shelf, "one", &size));
    (void)close(folder);
    char command[64];
    (void)snprintf(command, sizeof command, "rm -r %s", path);
    assert_int_equal(system(command), 0);
}

/* Waits until the clock has been read three more times, or the run is over. */
static void wait_for_looks(const struct asked *asked)
{
    unsigned enough = __atomic_load_n(&looks, __ATOMIC_SEQ_CST) + 3;
    while ((int)(__atomic_load_n(&looks, __ATOMIC_SEQ_CST) - enough) < 0 && !is_done(asked))
        (void)usleep(1000);
}

/* The run continues up to the limit, and not a millisecond longer. */
static void expect_limit(struct runs *runs, const char *exchange, int seconds)
{
    struct asked asked;
    ask(&asked, runs, exchange);
    expect_events(1, 0);
    wait_for_looks(&asked);
    (void)__atomic_add_fetch(&clock_ms, seconds * INT64_C(1000), __ATOMIC_SEQ_CST);
    wait_for_looks(&asked);
    assert_false(is_done(&asked));
    (void)__atomic_add_fetch(&clock_ms, 1, __ATOMIC_SEQ_CST);
    expect_refusal(&asked, "it takes too long");
}

TEST(a_run_may_take_two_minutes_and_a_query_one)
{
    struct runs *runs = open_runs();
    expect_limit(runs, "limit=2", RUN_SECONDS);
    expect_limit(runs, "query=limit=2", SQL_SECONDS);
    /* A second more for each 2 MB. */
    trace_size = INT64_C(8) << 20;
    expect_limit(runs, "limit=2", RUN_SECONDS + 4);
    trace_size = 0;
    close_runs(runs);
}

TEST(an_answer_may_have_64_megabytes)
{
    struct runs *runs = open_runs();
    struct asked asked;
    char exchange[40];
    (void)snprintf(exchange, sizeof exchange, "limit=%zu", MOST_OUTPUT);
    expect_run(runs, exchange, MOST_OUTPUT);
    (void)snprintf(exchange, sizeof exchange, "limit=%zu", MOST_OUTPUT + 1);
    ask(&asked, runs, exchange);
    expect_events(1, 0);
    expect_refusal(&asked, "the answer is longer than 64 MB");
    close_runs(runs);
}

/* Starts as many runs as are allowed at a time, and one that waits for its turn. */
static void ask_one_too_many(struct runs *runs, struct asked running[AT_A_TIME],
                             struct asked *waiting)
{
    ask(&running[0], runs, "limit=2");
    ask(&running[1], runs, "limit=02");
    expect_events(AT_A_TIME, 0);
    ask(waiting, runs, "limit=002");
    expect_events(0, 1);
}

TEST(a_run_for_which_nobody_waits_is_ended)
{
    struct runs *runs = open_runs();
    struct asked running[AT_A_TIME], waiting;
    ask_one_too_many(runs, running, &waiting);
    __atomic_store_n(&gone, true, __ATOMIC_SEQ_CST);
    expect_refusal(&running[0], "the client has gone");
    expect_refusal(&running[1], "the client has gone");
    finish(&waiting);
    assert_int_equal(waiting.exchange.status, 503);
    /* Their places are free again, and the waiting run has taken none. */
    __atomic_store_n(&gone, false, __ATOMIC_SEQ_CST);
    ask(&running[0], runs, "limit=1");
    ask(&running[1], runs, "limit=01");
    expect_events(AT_A_TIME, 0);
    ask(&waiting, runs, "limit=001");
    expect_events(0, 1);
    let_go(3);
    expect_events(1, 0);
    expect_answer(&running[0], 2);
    expect_answer(&running[1], 2);
    expect_answer(&waiting, 2);
    close_runs(runs);
}

TEST(runs_end_with_the_server)
{
    struct runs *runs = open_runs();
    struct asked running[AT_A_TIME], waiting;
    ask_one_too_many(runs, running, &waiting);
    runs_stop(runs);
    expect_refusal(&running[0], "the server ends");
    expect_refusal(&running[1], "the server ends");
    expect_refusal(&waiting, "the server ends");
    close_runs(runs);
}

/* The second request waits for the first one's run, and starts its own if that is stopped. */
TEST(a_run_that_is_under_way_answers_all_that_ask_for_the_same)
{
    struct runs *runs = open_runs();
    struct asked first, second;
    ask(&first, runs, "limit=1");
    expect_events(1, 0);
    ask(&second, runs, "limit=1");
    expect_events(0, 1);
    let_go(1);
    expect_answer(&first, 2);
    expect_answer(&second, 2);
    ask(&first, runs, "limit=01");
    expect_events(1, 0);
    ask(&second, runs, "limit=01");
    expect_events(0, 1);
    __atomic_store_n(&first.gone, true, __ATOMIC_SEQ_CST);
    expect_refusal(&first, "the client has gone");
    expect_events(1, 0);
    let_go(1);
    expect_answer(&second, 2);
    close_runs(runs);
}

/* MARK: Ahead */

/* They are in progress when this returns. */
static struct runs *open_large(void)
{
    trace_size = AHEAD_BYTES;
    struct runs *runs = open_runs();
    expect_events(1, 0);
    return runs;
}

TEST(what_the_panels_ask_first_is_computed_ahead)
{
    struct runs *runs = open_large();
    struct asked asked[AT_A_TIME + 1];
    /* Clients do not wait for it unless they request the same. */
    ask(&asked[0], runs, "limit=2");
    ask(&asked[1], runs, "limit=02");
    expect_events(AT_A_TIME, 0);
    /* The last answer that is kept. */
    ask(&asked[2], runs, "mmu/");
    expect_events(0, 1);
    __atomic_store_n(&asked[0].gone, true, __ATOMIC_SEQ_CST);
    __atomic_store_n(&asked[1].gone, true, __ATOMIC_SEQ_CST);
    finish(&asked[0]);
    finish(&asked[1]);
    let_go(1);
    expect_answer(&asked[2], sizeof "{1234}");
    expect_kept(runs, "summary/", sizeof "{1}");
    expect_kept(runs, "locks/limit=500", sizeof "{12}");
    expect_kept(runs, "latency/", sizeof "{123}");
    close_runs(runs);
}

TEST(nothing_is_computed_ahead_of_a_small_trace)
{
    trace_size = AHEAD_BYTES - 1;
    struct runs *runs = open_runs();
    expect_run(runs, "locks/limit=500", 500);
    close_runs(runs);
}

TEST(what_is_computed_ahead_ends_with_the_server)
{
    struct runs *runs = open_large();
    struct asked asked;
    ask(&asked, runs, "latency/");
    expect_events(0, 1);
    runs_stop(runs);
    expect_refusal(&asked, "the server ends");
    close_runs(runs);
    trace_size = 0;
}

static void expect_wrong(struct runs *runs, const char *query, unsigned status, const char *why)
{
    struct asked asked;
    ask(&asked, runs, query);
    finish(&asked);
    assert_int_equal(asked.exchange.status, status);
    assert_string_equal(asked.exchange.wrong, why);
    assert_int_equal(asked.size, 0);
}

static void expect_right(struct runs *runs, const char *query, size_t size)
{
    struct asked asked;
    ask(&asked, runs, query);
    expect_answer(&asked, size);
}

/* 0 and 1 are good if there is output, and so is 4 of trail diff; 2 means a wrong request. */
TEST(the_status_of_a_run_says_whether_it_is_an_answer)
{
    struct runs *runs = open_runs();
    expect_right(runs, "query=end=0 out=good err=", 4);
    expect_right(runs, "query=end=1 out=goods err=trail: it is damaged", 5);
    expect_right(runs, "query=end=4 out=better err=trail: it is damaged", 6);
    expect_wrong(runs, "query=end=2 out=x err=trail: not so\nbut so_", 400, "not so");
    expect_wrong(runs, "query=end=3 out=x err=cannot read_", 500, "cannot read");
    expect_wrong(runs, "query=end=5 out=x", 500, "it failed");
    expect_wrong(runs, "query=end=-9 out=x err=trail: _", 500, "it failed");
    expect_wrong(runs, "query=end=1", 400, "it failed");
    expect_wrong(runs, "query=end=0", 500, "it failed");
    expect_wrong(runs, "query=end=4", 500, "it failed");
    /* None of these answers is kept. */
    expect_wrong(runs, "query=end=5 out=x", 500, "it failed");
    close_runs(runs);
}

TEST(a_parameter_that_the_command_lacks_is_refused)
{
    struct runs *runs = open_runs();
    expect_wrong(runs, "limt=1", 400, "gc has no parameter limt; it has: from, to, limit");
    close_runs(runs);
}

TEST(long_errors_are_cut_short)
{
    struct runs *runs = open_runs();
    char query[800] = "query=end=3 out=x err=", why[800] = "";
    memset(query + strlen(query), 'e', 700);
    memset(why, 'e', sizeof((struct exchange *)NULL)->wrong - 1);
    expect_wrong(runs, query, 500, why);
    close_runs(runs);
}

TEST(a_query_has_16_kilobytes_at_most)
{
    enum { MOST_QUERY = 16384 };
    static const char why[] = "query is SQL, of at most 16384 bytes";
    static char query[] = "query=end=0 out=x err=";
    size_t begin = sizeof "query=" - 1;
    struct runs *runs = open_runs();
    char *longest = malloc(begin + MOST_QUERY + 2);
    assert_non_null(longest);
    memset(longest, ' ', begin + MOST_QUERY + 1);
    memcpy(longest, query, sizeof query - 1);
    longest[begin + MOST_QUERY + 1] = '\0';
    expect_wrong(runs, longest, 400, why);
    longest[begin + MOST_QUERY] = '\0';
    expect_right(runs, longest, 1);
    expect_wrong(runs, "query=", 400, why);
    free(longest);
    struct asked asked;
    ask(&asked, runs, "query");
    finish(&asked);
    assert_string_equal(asked.exchange.wrong, why);
    close_runs(runs);
}

static void set_number(const char *name, int number)
{
    char text[16];
    (void)snprintf(text, sizeof text, "%d", number);
    (void)setenv(name, text, 1);
}

int main(int argc, char **argv)
{
    if (strcmp(argv[0], "trail") == 0)
        return child(argc, argv);
    if (pipe(events) != 0 || pipe(go) != 0)
        return 1;
    set_number("TEST_EVENTS", events[1]);
    set_number("TEST_GO", go[0]);
    return run_all_tests(NULL, NULL);
}
