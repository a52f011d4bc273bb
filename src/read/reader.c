/* The public reader: recognises the format and dispatches to the decoder of v1 or v2. */
#include "read/reader.h"

#include "base/cpu_quota.h"
#include "base/error.h"
#include "read/source.h"

trail_reader *trail_reader_open(trail_source *source, const trail_reader_options *options,
                                trail_error *err)
{
    trail_reader_options own = {0};
    if (options)
        own = *options;
    if (own.ahead && own.threads == 0)
        own.threads = cpu_quota_usable();
    options = &own;
    trail_source_limit_inflated(source, options->inflated_max, options->inflated_ratio);
    int version = reader_peek_version(source, err);
    if (version < 0)
        return NULL;
    if (options->strict)
        source_set_strict(source);
    if (options->strict && source_lacks_header(source)) {
        error_set(err, TRAIL_NOT_A_TRACE,
                  "bad file format: not a Go execution trace: its header is lost");
        return NULL;
    }
    if (!trail_version_is_v2(version))
        return v1_reader_open(source, version, options, err);
    if (options->view == TRAIL_VIEW_V1) {
        error_set(err, TRAIL_USAGE, "a trace of format 1.%d has no view of Go 1.21 and before",
                  version);
        return NULL;
    }
    return v2_reader_open(source, version, options, err);
}

void trail_reader_close(trail_reader *reader)
{
    if (!reader)
        return;
    ahead_stop(reader->ahead);
    reader->ops->close(reader);
}

int trail_reader_version(const trail_reader *reader)
{
    return reader->version;
}

const trail_maker *trail_reader_maker(const trail_reader *reader)
{
    return &reader->tables.maker;
}

size_t trail_reader_recorded(const trail_reader *reader, const trail_recorded **rows)
{
    *rows = reader->tables.recorded.at;
    return reader->tables.recorded.count;
}

bool trail_reader_goroutine(const trail_reader *reader, int64_t id, trail_goroutine_label *label)
{
    const struct identity *known = tables_goroutine(&reader->tables, (uint64_t)id);
    if (!known || known->change == 0)
        return false;
    *label = (trail_goroutine_label){known->name, known->kind};
    return true;
}

static void settle_tables(void *reader)
{
    (void)reader_settle(reader);
}

static void begin(trail_reader *reader)
{
    const trail_reader_options *options = &reader->options;
    reader->began = true;
    if (!options->ahead || options->threads < 2 || options->symbolize || options->verdict_only ||
        options->view != TRAIL_VIEW_EVENTS || !source_is_at_hand(reader->source))
        return;
    reader->tables.settle = settle_tables;
    reader->tables.settle_context = reader;
    ahead_start(reader);
}

static long next_batch(trail_reader *reader, const trail_event **events)
{
    if (!reader->began)
        begin(reader);
    return reader->ahead ? ahead_next(reader->ahead, events)
                         : reader->ops->next_batch(reader, events);
}

long trail_reader_next_batch(trail_reader *reader, const trail_event **events)
{
    if (reader->pending_count > 0) {
        long count = reader->pending_count;
        *events = reader->pending;
        reader->pending_count = 0;
        return count;
    }
    return next_batch(reader, events);
}

int trail_reader_next(trail_reader *reader, const trail_event **event)
{
    if (reader->pending_count == 0) {
        long count = next_batch(reader, &reader->pending);
        if (count <= 0)
            return (int)count;
        reader->pending_count = count;
    }
    *event = reader->pending++;
    reader->pending_count--;
    return 1;
}

long trail_reader_next_v1_batch(trail_reader *reader, const trail_v1_event **events)
{
    if (!reader->ops->next_v1_batch || reader->options.view != TRAIL_VIEW_V1)
        return error_set(&reader->error, TRAIL_USAGE, "the reader was not opened for v1 events");
    return reader->ops->next_v1_batch(reader, events);
}

bool trail_reader_lend(trail_reader *reader, bool (*work)(void *context), void *context)
{
    if (!reader->began)
        begin(reader);
    if (!reader->ahead)
        return false;
    ahead_lend(reader->ahead, work, context);
    return true;
}

void trail_reader_has_work(trail_reader *reader)
{
    if (reader->ahead)
        ahead_has_work(reader->ahead);
}

const trail_error *trail_reader_error(const trail_reader *reader)
{
    return &reader->error;
}

trail_string trail_reader_string(const trail_reader *reader, trail_string_handle handle)
{
    const struct tables *tables = &reader->tables;
    return handle < trail_reader_string_count(reader) ? tables->strings[handle]
                                                      : tables->strings[0];
}

const trail_frame *trail_reader_stack(const trail_reader *reader, trail_stack_handle handle,
                                      size_t *count)
{
    const struct tables *tables = &reader->tables;
    if (handle >= trail_reader_stack_count(reader)) {
        *count = 0;
        return NULL;
    }
    *count = tables->stacks[handle].count;
    return *count ? tables->frames + tables->stacks[handle].first : NULL;
}

uint64_t trail_reader_epoch(const trail_reader *reader)
{
    return reader->tables.epoch;
}

size_t trail_reader_stack_count(const trail_reader *reader)
{
    return __atomic_load_n(&reader->tables.stack_count, __ATOMIC_RELAXED);
}

size_t trail_reader_string_count(const trail_reader *reader)
{
    return __atomic_load_n(&reader->tables.string_count, __ATOMIC_RELAXED);
}

size_t trail_reader_experiment_batches(const trail_reader *reader,
                                       const trail_experiment_batch **batches)
{
    *batches = NULL;
    return reader->ops->experiment_batches ? reader->ops->experiment_batches(reader, batches) : 0;
}

size_t trail_reader_repairs(const trail_reader *reader, const trail_repair **repairs)
{
    *repairs = NULL;
    return reader->ops->repairs ? reader->ops->repairs(reader, repairs) : 0;
}

void trail_reader_get_stats(const trail_reader *reader, trail_reader_stats *stats)
{
    *stats = reader->ahead ? *ahead_stats(reader->ahead) : reader->stats;
}
