/*
 * Tables that are filled at the end: those whose rows come from trail_analysis (goroutines, tasks,
 * regions, findings), and the row of the trace itself.
 */
#include "tables/producer.h"

#include <string.h>

#include "diagnose/gains.h"
#include "read/recorded.h"

static trail_string name_of(struct trail_tables *tables, trail_name name)
{
    trail_string text = trail_analysis_text(tables->answers, name);
    return text_of_bytes(tables, text.data, text.size);
}

/* Fills columns from `first` on, in the order of trail_column. */
static void put_times(struct rows *rows, unsigned first, size_t row, const trail_times *times)
{
    for (unsigned i = 0; i < TRAIL_COLUMNS; i++)
        put_i64(rows, first + i, row, trail_times_column(times, (trail_column)i));
}

static bool goroutines_fill(struct trail_tables *tables)
{
    struct rows *rows = &tables->rows[TRAIL_TABLE_GOROUTINES];
    const trail_goroutine *g;
    size_t count = trail_analysis_goroutines(tables->answers, &g);
    if (!rows_room(rows, count))
        return false;
    for (; count > 0; count--, g++) {
        size_t row = rows->count++;
        put_i64(rows, GOROUTINES_GOROUTINE, row, g->id);
        put_text_if(rows, GOROUTINES_NAME, row, name_of(tables, g->name));
        put_i64(rows, GOROUTINES_CREATION_NS, row, g->creation_ns);
        put_i64_if(rows, GOROUTINES_START_NS, row, g->start_ns != 0, g->start_ns);
        put_i64_if(rows, GOROUTINES_END_NS, row, g->end_ns != 0, g->end_ns);
        put_times(rows, GOROUTINES_TOTAL_NS, row, &g->times);
    }
    return true;
}

static bool tasks_fill(struct trail_tables *tables)
{
    struct rows *rows = &tables->rows[TRAIL_TABLE_TASKS];
    const trail_task *task;
    size_t count = trail_analysis_tasks(tables->answers, &task);
    if (!rows_room(rows, count))
        return false;
    for (; count > 0; count--, task++) {
        if (task->id == TRAIL_BACKGROUND_TASK) /* stands for everything that belongs to no task */
            continue;
        size_t row = rows->count++;
        bool whole = task->has_start && task->has_end;
        put_i64(rows, TASKS_TASK, row, (int64_t)task->id);
        put_i64_if(rows, TASKS_PARENT, row, task->has_parent, (int64_t)task->parent);
        put_text_if(rows, TASKS_NAME, row, name_of(tables, task->name));
        put_i64_if(rows, TASKS_BEGIN_NS, row, task->has_start, task->start_ns);
        put_i64_if(rows, TASKS_END_NS, row, task->has_end, task->end_ns);
        put_i64_if(rows, TASKS_DURATION_NS, row, whole,
                   (int64_t)((uint64_t)task->end_ns - (uint64_t)task->start_ns));
        put_id(rows, TASKS_GOROUTINE, row, task->start_goroutine);
        put_i64(rows, TASKS_GOROUTINES, row, (int64_t)task->goroutine_count);
        put_i64(rows, TASKS_REGIONS, row, (int64_t)task->regions);
        put_i64(rows, TASKS_LOGS, row, (int64_t)task->log_count);
    }
    return true;
}

static bool regions_fill(struct trail_tables *tables)
{
    struct rows *rows = &tables->rows[TRAIL_TABLE_REGIONS];
    const trail_region *region;
    size_t count = trail_analysis_regions(tables->answers, &region);
    if (!rows_room(rows, count))
        return false;
    for (; count > 0; count--, region++) {
        size_t row = rows->count++;
        put_i64(rows, REGIONS_REGION, row, (int64_t)row);
        put_i64(rows, REGIONS_GOROUTINE, row, region->goroutine);
        put_i64(rows, REGIONS_TASK, row, (int64_t)region->task);
        put_text_if(rows, REGIONS_NAME, row, name_of(tables, region->name));
        put_i64_if(rows, REGIONS_BEGIN_NS, row, region->has_start, region->start_ns);
        put_i64_if(rows, REGIONS_END_NS, row, region->has_end, region->end_ns);
        put_times(rows, REGIONS_TOTAL_NS, row, &region->times);
    }
    return true;
}

static trail_string text_of_words(struct trail_tables *tables, const char *words)
{
    return words ? text_of_bytes(tables, words, strlen(words)) : (trail_string){0};
}

static void put_replayed(struct trail_tables *tables, size_t row, const trail_finding *finding)
{
    struct rows *rows = &tables->rows[TRAIL_TABLE_FINDINGS];
    const bool is = finding->replayed != NULL;
    put_text_if(rows, FINDINGS_REPLAYED, row, text_of_words(tables, finding->replayed));
    put_text_if(rows, FINDINGS_REPLAYED_OF, row, text_of_words(tables, finding->replayed_of));
    put_i64_if(rows, FINDINGS_REPLAYED_NOW_NS, row, is, finding->replayed_now_ns);
    put_i64_if(rows, FINDINGS_REPLAYED_THEN_NS, row, is, finding->replayed_then_ns);
}

static bool findings_fill(struct trail_tables *tables)
{
    struct rows *rows = &tables->rows[TRAIL_TABLE_FINDINGS];
    const trail_finding *finding;
    size_t count;
    if (!gains_add(tables->answers))
        return false;
    count = trail_analysis_findings(tables->answers, &finding);
    if (!rows_room(rows, count))
        return false;
    for (; count > 0; count--, finding++) {
        size_t row = rows->count++;
        const bool has_goroutine = finding->has_moment && finding->goroutine != TRAIL_NONE;
        put_i32(rows, FINDINGS_FINDING, row, (int32_t)row);
        put_text(rows, FINDINGS_KIND, row,
                 text_of_bytes(tables, finding->kind, strlen(finding->kind)));
        put_text(rows, FINDINGS_TEXT, row,
                 text_of_bytes(tables, finding->text, strlen(finding->text)));
        put_i64(rows, FINDINGS_GAIN_NS, row, finding->gain_ns);
        put_u8(rows, FINDINGS_IS_NOTE, row, finding->note);
        put_text_if(rows, FINDINGS_FUNCTION, row, name_of(tables, finding->function));
        put_text_if(rows, FINDINGS_OBJECT, row, name_of(tables, finding->object));
        put_i64_if(rows, FINDINGS_GOROUTINE, row, has_goroutine, finding->goroutine);
        put_i64_if(rows, FINDINGS_TASK, row, finding->task != TRAIL_NONE, finding->task);
        put_i64_if(rows, FINDINGS_BEGIN_NS, row, finding->has_moment, finding->begin_ns);
        put_i64_if(rows, FINDINGS_END_NS, row, finding->has_moment, finding->end_ns);
        put_replayed(tables, row, finding);
    }
    return true;
}

/* A window without events has no row. */
bool traces_fill(struct trail_tables *tables)
{
    struct rows *rows = &tables->rows[TRAIL_TABLE_TRACES];
    const char *made_by = trail_made_by_name(trail_reader_maker(tables->reader)->made_by);
    const trail_recorded *program = recorded_program(tables->reader);
    trail_reader_stats stats;
    if (tables->count == 0)
        return true;
    if (!rows_room(rows, 1))
        return false;
    trail_reader_get_stats(tables->reader, &stats);
    rows->count = 1;
    put_i64(rows, TRACES_BEGIN_NS, 0, tables->first_ns);
    put_i64(rows, TRACES_END_NS, 0, tables->until_ns);
    put_i64(rows, TRACES_DURATION_NS, 0,
            (int64_t)((uint64_t)tables->until_ns - (uint64_t)tables->first_ns));
    put_i64(rows, TRACES_EVENTS, 0, (int64_t)tables->count);
    put_i64_if(rows, TRACES_WALL_BEGIN_NS, 0, tables->has_wall,
               (int64_t)((uint64_t)tables->first_ns + (uint64_t)tables->wall_offset_ns));
    put_i32(rows, TRACES_VERSION, 0, trail_reader_version(tables->reader));
    put_text(rows, TRACES_MADE_BY, 0, text_of_bytes(tables, made_by, strlen(made_by)));
    put_text_if(rows, TRACES_PROGRAM, 0,
                program ? text_of_bytes(tables, program->name.data, program->name.size)
                        : (trail_string){0});
    put_u8(rows, TRACES_IS_DAMAGED, 0,
           tables->has_error || stats.holes > 0 || stats.lost_bytes > 0);
    put_i64(rows, TRACES_LOST_BYTES, 0, (int64_t)stats.lost_bytes);
    return !tables->failed && !tables->names.failed;
}

static const struct {
    trail_table_id table;
    unsigned needs; /* TRAIL_ANALYZE_... */
    bool (*fill)(struct trail_tables *tables);
} answers[] = {
    {TRAIL_TABLE_GOROUTINES, TRAIL_ANALYZE_GOROUTINES, goroutines_fill},
    {TRAIL_TABLE_TASKS, TRAIL_ANALYZE_TASKS, tasks_fill},
    {TRAIL_TABLE_REGIONS, TRAIL_ANALYZE_REGIONS, regions_fill},
    {TRAIL_TABLE_FINDINGS, TRAIL_ANALYZE_ALL_FINDINGS | GAINS_ANALYSES, findings_fill},
};

unsigned answers_needed(const struct trail_tables *tables)
{
    unsigned needed = 0;
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        if (wants_table(tables, answers[i].table))
            needed |= answers[i].needs;
    return needed;
}

bool answers_fill(struct trail_tables *tables)
{
    if (trail_analysis_finish(tables->answers) < 0)
        return false;
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        if (wants_table(tables, answers[i].table) && !answers[i].fill(tables))
            return false;
    return !tables->names.failed && !tables->failed;
}
