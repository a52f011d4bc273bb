/*
 * Converting: passes the events of a reader, all or those in a window, to the writer of a
 * conversion. Generations of v2 are kept; a trace of v1 is cut into generations during its pauses.
 * Events before a window only determine what is alive when it begins.
 */
#include <trail/export.h>

#include "base/error.h"
#include "write/convert_writer.h"
#include "write/keep.h"

#define NEWEST 26

struct convert {
    trail_reader *reader;
    const trail_convert_options *options;
    struct convert_writer writer;
    bool has_generations; /* of its own */
    int version;
    bool timed, begun, over;
    int64_t first_ns;
    bool waits; /* a generation is to begin with the next event */
    bool announce;
    int64_t begin_ns;
    bool has_clocks;
    trail_clock_snapshot clocks;
    struct keep keep;
    int64_t end_ns; /* of the last event that was kept, or would have been */
};

/* Whether an event is in the window. If it is after the window, the conversion is over. */
static bool in_window(struct convert *c, const trail_event *e)
{
    const trail_convert_options *o = c->options;
    if (!c->timed) {
        trail_reader_stats stats;
        trail_reader_get_stats(c->reader, &stats);
        c->timed = true;
        c->first_ns = stats.skipped_bytes > 0 ? stats.first_ns : e->time_ns;
    }
    /* Unsigned, because a hostile file may have times at both ends of the range. */
    int64_t since = (int64_t)((uint64_t)e->time_ns - (uint64_t)c->first_ns);
    c->over = o->has_to && since > o->to_ns;
    return !c->over && (c->begun || !o->has_from || since >= o->from_ns);
}

static void begin(struct convert *c, int64_t time_ns, bool announce)
{
    event_writer_begin(&c->writer.base, time_ns, c->has_clocks ? &c->clocks : NULL, announce);
    c->waits = false;
}

/* Delays the generation until its first event, because Go up to 1.24 fails on an empty one. */
static void begin_later(struct convert *c, int64_t time_ns)
{
    c->announce = !c->begun || (c->waits && c->announce);
    c->begun = c->waits = true;
    c->begin_ns = time_ns;
    if (c->version >= 25)
        begin(c, time_ns, c->announce);
}

/* Whether the event is kept; *kept is its form in the output. */
static bool is_kept(struct convert *c, const trail_event *e, trail_event *kept)
{
    *kept = *e;
    c->end_ns = e->time_ns;
    return keep_event(&c->keep, kept);
}

static void convert_event(struct convert *c, const trail_event *e)
{
    bool sync = e->kind == TRAIL_SYNC;
    if (sync && e->sync.final)
        return;
    if (sync)
        c->has_clocks |= trail_reader_wall_clock(c->reader, e, &c->clocks);
    bool inside = in_window(c, e);
    if (c->over)
        return;
    if (inside && (!c->begun || (sync && c->has_generations)))
        begin_later(c, e->time_ns);
    trail_event kept = {0};
    if (sync || (c->options->goroutines && !is_kept(c, e, &kept)))
        return;
    if (c->waits)
        begin(c, c->begin_ns, c->announce);
    else if (inside && !c->has_generations && event_writer_is_due(&c->writer.base, e->time_ns))
        begin(c, e->time_ns, true);
    convert_writer_put(&c->writer, c->options->goroutines ? &kept : e);
}

/* -1: the reader failed. */
static int convert_all(struct convert *c)
{
    const trail_event *events;
    long count;
    while ((count = trail_reader_next_batch(c->reader, &events)) > 0) {
        for (long i = 0; i < count && !c->over; i++)
            convert_event(c, &events[i]);
        if (c->over || event_writer_failed(&c->writer.base))
            return 0;
        if (c->options->progress)
            c->options->progress(c->options->progress_context);
    }
    return (int)count;
}

int trail_convert(trail_reader *reader, const trail_convert_options *options,
                  const trail_sink *sink, trail_convert_stats *stats, trail_error *err)
{
    trail_error ignored;
    trail_convert_stats ignored_stats = {0};
    error_clear(&ignored);
    err = err ? err : &ignored;
    stats = stats ? stats : &ignored_stats;
    *stats = (trail_convert_stats){0};
    struct convert c = {
        .reader = reader,
        .options = options,
        .version = options->version ? options->version : NEWEST,
        .has_generations = trail_version_is_v2(trail_reader_version(reader)),
        .keep = {.goroutines = options->goroutines, .count = options->goroutine_count},
    };
    if (convert_writer_init(&c.writer, c.version, reader, sink, err) < 0)
        return -1;
    c.writer.part = options->goroutines != NULL;
    if (options->anonymize && convert_writer_anonymize(&c.writer, options->secret, err) < 0) {
        (void)convert_writer_fini(&c.writer, &(trail_convert_stats){0}, &ignored);
        return -1;
    }
    int result = convert_all(&c);
    if (options->goroutines && c.begun)
        convert_writer_last(&c.writer, c.end_ns, c.has_clocks ? &c.clocks : NULL);
    bool good = convert_writer_fini(&c.writer, stats, err);
    if (good && result < 0)
        *err = *trail_reader_error(reader);
    return good && result == 0 ? 0 : -1;
}
