/*
 * OTLP metrics: how long goroutines or threads waited, by what they waited for, and how long they
 * were ready, as histograms (messages MetricsData, one for each metric).
 *
 *     trail.wait.duration    of waits, by wait.kind and wait.object
 *     trail.ready.duration   of times from being ready until running
 *
 * A time counts if its start and its end are in the trace, or in the window: one that goes on has
 * no length yet.
 */
#include <stdlib.h>

#include "base/grow.h"
#include "base/order.h"
#include "base/text.h"
#include "export/otlp_clock.h"
#include "export/otlp_message.h"
#include "export/otlp_waits.h"

/*
 * The limit of a metric's series that OpenTelemetry's SDKs have. Times of all others are in one
 * with the attribute `otel.metric.overflow` (specification, "Metrics SDK", "Overflow attribute").
 */
#define MOST_SERIES 2000

/* Upper bounds of buckets, which are inclusive in OTLP: 1 us to 50 s. */
static const uint64_t bounds[] = {
    1000,       2000,       5000,        10000,       20000,       50000,
    100000,     200000,     500000,      1000000,     2000000,     5000000,
    10000000,   20000000,   50000000,    100000000,   200000000,   500000000,
    1000000000, 2000000000, 5000000000U, 10000000000, 20000000000, 50000000000,
};
enum { BOUNDS = sizeof bounds / sizeof *bounds };

/* The times of one metric with the same attributes. */
struct series {
    trail_name kind, object; /* of a wait; 0: none */
    bool overflow;           /* for all waits without a series of their own */
    uint64_t count, sum_ns, min_ns, max_ns;
    uint64_t buckets[BOUNDS + 1];
};

/* The writer's data for a live goroutine. */
struct going {
    int64_t begin_ns;
    trail_name wait;                  /* what it waits for, perhaps 0 */
    enum { NOTHING, WAIT, READY } in; /* NOTHING: no time that counts */
};

struct metrics {
    struct timeline timeline;
    struct out out;
    struct otlp_message message;
    struct otlp_clock clock;
    int64_t begin_ns; /* of the window */
    struct slab goings;
    struct idmap numbers; /* kind << 32 | object, or OVERFLOWS -> number in `waits` + 1 */
    struct series *waits;
    size_t count, capacity;
    struct series ready;
};

#define OVERFLOWS UINT64_MAX

/* MARK: Times */

static void series_add(struct series *series, uint64_t ns)
{
    size_t i = 0;
    while (i < BOUNDS && ns > bounds[i])
        i++;
    series->buckets[i]++;
    series->min_ns = series->count == 0 || ns < series->min_ns ? ns : series->min_ns;
    series->max_ns = ns > series->max_ns ? ns : series->max_ns;
    series->sum_ns += ns;
    series->count++;
}

/* Returns NULL if out of memory. */
static struct series *series_of(struct metrics *m, trail_name wait)
{
    const struct wait_facts *facts = wait_facts_of(&m->timeline.names, wait);
    struct series fresh = {.kind = facts ? facts->kind_name : wait,
                           .object = facts ? facts->object : 0};
    uint64_t key = (uint64_t)fresh.kind << 32 | fresh.object;
    size_t number = (size_t)(uintptr_t)idmap_find(&m->numbers, key);
    if (number == 0 && m->count >= MOST_SERIES - 1) {
        key = OVERFLOWS;
        fresh = (struct series){.overflow = true};
        number = (size_t)(uintptr_t)idmap_find(&m->numbers, key);
    }
    if (number > 0)
        return &m->waits[number - 1];
    if (!GROW(m->waits, m->capacity, m->count + 1) ||
        !idmap_put(&m->numbers, key, (void *)(uintptr_t)(m->count + 1)))
        return NULL;
    m->waits[m->count] = fresh;
    return &m->waits[m->count++];
}

static void end_time(struct metrics *m, const struct going *going, int64_t now)
{
    uint64_t ns = now > going->begin_ns ? (uint64_t)(now - going->begin_ns) : 0;
    if (going->in == READY) {
        series_add(&m->ready, ns);
        return;
    }
    struct series *series = series_of(m, going->wait);
    if (series)
        series_add(series, ns);
    else
        m->timeline.failed = true;
}

static void on_enter(void *writer, struct timeline_goroutine *g)
{
    struct metrics *m = writer;
    struct going *going = (struct going *)(uintptr_t)g->writer;
    bool ready = timeline_state_of(g) == TIMELINE_RUNNABLE;
    if (!going)
        going = slab_get(&m->goings);
    if (!going) {
        m->timeline.failed = true;
        return;
    }
    g->writer = (uintptr_t)going;
    /* A wait in a system call continues when its P is released. */
    if (going->in == WAIT && timeline_state_of(g) == TIMELINE_BLOCKED)
        return;
    if (going->in != NOTHING)
        end_time(m, going, g->since_ns);
    *going = (struct going){.begin_ns = g->since_ns, .wait = g->reason};
    if (!g->found && (ready || otlp_is_wait(g)))
        going->in = ready ? READY : WAIT;
}

static void on_gone(void *writer, struct timeline_goroutine *g, int64_t now)
{
    struct metrics *m = writer;
    struct going *going = (struct going *)(uintptr_t)g->writer;
    (void)now;
    if (going)
        slab_put(&m->goings, going);
    g->writer = 0;
}

/* MARK: Messages */

static void put_point(struct metrics *m, const struct series *series)
{
    struct otlp_message *to = &m->message;
    const enum otlp_field list = OTLP_POINT_ATTRIBUTES;
    otlp_open(to, OTLP_POINTS);
    otlp_number(to, OTLP_POINT_START_TIME, otlp_clock_time(&m->clock, m->begin_ns));
    otlp_number(to, OTLP_POINT_TIME, otlp_clock_time(&m->clock, m->timeline.last_ns));
    otlp_number(to, OTLP_POINT_COUNT, series->count);
    otlp_number(to, OTLP_POINT_SUM, series->sum_ns);
    otlp_numbers(to, OTLP_POINT_BUCKETS, series->buckets, BOUNDS + 1);
    otlp_numbers(to, OTLP_POINT_BOUNDS, bounds, BOUNDS);
    if (series->kind)
        otlp_attribute_text(to, list, "wait.kind", timeline_text(&m->timeline, series->kind));
    if (series->object)
        otlp_attribute_text(to, list, "wait.object", timeline_text(&m->timeline, series->object));
    if (series->overflow)
        otlp_attribute_true(to, list, "otel.metric.overflow");
    otlp_number(to, OTLP_POINT_MIN, series->min_ns);
    otlp_number(to, OTLP_POINT_MAX, series->max_ns);
    otlp_close(to);
}

/* Writes a metric as a message of its own, unless it has no times. */
static void put_metric(struct metrics *m, const char *name, const char *summary,
                       const struct series *series, size_t count)
{
    enum { DELTA = 1 }; /* AggregationTemporality: the times of this trace only */
    struct otlp_message *to = &m->message;
    if (count == 0 || series->count == 0)
        return;
    otlp_open(to, OTLP_RESOURCE_METRICS);
    otlp_resource(to, m->timeline.options);
    otlp_open_scope(to, OTLP_SCOPE_METRICS);
    otlp_open(to, OTLP_METRICS);
    otlp_text(to, OTLP_METRIC_NAME, text_from(name));
    otlp_text(to, OTLP_METRIC_SUMMARY, text_from(summary));
    otlp_text(to, OTLP_METRIC_UNIT, text_from("s"));
    otlp_open(to, OTLP_HISTOGRAM);
    for (size_t i = 0; i < count; i++)
        put_point(m, &series[i]);
    otlp_number(to, OTLP_TEMPORALITY, DELTA);
    m->timeline.stats.spans += count;
    m->timeline.failed |= !otlp_write(to, &m->out);
}

static int by_time(const void *a, const void *b)
{
    const struct series *x = a, *y = b;
    return ORDER(y->sum_ns, x->sum_ns);
}

static void put_all(void *writer)
{
    struct metrics *m = writer;
    bool threads = m->timeline.of_threads;
    if (m->count > 1)
        qsort(m->waits, m->count, sizeof *m->waits, by_time);
    put_metric(m, "trail.wait.duration",
               threads ? "Waits of threads, by what they waited for"
                       : "Waits of goroutines, by what they waited for",
               m->waits, m->count);
    put_metric(m, "trail.ready.duration",
               threads ? "Times in which threads were ready, but not running"
                       : "Times in which goroutines were ready, but not running",
               &m->ready, 1);
}

/* MARK: Begin and end */

static void on_head(void *writer)
{
    struct metrics *m = writer;
    m->timeline.failed |= !otlp_message_init(&m->message, m->timeline.options->otlp_protobuf);
}

static void on_begin(void *writer, int64_t begin_ns)
{
    struct metrics *m = writer;
    m->begin_ns = begin_ns;
    otlp_clock_begin(&m->clock, m->timeline.origin_ns);
}

static void on_clocks(void *writer, const trail_clock_snapshot *snapshot)
{
    otlp_clock_take(&((struct metrics *)writer)->clock, snapshot);
}

static const struct timeline_ops ops = {
    .head = on_head,
    .begin = on_begin,
    .enter = on_enter,
    .gone = on_gone,
    .clocks = on_clocks,
    .tail = put_all,
};

int trail_export_otlp_metrics(trail_reader *reader, const trail_export_options *options,
                              const trail_sink *sink, trail_export_stats *stats, trail_error *err)
{
    struct metrics m = {.goings = {.object_size = sizeof(struct going)}};
    m.timeline = (struct timeline){.reader = reader, .options = options, .ops = &ops, .writer = &m};
    int result = timeline_run(&m.timeline, &m.out, sink, stats, err);
    otlp_message_free(&m.message);
    slab_free(&m.goings);
    idmap_free(&m.numbers);
    free(m.waits);
    return result;
}
