#include "tables/producer.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/goroutines.h"
#include "analyze/part.h"
#include "base/error.h"

/* MARK: Opening */

/* The columns common to all tables: one value, repeated. */
static bool init_common(struct trail_tables *tables)
{
    const trail_tables_options *options = &tables->options;
    const char *words[] = {options->trace, options->file, options->host};
    for (int i = 0; i < TRAIL_TABLE_COMMON - 1; i++) {
        trail_string word = {words[i] ? words[i] : "", words[i] ? strlen(words[i]) : 0};
        trail_string *texts = arena_alloc(&tables->arena, TRAIL_TABLE_ROWS * sizeof(trail_string));
        if (!texts)
            return false;
        trail_string text = text_clean(tables, &tables->arena, word);
        for (size_t row = 0; row < TRAIL_TABLE_ROWS; row++)
            texts[row] = text;
        tables->common[i].text = texts;
    }
    int32_t *days = arena_alloc(&tables->arena, TRAIL_TABLE_ROWS * sizeof *days);
    for (size_t row = 0; days && row < TRAIL_TABLE_ROWS; row++)
        days[row] = options->day;
    tables->common[TRAIL_TABLE_COMMON - 1].i32 = days;
    return days && !tables->failed;
}

/* Whether any requested column contains stack numbers. */
static bool wants_stacks(const struct trail_tables *tables)
{
    const uint32_t *wanted = tables->options.wanted;
    uint32_t events = 1u << EVENTS_STACK | 1u << EVENTS_RESOURCE_STACK;
    uint32_t states = 1u << STATES_STACK | 1u << STATES_WAKER_STACK;
    return (wanted[TRAIL_TABLE_EVENTS] & events) != 0 ||
           (wanted[TRAIL_TABLE_STATES] & states) != 0 ||
           (wanted[TRAIL_TABLE_LOGS] & 1u << LOGS_STACK) != 0 ||
           (wanted[TRAIL_TABLE_SAMPLES] & 1u << SAMPLES_STACK) != 0 ||
           wanted[TRAIL_TABLE_STACKS] != 0 || wanted[TRAIL_TABLE_FRAMES] != 0;
}

static bool init_tables(struct trail_tables *tables, trail_error *err)
{
    if (!init_common(tables))
        return error_set(err, TRAIL_NO_MEMORY, "no memory for the tables"), false;
    for (int i = 0; i < TRAIL_TABLES; i++)
        if (tables->options.wanted[i] != 0 &&
            !rows_init(&tables->rows[i], trail_table_get((trail_table_id)i),
                       tables->options.wanted[i], tables->common))
            return error_set(err, TRAIL_NO_MEMORY, "no memory for the tables"), false;
    tables->rows[TRAIL_TABLE_EVENTS].out[EVENTS_TEXT].passes = true;
    tables->rows[TRAIL_TABLE_LOGS].out[LOGS_MESSAGE].passes = true;
    tables->wants_stacks = wants_stacks(tables);
    trail_analysis_options analysis = {
        .what = answers_needed(tables),
        .mmu_flags = {TRAIL_MMU_OF_FINDINGS},
        .has_from = tables->options.has_from,
        .has_to = tables->options.has_to,
        .from_ns = tables->options.from_ns,
        .to_ns = tables->options.to_ns,
    };
    if (analysis.what != 0) {
        tables->answers = trail_analysis_open(tables->reader, &analysis, err);
        if (!tables->answers)
            return false;
        analysis_defer(tables->answers, tables->reader);
    }
    return true;
}

trail_tables *trail_tables_open(trail_reader *reader, const trail_tables_options *options,
                                trail_error *err)
{
    struct trail_tables *tables = calloc(1, sizeof *tables);
    if (!tables) {
        (void)error_set(err, TRAIL_NO_MEMORY, "no memory for the tables");
        return NULL;
    }
    tables->reader = reader;
    tables->names.reader = reader;
    tables->options = *options;
    tables->stacks.names = &tables->names;
    tables->given = -1;
    tables->from_ns = INT64_MIN;
    tables->to_ns = INT64_MAX;
    states_init(tables);
    if (!init_tables(tables, err)) {
        trail_tables_close(tables);
        return NULL;
    }
    return tables;
}

void trail_tables_close(trail_tables *tables)
{
    if (!tables)
        return;
    for (int i = 0; i < TRAIL_TABLES; i++)
        rows_free(&tables->rows[i]);
    trail_analysis_close(tables->answers);
    states_free(tables);
    stacks_free(&tables->stacks);
    names_free(&tables->names);
    free(tables->texts);
    arena_free(&tables->arena);
    free(tables);
}

/* MARK: Steps */

/* Returns how many events may be taken so that tables with one row per event have room. */
static size_t room_for(const struct trail_tables *tables)
{
    static const trail_table_id each[] = {TRAIL_TABLE_EVENTS, TRAIL_TABLE_LOGS,
                                          TRAIL_TABLE_SAMPLES};
    size_t room = TRAIL_TABLE_ROWS, count = (size_t)(tables->end - tables->at);
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        const struct rows *rows = &tables->rows[each[i]];
        size_t left = TRAIL_TABLE_ROWS - rows->count;
        room = rows->table && left < room ? left : room;
    }
    return count < room ? count : room;
}

static bool take_events(struct trail_tables *tables, const trail_event *events, size_t count)
{
    if (wants_table(tables, TRAIL_TABLE_EVENTS))
        events_fill(tables, events, count);
    if (wants_table(tables, TRAIL_TABLE_LOGS) || wants_table(tables, TRAIL_TABLE_SAMPLES))
        for (size_t i = 0; i < count; i++)
            moments_fill(tables, &events[i]);
    if (wants_table(tables, TRAIL_TABLE_STATES) && !states_fill(tables, events, count))
        return false;
    return !tables->failed && !tables->names.failed && !tables->stacks.failed;
}

static void begin(struct trail_tables *tables, int64_t origin)
{
    tables->began = true;
    follow_sync(&tables->follow, origin);
    if (tables->options.has_from)
        tables->from_ns = ns_behind(origin, tables->options.from_ns);
    if (tables->options.has_to)
        tables->to_ns = ns_behind(origin, tables->options.to_ns);
}

/* Takes the first reading of the wall clock. */
static void take_wall(struct trail_tables *tables)
{
    trail_clock_snapshot clocks;
    for (const trail_event *e = tables->at; e < tables->end && !tables->has_wall; e++) {
        if (e->kind != TRAIL_SYNC || !trail_reader_wall_clock(tables->reader, e, &clocks))
            continue;
        tables->has_wall = true;
        tables->wall_offset_ns = (int64_t)((uint64_t)clocks.wall_s * 1000000000 + clocks.wall_ns -
                                           (uint64_t)clocks.trace_ns);
    }
}

static void count_events(struct trail_tables *tables)
{
    if (tables->at == tables->end)
        return;
    if (tables->count == 0)
        tables->first_ns = tables->at->time_ns;
    tables->until_ns = tables->end[-1].time_ns;
    tables->count += (uint64_t)(tables->end - tables->at);
}

/* Keeps only the events in the window; states are followed from before it. False if out of
 * memory. */
static bool keep_window(struct trail_tables *tables)
{
    const trail_event *before = tables->at;
    tables->last_ns = tables->end[-1].time_ns;
    if (tables->last_ns > tables->to_ns) {
        tables->behind = true;
        tables->last_ns = tables->to_ns;
    }
    while (tables->end > tables->at && tables->end[-1].time_ns > tables->to_ns)
        tables->end--;
    while (tables->at < tables->end && tables->at->time_ns < tables->from_ns)
        tables->at++;
    return !wants_table(tables, TRAIL_TABLE_STATES) ||
           states_fill(tables, before, (size_t)(tables->at - before));
}

/* Reads the next events. False if out of memory. */
static bool pull(struct trail_tables *tables)
{
    long count = tables->behind ? 0 : trail_reader_next_batch(tables->reader, &tables->at);
    tables->end = tables->at;
    if (tables->options.progress)
        tables->options.progress(tables->options.progress_context);
    if (count > 0) {
        tables->end = tables->at + count;
        if (!tables->began)
            begin(tables, tables->at->time_ns);
        if (tables->answers && trail_analysis_feed(tables->answers, tables->at, count) < 0)
            return false;
        if (wants_table(tables, TRAIL_TABLE_TRACES))
            take_wall(tables);
        if (!dictionary_fill(tables) || !keep_window(tables))
            return false;
        count_events(tables);
        return true;
    }
    tables->over = true;
    tables->has_error = count < 0;
    if (count < 0)
        tables->error = *trail_reader_error(tables->reader);
    if (wants_table(tables, TRAIL_TABLE_STATES) && !states_finish(tables))
        return false;
    if (wants_table(tables, TRAIL_TABLE_TRACES) && !traces_fill(tables))
        return false;
    return !tables->answers || answers_fill(tables);
}

static bool step(struct trail_tables *tables)
{
    if (tables->at == tables->end)
        return pull(tables);
    size_t count = room_for(tables);
    const trail_event *events = tables->at;
    tables->at += count;
    return take_events(tables, events, count);
}

int trail_tables_next(trail_tables *tables, trail_rows *rows, trail_error *err)
{
    if (tables->given >= 0)
        rows_give_back(&tables->rows[tables->given], tables->given_count);
    tables->given = -1;
    for (;;) {
        size_t least = tables->over ? 1 : TRAIL_TABLE_ROWS;
        for (int i = 0; i < TRAIL_TABLES; i++) {
            if (!tables->rows[i].table || !rows_take(&tables->rows[i], least, rows))
                continue;
            rows->table = (trail_table_id)i;
            tables->given = i;
            tables->given_count = rows->count;
            return 1;
        }
        if (tables->over) {
            if (tables->has_error)
                *err = tables->error;
            return tables->has_error ? -1 : 0;
        }
        if (!step(tables)) {
            tables->over = true;
            return error_set(err, TRAIL_NO_MEMORY, "no memory for the tables");
        }
    }
}
