/*
 * trail info: describes a trace. Without --full it reads batch headers only, which is fast; --full
 * decodes everything.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/idmap.h"
#include "base/order.h"
#include "base/part_name.h"
#include "base/varint.h"
#include "base/whole.h"
#include "read/maker.h"
#include "read/source.h"
#include "read/v1/lex.h"
#include "read/wall.h"
#include "ui/cli.h"
#include "ui/cpu_limits.h"
#include "ui/input.h"
#include "ui/progress.h"
#include "ui/show.h"
#include "ui/words.h"
#include "wire/wire.h"

struct request {
    bool full, json;
    trail_words words;
};

static const struct option rows[] = {
    {'f', "full", NULL,
     "decode everything: events by kind, goroutines, strings, stacks, tasks, the exact duration, "
     "damage",
     TO_FLAG(struct request, full)},
    {'j', "json", NULL, "one JSON object per file", TO_FLAG(struct request, json)},
    WORDS_ROW(struct request, words),
    {0},
};

#define BATCH_KINDS  (TRAIL_BATCH_END_GENERATION + 1)
#define RECORD_TYPES 256

struct tally {
    const char *name; /* NULL until something is counted */
    uint64_t count, bytes;
};

/* One of several traces in a file. */
struct part {
    int version;
    int64_t offset; /* in the uncompressed file */
    uint64_t bytes;
    bool damaged;
};

enum { MOST_PARTS = 1000 }; /* that are listed */

/* What is known about a file. */
struct info {
    const char *title;
    bool is_part; /* one of several traces, chosen by its number */
    int version;
    trail_maker maker;
    trail_words words;
    char compression[64]; /* source_codec */
    char read_from[64];   /* trail_source_compression */
    int64_t size;         /* of the file, -1 if unknown */
    uint64_t bytes;       /* of the trace, uncompressed, as far as it was read */
    uint64_t batches;
    uint64_t records; /* v1 */
    struct tally by_batch[BATCH_KINDS];
    uint64_t generations;
    uint64_t last_generation;
    struct idmap threads, procs; /* v2: of batches, v1: of batches; --full: of events */
    bool timed;
    uint64_t first_ticks, last_ticks;
    uint64_t frequency;
    bool has_wall;
    bool wall_in_ns;     /* wall_ticks is in nanoseconds */
    uint64_t wall_ticks; /* trace time of the wall clock reading below */
    int64_t wall_s;
    uint32_t wall_ns;
    bool walked; /* all batches could be found by their headers */
    bool damaged;
    trail_error damage;
    struct part *parts; /* if there are several */
    size_t part_capacity;
    uint64_t part_count; /* the first MOST_PARTS are in `parts` */

    /* --full */
    bool full;
    uint64_t events[TRAIL_KINDS];
    uint64_t event_count;
    struct tally by_record[RECORD_TYPES];
    struct idmap goroutines, tasks;
    int64_t first_ns, last_ns;
    trail_reader_stats stats;
    struct cpu_limits limits;
};

/* MARK: Batches */

static void count_in(struct tally *tally, const char *name, uint64_t bytes)
{
    tally->name = name;
    tally->count++;
    tally->bytes += bytes;
}

/* Counts an ID once. Returns false if out of memory. */
static bool count_id(struct idmap *seen, uint64_t id)
{
    if (idmap_find(seen, id) || idmap_put(seen, id, seen))
        return true;
    show_lacks();
    return false;
}

static bool get_uvarint(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
    *at = uvarint_get(*at, end, value);
    return *at;
}

/*
 * The number of v2 generations of which the time of every event is read, not only of every batch. A
 * short trace has one or two batches per thread, whose begins do not show its length; in a longer
 * one they are close enough.
 */
enum { TIMED_GENERATIONS = 3 };

/* Returns the time of the last event of a v2 batch; the batch's own time if it has none. */
static uint64_t last_event_ticks(const trail_batch *batch, const uint8_t *at, int version)
{
    const uint8_t *end = at + batch->size;
    uint64_t ticks = batch->time_ticks, value = 0;
    while (at < end) {
        uint8_t type = *at++;
        if (!v2_type_known(type, version) || v2_types[type].class < V2_CLASS_TIMED)
            break;
        for (unsigned i = 0; i < v2_types[type].args; i++) {
            if (!get_uvarint(&at, end, &value))
                return ticks;
            ticks += i == 0 ? value : 0;
        }
    }
    return ticks;
}

/* Reads the frequency and the clock reading of a v2 sync batch (types 8, 50 and 51, §5.1). */
static void read_sync(struct info *info, const trail_batch *batch, const uint8_t *at)
{
    const uint8_t *end = at + batch->size;
    uint64_t dt, mono, s, ns;
    while (at < end) {
        uint8_t type = *at++;
        if (type == 8) {
            if (!get_uvarint(&at, end, &info->frequency))
                return;
        } else if (type == 51) {
            if (!get_uvarint(&at, end, &dt) || !get_uvarint(&at, end, &mono) ||
                !get_uvarint(&at, end, &s) || !get_uvarint(&at, end, &ns))
                return;
            if (info->has_wall || ns >= 1000000000)
                continue;
            info->has_wall = true;
            info->wall_ticks = batch->time_ticks + dt;
            info->wall_s = (int64_t)s;
            info->wall_ns = (uint32_t)ns;
        } else if (type != 50) {
            return;
        }
    }
}

/*
 * Reads the Frequency record of a v1 file: in the footer, which has no Batch record before it, or,
 * in 1.21, at the start of the batches written at the end.
 */
static void read_v1_frequency(struct info *info, const trail_batch *batch, const uint8_t *at)
{
    const uint8_t *end = at + batch->size;
    struct v1_lex lex;
    v1_lex_init(&lex, info->version);
    while (at && at < end && (*at & V1_TYPE_MASK) != V1_Frequency)
        at = batch->header_size > 0 ? NULL : v1_lex_skip(&lex, at, end);
    if (at && at < end)
        (void)uvarint_get(at + 1, end, &info->frequency);
}

/* Each generation of v2 names the maker, so the tables of later ones need not be read. */
static void find_maker(struct info *info, trail_walk *walk, const trail_batch *batch)
{
    bool v2 = trail_version_is_v2(info->version);
    if (info->maker.made_by != TRAIL_MADE_BY_GO ||
        (v2 && (batch->kind != TRAIL_BATCH_STRINGS || info->generations > 1)))
        return;
    const uint8_t *data = trail_walk_data(walk);
    if (data)
        (void)maker_in_batch(info->version, batch, data, &info->maker);
}

/* Finds the wall clock in a format without readings; each generation has the line, and the first
 * one's applies. */
static void find_wall_line(struct info *info, trail_walk *walk, const trail_batch *batch)
{
    trail_clock_snapshot clocks;
    if (info->has_wall || info->version >= WALL_READINGS || info->generations > 1 ||
        batch->kind != TRAIL_BATCH_STRINGS)
        return;
    const uint8_t *data = trail_walk_data(walk);
    if (!data || !wall_in_batch(batch, data, &clocks))
        return;
    info->has_wall = info->wall_in_ns = true;
    info->wall_ticks = (uint64_t)clocks.trace_ns;
    info->wall_s = clocks.wall_s;
    info->wall_ns = clocks.wall_ns;
}

static bool add_batch(struct info *info, trail_walk *walk, const trail_batch *batch)
{
    bool v2 = trail_version_is_v2(info->version);
    info->batches++;
    info->records += batch->records;
    info->bytes = (uint64_t)batch->offset + batch->header_size + batch->size;
    count_in(&info->by_batch[batch->kind], trail_batch_kind_name(batch->kind),
             batch->header_size + batch->size);
    if (batch->kind == TRAIL_BATCH_END_GENERATION)
        return true;
    bool has_time = batch->header_size > 0;
    if (has_time && (!info->timed || batch->time_ticks < info->first_ticks))
        info->first_ticks = batch->time_ticks;
    if (has_time && (!info->timed || batch->time_ticks > info->last_ticks))
        info->last_ticks = batch->time_ticks;
    info->timed = info->timed || has_time;
    if (!v2) {
        find_maker(info, walk, batch);
        read_v1_frequency(info, batch, trail_walk_data(walk));
        return batch->proc < 0 || count_id(&info->procs, (uint64_t)batch->proc);
    }
    if (info->generations == 0 || batch->generation != info->last_generation)
        info->generations++;
    info->last_generation = batch->generation;
    find_maker(info, walk, batch);
    find_wall_line(info, walk, batch);
    if (batch->kind == TRAIL_BATCH_SYNC)
        read_sync(info, batch, trail_walk_data(walk));
    const uint8_t *data =
        batch->kind == TRAIL_BATCH_EVENTS && info->generations <= TIMED_GENERATIONS
            ? trail_walk_data(walk)
            : NULL;
    uint64_t ticks = data ? last_event_ticks(batch, data, info->version) : 0;
    if (data && ticks > info->last_ticks)
        info->last_ticks = ticks;
    if (batch->kind == TRAIL_BATCH_EVENTS && batch->thread >= 0)
        return count_id(&info->threads, (uint64_t)batch->thread);
    return true;
}

static void note_damage(struct info *info, const trail_error *err)
{
    if (!info->damaged)
        info->damage = *err;
    info->damaged = true;
}

/* Notes that the trace is valid but incomplete. */
static void note_cut(struct info *info, const char *message)
{
    trail_error err = no_error();
    err.code = TRAIL_TRUNCATED;
    err.offset = (int64_t)info->bytes;
    (void)snprintf(err.message, sizeof err.message, "%s", message);
    note_damage(info, &err);
}

/* Returns false if out of memory. */
static bool add_part(struct info *info, const struct part *part)
{
    if (info->part_count < MOST_PARTS) {
        if (!GROW(info->parts, info->part_capacity, info->part_count + 1))
            return show_lacks(), false;
        info->parts[info->part_count] = *part;
    }
    info->part_count++;
    return true;
}

/*
 * Walks the trace that begins `offset` bytes into the walk, which is `base` bytes into the file,
 * and lists it. Returns 1, 0 if it is damaged, -1 if out of memory.
 */
static int walk_part(struct info *info, trail_walk *walk, int64_t base, int64_t offset,
                     struct progress *progress)
{
    trail_batch batch;
    struct part part = {
        .version = trail_walk_version(walk), .offset = base + offset, .bytes = WIRE_HEADER_SIZE};
    int more;
    while ((more = trail_walk_next(walk, &batch)) > 0) {
        part.bytes = (uint64_t)(batch.offset - offset) + batch.header_size + batch.size;
        progress_step(progress);
    }
    part.damaged = more < 0;
    if (more < 0)
        note_damage(info, trail_walk_error(walk));
    return !add_part(info, &part) ? -1 : more == 0;
}

/* Walks the traces after one that has been walked. Returns false if out of memory. */
static bool walk_parts(struct info *info, trail_walk *walk, int64_t base, struct progress *progress)
{
    int64_t offset;
    int result = 1;
    while (result > 0 && (offset = trail_walk_next_trace(walk)) >= 0) {
        if (trail_walk_go_on(walk) < 0) {
            const struct part unknown = {
                .offset = base + offset, .bytes = WIRE_HEADER_SIZE, .damaged = true};
            note_damage(info, trail_walk_error(walk));
            return add_part(info, &unknown);
        }
        result = walk_part(info, walk, base, offset, progress);
    }
    return result >= 0;
}

/* Lists the trace that has been described as the first of several. */
static bool add_first(struct info *info)
{
    const struct part first = {
        .version = info->version, .bytes = info->bytes, .damaged = info->damaged};
    return add_part(info, &first);
}

static int walk_batches(struct info *info, trail_source *source)
{
    trail_error err;
    trail_walk *walk = trail_walk_open(source, &err);
    if (!walk) {
        note_damage(info, &err);
        return -1;
    }
    info->version = trail_walk_version(walk);
    info->bytes = 16;
    struct progress progress;
    progress_begin(&progress, source, PROGRESS_OUTPUT_AFTER);
    trail_batch batch;
    int more;
    bool memory = true;
    trail_batch_kind last = TRAIL_BATCH_END_GENERATION;
    while (memory && (more = trail_walk_next(walk, &batch)) > 0) {
        memory = add_batch(info, walk, &batch);
        last = batch.kind;
        progress_step(&progress);
    }
    if (memory && more < 0) {
        note_damage(info, trail_walk_error(walk));
    } else if (info->version >= 26 && last != TRAIL_BATCH_END_GENERATION) {
        note_cut(info, "the last generation is incomplete: the trace is cut off");
        info->damage.generation = (int64_t)info->last_generation;
    } else if (memory && info->version < 22 && info->frequency == 0) {
        note_cut(info, "the end of the trace, with the frequency of its clock, is cut off");
    }
    info->walked = memory && more == 0;
    if (info->walked && !info->is_part && trail_walk_next_trace(walk) >= 0)
        memory = add_first(info) && walk_parts(info, walk, 0, &progress);
    progress_end(&progress);
    trail_walk_close(walk);
    return memory ? 0 : -1;
}

/* MARK: --full */

static int count_records(struct info *info, trail_source *source)
{
    trail_error err;
    trail_records *records = trail_records_open(source, &err);
    if (!records) {
        note_damage(info, &err);
        return -1;
    }
    const trail_record *record;
    int more;
    while ((more = trail_records_next(records, &record)) > 0)
        if (record->type < RECORD_TYPES)
            count_in(&info->by_record[record->type], record->name, record->size);
    if (more < 0)
        note_damage(info, trail_records_error(records));
    trail_records_close(records);
    return 0;
}

static bool count_event(struct info *info, const trail_event *event)
{
    bool ok = true;
    info->events[event->kind < TRAIL_KINDS ? event->kind : TRAIL_BAD]++;
    if (event->goroutine >= 0)
        ok = count_id(&info->goroutines, (uint64_t)event->goroutine) && ok;
    if (event->proc >= 0 && event->proc < TRAIL_FAKE_PROC)
        ok = count_id(&info->procs, (uint64_t)event->proc) && ok;
    if (event->thread >= 0)
        ok = count_id(&info->threads, (uint64_t)event->thread) && ok;
    if (event->kind == TRAIL_TASK_BEGIN)
        ok = count_id(&info->tasks, event->task.id) && ok;
    if (event->kind == TRAIL_STATE_TRANSITION && event->transition.id >= 0) {
        bool goroutine = event->transition.resource == TRAIL_RESOURCE_GOROUTINE;
        struct idmap *set = goroutine ? &info->goroutines : &info->procs;
        ok = count_id(set, (uint64_t)event->transition.id) && ok;
    }
    return ok;
}

static int count_events(struct info *info, trail_source *source)
{
    trail_error err;
    trail_reader_options options = {.partial = true};
    trail_reader *reader = trail_reader_open(source, &options, &err);
    if (!reader) {
        note_damage(info, &err);
        return -1;
    }
    struct progress progress;
    progress_begin(&progress, source, PROGRESS_OUTPUT_AFTER);
    const trail_event *events;
    long count;
    bool memory = true;
    while (memory && (count = trail_reader_next_batch(reader, &events)) > 0) {
        if (info->event_count == 0)
            info->first_ns = events[0].time_ns;
        info->last_ns = events[count - 1].time_ns;
        info->event_count += (uint64_t)count;
        for (long i = 0; i < count && memory; i++)
            memory = count_event(info, &events[i]);
        progress_step(&progress);
    }
    progress_end(&progress);
    if (memory && count < 0)
        note_damage(info, trail_reader_error(reader));
    trail_reader_get_stats(reader, &info->stats);
    if (!info->walked && info->stats.bytes > info->bytes)
        info->bytes = info->stats.bytes;
    if (!info->walked && info->stats.generations > info->generations)
        info->generations = info->stats.generations;
    cpu_limits_find(reader, &info->limits);
    trail_reader_close(reader);
    return memory ? 0 : -1;
}

/* MARK: Results */

/* Converts ticks to ns; -1 if the length of a tick is not in the trace. */
static int64_t ticks_ns(const struct info *info, uint64_t ticks)
{
    if (info->frequency == 0)
        return -1;
    double ns = (double)ticks * 1e9 / (double)info->frequency;
    return ns < 9e18 ? whole_of(ns) : -1;
}

/* Whether all events were decoded; for a damaged trace the batch headers give a better figure. */
static bool exact_duration(const struct info *info)
{
    return info->event_count > 0 && (!info->damaged || !info->timed || !info->walked);
}

static int64_t duration_ns(const struct info *info)
{
    if (exact_duration(info))
        return (int64_t)((uint64_t)info->last_ns - (uint64_t)info->first_ns);
    return info->timed ? ticks_ns(info, info->last_ticks - info->first_ticks) : -1;
}

/* Computes the nanoseconds from the start of the trace to the reading of the wall clock. Returns
 * false if unknown. */
static bool wall_delay(const struct info *info, int64_t *delay)
{
    bool later = info->wall_ticks >= info->first_ticks;
    int64_t first_ns = ticks_ns(info, info->first_ticks);
    if (!info->has_wall || first_ns < 0)
        return false;
    if (info->wall_in_ns)
        *delay = (int64_t)(info->wall_ticks - (uint64_t)first_ns);
    else
        *delay = later ? ticks_ns(info, info->wall_ticks - info->first_ticks) : 0;
    return info->wall_in_ns || *delay >= 0;
}

/* Computes the wall clock at the start of the trace. */
static bool wall_start(const struct info *info, int64_t *s, uint32_t *ns)
{
    const int64_t second = 1000000000;
    int64_t delay;
    if (!wall_delay(info, &delay))
        return false;
    int64_t nanos = (int64_t)info->wall_ns - delay % second;
    int64_t whole = delay / second + (nanos < 0) - (nanos >= second);
    *s = (int64_t)((uint64_t)info->wall_s - (uint64_t)whole);
    *ns = (uint32_t)(nanos < 0 ? nanos + second : nanos >= second ? nanos - second : nanos);
    return true;
}

/* Until its first event is known, a trace's times depend on the starts of its batches. */
static const char *duration_quality(const struct info *info)
{
    if (exact_duration(info))
        return info->damaged && !info->walked ? "at least " : "";
    return info->version < 11 ? "at least " : "about ";
}

static void show_tally(const struct info *info, const struct tally *tally, int width)
{
    char size[SHOW_SIZE];
    if (tally->count > 0)
        printf("    %-*s %9" PRIu64 " %14s %6.1f %%\n", width, tally->name, tally->count,
               show_bytes(size, tally->bytes), 100.0 * (double)tally->bytes / (double)info->bytes);
}

/* Equal sizes: in the order of the array, which is by type. */
static int by_bytes(const void *a, const void *b)
{
    const struct tally *x = *(const struct tally *const *)a, *y = *(const struct tally *const *)b;
    return ORDER(y->bytes, x->bytes) ?: ORDER(x, y);
}

static void show_records(const struct info *info)
{
    const struct tally *order[RECORD_TYPES];
    for (size_t i = 0; i < RECORD_TYPES; i++)
        order[i] = &info->by_record[i];
    qsort((void *)order, RECORD_TYPES, sizeof(void *), by_bytes);
    printf("  records by type\n");
    for (size_t i = 0; i < RECORD_TYPES; i++)
        show_tally(info, order[i], 20);
}

static void put_count(const char *what, uint64_t count)
{
    printf("  %-12s %" PRIu64 "\n", what, count);
}

static void show_full(const struct info *info, const struct vocabulary *vocabulary)
{
    /* In recordings of trail record a goroutine is a thread, which has been counted. */
    if (vocabulary->of != TRAIL_MADE_BY_RECORD)
        put_count(term(vocabulary, TERM_tasks), info->goroutines.count);
    put_count("tasks", info->tasks.count);
    put_count("regions", info->events[TRAIL_REGION_BEGIN]);
    put_count("CPU samples", info->events[TRAIL_STACK_SAMPLE]);
    put_count("strings", info->stats.strings);
    put_count("stacks", info->stats.stacks);
    put_count("events", info->event_count);
    for (int kind = 0; kind < TRAIL_KINDS; kind++)
        if (info->events[kind] > 0)
            printf("    %-18s %9" PRIu64 "\n", trail_kind_name((trail_kind)kind),
                   info->events[kind]);
    show_records(info);
    cpu_limits_show(&info->limits, "  ");
}

static void show_times(const struct info *info)
{
    char text[SHOW_SIZE];
    int64_t s, duration = duration_ns(info);
    uint32_t ns;
    if (duration >= 0)
        printf("  duration     %s%s\n", duration_quality(info), show_duration(text, duration));
    else
        printf("  duration     not known: the frequency of its clock is not in the trace\n");
    if (wall_start(info, &s, &ns))
        printf("  started      %s\n", show_wall(text, s, ns));
}

/* Prints nothing for Go, which the format implies. */
static void show_maker(const trail_maker *maker)
{
    if (maker->made_by == TRAIL_MADE_BY_GO)
        return;
    printf("  made by      %s", trail_made_by_name(maker->made_by));
    if (*maker->task_word)
        show_line(", its word for a task: %s", maker->task_word);
    else
        putchar('\n');
}

static size_t listed_parts(const struct info *info)
{
    return info->part_count < MOST_PARTS ? (size_t)info->part_count : MOST_PARTS;
}

static void show_parts(const struct info *info)
{
    char bytes[SHOW_SIZE];
    if (info->part_count == 0)
        return;
    printf("  parts        %" PRIu64 " traces, of which the above is the first; FILE#2 names the "
           "second\n",
           info->part_count);
    for (size_t i = 0; i < listed_parts(info); i++) {
        const struct part *part = &info->parts[i];
        printf("    #%-4zu  offset %#" PRIx64 ", %s", i + 1, (uint64_t)part->offset,
               show_bytes(bytes, part->bytes));
        if (part->version > 0)
            printf(", go 1.%d trace", part->version);
        printf("%s\n", part->damaged ? ", damaged: more traces may follow" : "");
    }
    if (info->part_count > MOST_PARTS)
        printf("    ...\n");
}

static void show_info(const struct info *info)
{
    char text[SHOW_SIZE];
    const char *writers = trail_version_writers(info->version);
    struct vocabulary vocabulary;
    vocabulary_init(&vocabulary, &info->maker, info->words);
    const char *slots = term(&vocabulary, TERM_slots), *machines = term(&vocabulary, TERM_machines);
    show_line("%s", info->title);
    printf("  format       go 1.%d trace (%s)\n", info->version, writers ? writers : "?");
    show_maker(&info->maker);
    printf("  size         %s", show_bytes(text, info->bytes));
    if (strcmp(info->compression, "none") != 0 && info->size >= 0)
        printf(", %s with %s", show_bytes(text, (uint64_t)info->size), info->compression);
    printf("\n");
    if (strcmp(info->read_from, info->compression) != 0)
        show_line("  read from    %s", info->read_from);
    show_times(info);
    if (trail_version_is_v2(info->version)) {
        put_count("generations", info->generations);
        put_count(machines, info->threads.count);
        if (info->full)
            put_count(slots, info->procs.count);
    } else {
        put_count("records", info->records);
        put_count(slots, info->procs.count);
        if (info->full)
            put_count(machines, info->threads.count);
    }
    put_count("batches", info->batches);
    for (size_t i = 0; i < BATCH_KINDS; i++)
        show_tally(info, &info->by_batch[i], 18);
    if (!info->walked)
        printf("    counted up to the first damage\n");
    if (info->full)
        show_full(info, &vocabulary);
    show_parts(info);
    if (info->stats.text_bytes > 0)
        printf("  text         %" PRIu64 " byte%s of text that the program wrote into the trace: "
               "left out\n",
               info->stats.text_bytes, plural_s(info->stats.text_bytes));
    if (info->damaged) {
        char where[256];
        (void)trail_error_where(&info->damage, where, sizeof where);
        show_line("  damaged      %s%s%s%s", info->damage.message, *where ? " (at " : "", where,
                  *where ? ")" : "");
    }
}

/* MARK: --json (its keys are described in trail-info(1)) */

static void json_tallies(struct json *json, const char *key, const struct tally *tallies,
                         size_t count)
{
    json_open(json, key, '{');
    for (const struct tally *tally = tallies; tally < tallies + count; tally++) {
        if (tally->count == 0)
            continue;
        json_open(json, tally->name, '{');
        json_number(json, "count", tally->count);
        json_number(json, "bytes", tally->bytes);
        json_close(json, '}');
    }
    json_close(json, '}');
}

static void json_parts(struct json *json, const struct info *info)
{
    if (info->part_count == 0)
        return;
    json_number(json, "part_count", info->part_count);
    json_open(json, "parts", '[');
    for (size_t i = 0; i < listed_parts(info); i++) {
        const struct part *part = &info->parts[i];
        json_open(json, NULL, '{');
        json_number(json, "part", i + 1);
        json_signed(json, "offset", part->offset);
        json_number(json, "bytes", part->bytes);
        if (part->version > 0)
            json_number(json, "version", (uint64_t)part->version);
        json_bool(json, "damaged", part->damaged);
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void json_full(struct json *json, const struct info *info)
{
    json_number(json, "events", info->event_count);
    json_number(json, "goroutines", info->goroutines.count);
    json_number(json, "tasks", info->tasks.count);
    json_number(json, "regions", info->events[TRAIL_REGION_BEGIN]);
    json_number(json, "cpu_samples", info->events[TRAIL_STACK_SAMPLE]);
    json_number(json, "strings", info->stats.strings);
    json_number(json, "stacks", info->stats.stacks);
    cpu_limits_json(&info->limits, json);
    json_open(json, "events_by_kind", '{');
    for (int kind = 0; kind < TRAIL_KINDS; kind++)
        if (info->events[kind] > 0)
            json_number(json, trail_kind_name((trail_kind)kind), info->events[kind]);
    json_close(json, '}');
    json_tallies(json, "records_by_type", info->by_record, RECORD_TYPES);
}

static void json_times(struct json *json, const struct info *info)
{
    char text[SHOW_SIZE];
    int64_t s, duration = duration_ns(info);
    uint32_t ns;
    if (duration >= 0) {
        json_signed(json, "duration_ns", duration);
        json_bool(json, "duration_exact", *duration_quality(info) == '\0');
    }
    if (wall_start(info, &s, &ns)) {
        json_signed(json, "start_wall_s", s);
        json_number(json, "start_wall_ns", ns);
        json_string(json, "start", show_wall(text, s, ns));
    }
}

static void json_info(const struct info *info)
{
    struct json json = json_on_stdout();
    json_open(&json, NULL, '{');
    json_string(&json, "file", info->title);
    if (info->version > 0) {
        const char *writers = trail_version_writers(info->version);
        json_number(&json, "version", (uint64_t)info->version);
        json_string(&json, "writers", writers ? writers : "?");
        if (info->maker.made_by != TRAIL_MADE_BY_GO)
            json_string(&json, "made_by", trail_made_by_name(info->maker.made_by));
        if (*info->maker.task_word)
            json_string(&json, "task_word", info->maker.task_word);
        json_number(&json, "bytes", info->bytes);
        json_string(&json, "compression", info->compression);
        if (strcmp(info->read_from, info->compression) != 0)
            json_string(&json, "read_from", info->read_from);
        if (info->size >= 0)
            json_signed(&json, "file_bytes", info->size);
        json_times(&json, info);
        json_number(&json, "batches", info->batches);
        if (trail_version_is_v2(info->version))
            json_number(&json, "generations", info->generations);
        else
            json_number(&json, "records", info->records);
        if (trail_version_is_v2(info->version) || info->full)
            json_number(&json, "ms", info->threads.count);
        if (!trail_version_is_v2(info->version) || info->full)
            json_number(&json, "ps", info->procs.count);
        json_tallies(&json, "batches_by_kind", info->by_batch, BATCH_KINDS);
        if (info->full)
            json_full(&json, info);
    }
    json_parts(&json, info);
    if (info->stats.text_bytes > 0)
        json_number(&json, "text_bytes", info->stats.text_bytes);
    if (info->damaged)
        json_error(&json, "error", &info->damage);
    json_close(&json, '}');
    putchar('\n');
}

/* MARK: Run */

/* Makes one pass over the input with `pass`. */
static bool with_source(struct info *info, struct input *input,
                        int (*pass)(struct info *info, trail_source *source))
{
    trail_error err;
    trail_source *source = input_open(input, &err);
    if (!source) {
        note_damage(info, &err);
        return false;
    }
    if (info->size < 0)
        info->size = trail_source_size(source);
    bool ok = pass(info, source) == 0;
    (void)snprintf(info->compression, sizeof info->compression, "%s", source_codec(source));
    (void)snprintf(info->read_from, sizeof info->read_from, "%s", trail_source_compression(source));
    trail_source_close(source);
    return ok;
}

/* Lists the traces after one whose damage has ended the walk. */
static void list_after_damage(struct info *info, struct input *input)
{
    trail_error err;
    struct progress progress;
    const int64_t base = info->stats.next_trace;
    trail_source *source = input_open(input, &err);
    source = source ? source_from(source, base, &err) : NULL;
    trail_walk *walk = source ? trail_walk_open(source, &err) : NULL;
    info->bytes = (uint64_t)base;
    if (walk && add_first(info)) {
        progress_begin(&progress, source, PROGRESS_OUTPUT_AFTER);
        if (walk_part(info, walk, base, 0, &progress) > 0)
            (void)walk_parts(info, walk, base, &progress);
        progress_end(&progress);
    }
    trail_walk_close(walk);
    trail_source_close(source);
}

/*
 * Headers alone do not show whether bytes that are not a batch are damage or the program's text,
 * nor everywhere whether there is a frequency: what the reader finds counts, as for all other
 * commands. A pipe cannot be read again.
 */
static bool is_doubtful(const struct info *info, const struct input *input)
{
    bool again = input->data || (info->size >= 0 && strcmp(input->word, "-") != 0);
    bool clockless = info->version < 22 && info->frequency == 0;
    return again && info->version > 0 && (!info->walked || clockless) &&
           exit_code_of(&info->damage) != EXIT_INOUT;
}

static void describe(struct info *info, struct input *input)
{
    if (!with_source(info, input, walk_batches) ||
        (info->full && !with_source(info, input, count_records)))
        return;
    const bool doubtful = is_doubtful(info, input);
    const trail_error headers = info->damage;
    info->damaged &= !doubtful;
    if ((!info->full && !doubtful) || !with_source(info, input, count_events))
        return;
    if (info->walked && info->stats.frequency_assumed) {
        info->damaged = true;
        info->damage = headers;
    }
    if (!info->is_part && info->part_count == 0 && info->stats.next_trace >= 0)
        list_after_damage(info, input);
}

static int info_file(const char *word, const struct request *request)
{
    struct info info = {.title = source_title(word),
                        .full = request->full,
                        .words = request->words,
                        .size = -1,
                        .compression = "none",
                        .read_from = "none"};
    struct input input;
    struct part_name part;
    trail_error err;
    int code = EXIT_GOOD;
    info.is_part = part_name_parse(word, &part);
    if (input_init(&input, word, request->full, &err) < 0) {
        note_damage(&info, &err);
    } else {
        describe(&info, &input);
    }
    input_free(&input);
    if (info.damaged)
        code = exit_code_of(&info.damage);
    if (request->json)
        json_info(&info);
    else if (info.version > 0)
        show_info(&info);
    if (info.damaged && (info.version <= 0 || code == EXIT_INOUT))
        (void)print_error(word, &info.damage);
    free(info.parts);
    idmap_free(&info.threads);
    idmap_free(&info.procs);
    idmap_free(&info.goroutines);
    idmap_free(&info.tasks);
    return code;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct options options;
    struct request request = {0};
    int code = options_each(&options, command, argc, argv, NULL, &request);
    if (code != EXIT_GOOD)
        return code;
    if (options.word_count == 0)
        return usage_error(command, "no file given (- is stdin)");
    for (int i = 0; i < options.word_count; i++) {
        if (i > 0 && !request.json)
            putchar('\n');
        code = worse_exit(code, info_file(options.words[i], &request));
    }
    return code;
}

const struct command command_info = {
    COMMAND_ROW(info),
    .synopsis = "[options] FILE...",
    .details =
        "Looks at batch headers only, so that it answers at once; --full decodes everything.",
    .examples = "  trail info app.trace\n"
                "  trail info --full old.trace.gz\n"
                "  trail info --json *.trace | jq -r '[.file, .version, .duration_ns] | @tsv'",
    .wrapped = true,
};
