/* The written trace, its generations, and what is alive when one begins: see event_writer.h. */
#include "write/event_writer.h"

#include "base/error.h"
#include "read/maker.h"
#include "read/wall.h"
#include "wire/wire.h"
#include "write/anonymize_types.h"
#include "write/event_records.h"

/* A generation of v1 is due to end after this many events, and ends at twice as many. */
#define DUE_EVENTS     (UINT64_C(512) << 10)
#define OVERDUE_EVENTS (2 * DUE_EVENTS)

/* MARK: Announcing */

static void announce_gc(struct event_writer *w)
{
    struct model_m *m = w->initial ? &w->model.nobody : event_any_running(w);
    if (w->model.gc == MODEL_GC_ON && m)
        ADD(w, m, V2_GCActive, model_next_gc(&w->model));
    else if (w->initial && w->model.gc != MODEL_GC_ON)
        w->model.gc = MODEL_GC_UNDETERMINED;
}

static void announce_all(struct event_writer *w)
{
    struct trace_model *model = &w->model;
    IDMAP_EACH(slot, &model->ps.map)
        event_announce_p(w, slot->value);
    IDMAP_EACH(slot, &model->gs.map)
        event_announce_g(w, slot->value);
    announce_gc(w);
}

/* Returns the maximum number of records that announce what is alive. */
static uint64_t to_announce(const struct event_writer *w)
{
    return 2 * (w->model.gs.map.count + w->model.ps.map.count) + 2;
}

/* MARK: Generations */

static trail_clock_snapshot clocks_at(int64_t time_ns, const trail_clock_snapshot *known)
{
    const int64_t second = 1000000000;
    if (!known)
        return (trail_clock_snapshot){
            .trace_ns = time_ns,
            .mono_ns = (uint64_t)time_ns,
            .wall_s = time_ns / second,
            .wall_ns = (uint32_t)(time_ns % second),
        };
    /* Unsigned, because a hostile file may have times at both ends of the range. */
    int64_t since = (int64_t)((uint64_t)time_ns - (uint64_t)known->trace_ns);
    int64_t ns = since % second + known->wall_ns, whole = since / second;
    if (ns < 0) {
        ns += second;
        whole--;
    }
    return (trail_clock_snapshot){
        .trace_ns = time_ns,
        .mono_ns = known->mono_ns + (uint64_t)since,
        .wall_s = (int64_t)((uint64_t)known->wall_s + (uint64_t)whole + (uint64_t)(ns / second)),
        .wall_ns = (uint32_t)(ns % second),
    };
}

/* A batch to be written anonymously. */
struct anonymous_batch {
    struct event_writer *w;
    const trail_experiment_batch *batch;
};

static bool put_anonymous(void *context, const void *data, size_t size)
{
    const struct anonymous_batch *of = context;
    return v2_writer_experiment(of->w->out, of->batch->experiment, (uint64_t)of->batch->thread,
                                data, size);
}

/* The contents of experiments other than AllocFree are unknown, and so are the names in them. */
static void put_experiments(struct event_writer *w)
{
    const trail_experiment_batch *batches;
    size_t count = trail_reader_experiment_batches(w->from->reader, &batches);
    for (size_t i = 0; i < count && w->version >= 23; i++) {
        struct anonymous_batch of = {w, &batches[i]};
        if (!w->anonymizer)
            (void)put_anonymous(&of, batches[i].data, batches[i].size);
        else if (batches[i].experiment != V2_EXPERIMENT_ALLOC_FREE ||
                 !anonymize_alloc_free(w->anonymizer, batches[i].data, batches[i].size,
                                       put_anonymous, &of))
            w->stats.unknown_batches++;
    }
}

/* A trace from several makers uses the words of its format: Go's. */
static void put_maker(struct event_writer *w)
{
    trail_maker maker = *trail_reader_maker(w->origins->reader);
    for (const struct origin *other = w->origins->next; other; other = other->next)
        if (!maker_equal(&maker, trail_reader_maker(other->reader)))
            return;
    if (w->anonymizer)
        anonymize_maker(&maker);
    v2_writer_maker(w->out, &maker);
}

/* Rows that name goroutines are valid for one trace only: merging renumbers goroutines. */
static bool is_passed_on(const struct event_writer *w, const trail_recorded *row)
{
    return row->what != TRAIL_RECORDED_ENDS || !w->origins->next;
}

/* The names of processes are not passed on when anonymizing. */
static void put_recorded(struct event_writer *w)
{
    const trail_recorded *rows;
    for (const struct origin *of = w->origins; of && !w->anonymizer; of = of->next) {
        size_t count = trail_reader_recorded(of->reader, &rows);
        for (size_t i = 0; i < count; i++)
            if (is_passed_on(w, &rows[i]))
                v2_writer_recorded(w->out, &rows[i]);
    }
}

/* Readings of the clock have a record only since 1.25. */
static void put_wall(struct event_writer *w, const trail_clock_snapshot *clocks)
{
    char line[WALL_LINE];
    trail_string text = wall_line(clocks, line);
    if (text.size > 0)
        v2_writer_note(w->out, text);
}

/* Returns when the generation begins, so that announcements are earlier than the event. */
static int64_t begin_time(const struct event_writer *w, bool announce)
{
    int64_t before_ns = announce ? (int64_t)to_announce(w) + EVENT_WRITER_AHEAD_NS : 0;
    int64_t begin_ns = w->time_ns - before_ns;
    if (!announce || (w->model.gs.map.count == 0 && w->model.ps.map.count == 0))
        begin_ns = w->time_ns;
    return begin_ns > 1 ? begin_ns : 1;
}

void event_writer_begin(struct event_writer *w, int64_t time_ns, const trail_clock_snapshot *clocks,
                        bool announce)
{
    if (w->stats.generations > 0)
        v2_writer_end(w->out);
    w->time_ns = (int64_t)((uint64_t)time_ns + (uint64_t)w->shift_ns);
    w->begin_ns = begin_time(w, announce);
    bool here = clocks && w->begin_ns == w->time_ns && clocks->trace_ns > 0;
    trail_clock_snapshot now = here ? *clocks : clocks_at(w->begin_ns, clocks);
    if (now.trace_ns < w->begin_ns)
        w->begin_ns = now.trace_ns;
    v2_writer_begin_before(w->out, w->begin_ns, &now);
    w->last_ns = w->begin_ns > w->last_ns ? w->begin_ns : w->last_ns + 1;
    w->stats.generations++;
    w->generation_events = 0;
    w->initial = w->stats.generations == 1;
    w->begun = true;
    w->model.generation++;
    put_maker(w);
    if (clocks && w->version < WALL_READINGS)
        put_wall(w, &now);
    put_experiments(w);
    if (w->initial)
        model_forget_begun(&w->model);
    if (announce) {
        w->time_ns = w->last_ns; /* as early as possible */
        announce_all(w);
    }
}

bool event_writer_is_due(const struct event_writer *w, int64_t time_ns)
{
    if (w->generation_events < DUE_EVENTS || w->model.stopped_worlds > 0)
        return false;
    int64_t pause_ns = time_ns + w->shift_ns - w->last_ns;
    return w->generation_events >= OVERDUE_EVENTS ||
           pause_ns > (int64_t)to_announce(w) + 2 * EVENT_WRITER_AHEAD_NS;
}

/* MARK: Events */

bool event_writer_failed(const struct event_writer *w)
{
    return w->too_far || w->model.no_memory || v2_writer_failed(w->out);
}

/* MARK: Opening and closing */

int event_writer_init(struct event_writer *w, int version, const trail_sink *sink, trail_error *err)
{
    *w = (struct event_writer){.version = version, .out = v2_writer_open(version, sink, err)};
    if (!w->out)
        return -1;
    model_init(&w->model);
    return 0;
}

bool event_writer_fini(struct event_writer *w, trail_convert_stats *stats, trail_error *err)
{
    *stats = w->stats;
    if (w->begun)
        put_recorded(w);
    bool good = v2_writer_close(w->out, err);
    if (w->model.no_memory)
        good = !error_no_memory(err);
    else if (w->too_far)
        good = !error_set(err, TRAIL_UNSUPPORTED, "a generation of over 104 days");
    model_fini(&w->model);
    return good;
}
