/* See read_all.h. */
#include "ui/read_all.h"

#include "base/cpu_quota.h"

/* Each has rows of its own in memory. */
enum { MOST_THREADS = 8 };

struct pass {
    struct traces *traces; /* their lock protects `next` and `failed` */
    const uint32_t *wanted;
    take_rows_fn take;
    void *context;
    size_t next; /* trace */
    bool failed; /* nothing more is read */
};

struct reader {
    struct pass *pass;
    size_t number;
    pthread_t thread;
};

/* Ends everything. Returns whether this is the first failure. */
static bool fail(struct pass *pass)
{
    pthread_mutex_lock(&pass->traces->lock);
    bool first = !pass->failed;
    pass->failed = true;
    pthread_mutex_unlock(&pass->traces->lock);
    return first;
}

/* A lack may be temporary: all fails then, and can be repeated. */
static void report(struct pass *pass, size_t trace, const trail_error *err, bool opened)
{
    struct traces *traces = pass->traces;
    bool lacks = err->code == TRAIL_NO_MEMORY || (err->code == TRAIL_IO && opened);
    if (!lacks || fail(pass))
        traces_report(traces, trace, err);
    pthread_mutex_lock(&traces->lock);
    traces->unopened += !opened;
    pthread_mutex_unlock(&traces->lock);
}

static void read_trace(const struct reader *reader, size_t trace)
{
    struct pass *pass = reader->pass;
    struct trace_reading reading = {0};
    trail_error err = no_error();
    trail_rows rows;
    int more = trace_reading_open(&reading, pass->traces, trace, pass->wanted, &err) ? 1 : -1;
    while (more > 0) {
        more = trail_tables_next(reading.tables, &rows, &err);
        if (more > 0 && !pass->take(pass->context, reader->number, &rows)) {
            (void)fail(pass);
            more = 0;
        }
    }
    if (more < 0)
        report(pass, trace, &err, reading.tables != NULL);
    trace_reading_close(&reading);
}

/* Returns false if there is none. */
static bool next_trace(struct pass *pass, size_t *trace)
{
    pthread_mutex_lock(&pass->traces->lock);
    bool is = pass->next < pass->traces->count && !pass->failed;
    if (is)
        *trace = pass->next++;
    pthread_mutex_unlock(&pass->traces->lock);
    return is;
}

static void *read_traces(void *context)
{
    const struct reader *reader = context;
    size_t trace;
    while (next_trace(reader->pass, &trace))
        read_trace(reader, trace);
    return NULL;
}

size_t read_all_threads(const struct traces *traces)
{
    size_t most = cpu_quota_usable();
    if (most > MOST_THREADS)
        most = MOST_THREADS;
    return most > traces->count && traces->count > 0 ? traces->count : most;
}

bool read_all(struct traces *traces, size_t threads, const uint32_t wanted[TRAIL_TABLES],
              take_rows_fn take, void *context)
{
    struct pass pass = {.traces = traces, .wanted = wanted, .take = take, .context = context};
    struct reader own = {.pass = &pass}, others[MOST_THREADS];
    size_t count = 1;
    for (; count < threads && count < MOST_THREADS; count++) {
        others[count] = (struct reader){.pass = &pass, .number = count};
        if (pthread_create(&others[count].thread, NULL, read_traces, &others[count]) != 0)
            break;
    }
    (void)read_traces(&own);
    while (--count > 0)
        pthread_join(others[count].thread, NULL);
    return !pass.failed;
}
