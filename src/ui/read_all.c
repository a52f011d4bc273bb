/* See read_all.h. */
#include "ui/read_all.h"

#include <stdlib.h>

#include "base/cpu_quota.h"

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

/* What is lacking once may be there the next time. */
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
    return most > traces->count && traces->count > 0 ? traces->count : most;
}

bool read_all(struct traces *traces, const uint32_t wanted[TRAIL_TABLES], take_rows_fn take,
              void *context)
{
    struct pass pass = {.traces = traces, .wanted = wanted, .take = take, .context = context};
    struct reader own = {.pass = &pass};
    size_t most = read_all_threads(traces), count = 1;
    struct reader *others = calloc(most, sizeof *others);
    for (; others && count < most; count++) {
        others[count] = (struct reader){.pass = &pass, .number = count};
        if (pthread_create(&others[count].thread, NULL, read_traces, &others[count]) != 0)
            break;
    }
    (void)read_traces(&own);
    while (others && --count > 0)
        pthread_join(others[count].thread, NULL);
    free(others);
    return !pass.failed;
}
