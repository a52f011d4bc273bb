/*
 * The tables of a report, and the cells that tables share.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "base/show.h"
#include "base/text.h"
#include "report/rows.h"
#include "words/place.h"

void rows_spread(struct html_table *table, const trail_histogram *spread)
{
    html_cell_number(table, spread->count);
    html_cell_duration(table, spread->sum_ns);
    html_cell_duration(table, trail_histogram_quantile(spread, 0.5));
    html_cell_duration(table, trail_histogram_quantile(spread, 0.95));
    html_cell_duration(table, trail_histogram_quantile(spread, 0.99));
    html_cell_duration(table, spread->max_ns);
}

void rows_end(const struct report *report, struct html_table *table, size_t count)
{
    html_table_end(table);
    if (count <= report->limit)
        return;
    out_str(report->out, "<p>... and ");
    html_number(report->out, count - report->limit);
    out_str(report->out, " more; <code>--limit=0</code> shows all.</p>\n");
}

void rows_longest(const struct report *report, struct html_table *table,
                  const trail_longest *longest)
{
    char text[100], at[SHOW_SIZE], command[512];
    int64_t from = ns_between(report->span.origin_ns, longest->begin_ns);
    (void)snprintf(text, sizeof text, "%s%" PRId64 " at %s", term(report->words, TERM_task_id),
                   longest->goroutine, duration_text(at, from, DURATION_WORDS));
    html_cell_hint(table, longest->ns > 0 ? text : "-",
                   report_command(report, longest->goroutine, longest->begin_ns, longest->ns,
                                  command, sizeof command));
}

static void put_groups(const struct report *report)
{
    const trail_group *groups;
    struct html_table table;
    size_t count = trail_analysis_groups(report->answers, &groups);
    report_table(report, &table, "{Tasks} by start function",
                 "start_function< {tasks}> unfinished> total> running> ready> waiting> "
                 "syscall> {no_slot}>");
    for (size_t i = 0; i < count && i < report->limit; i++) {
        const trail_times *times = &groups[i].times;
        html_cell_text(&table, report_text(report, groups[i].name));
        html_cell_number(&table, groups[i].count);
        html_cell_number(&table, groups[i].alive);
        html_cell_duration(&table, times->total_ns);
        html_cell_duration(&table, times->exec_ns);
        html_cell_duration(&table, times->sched_wait_ns);
        html_cell_duration(&table, trail_times_column(times, TRAIL_COLUMN_BLOCK));
        html_cell_duration(&table, times->syscall_ns);
        html_cell_duration(&table, times->syscall_block_ns);
    }
    rows_end(report, &table, count);
}

static void put_threads(const struct report *report)
{
    const trail_thread *threads;
    struct html_table table;
    size_t count = trail_analysis_threads(report->answers, &threads);
    report_table(report, &table, "Threads", "thread> running> syscall> idle> runs> calls> events>");
    for (size_t i = 0; i < count && i < report->limit; i++) {
        html_cell_id(&table, threads[i].id);
        html_cell_duration(&table, threads[i].running_ns);
        html_cell_duration(&table, threads[i].syscall_ns);
        html_cell_duration(&table, threads[i].idle_ns);
        html_cell_number(&table, threads[i].runs);
        html_cell_number(&table, threads[i].syscalls);
        html_cell_number(&table, threads[i].events);
    }
    rows_end(report, &table, count);
}

static void put_procs(const struct report *report)
{
    const trail_proc *procs;
    struct html_table table;
    size_t count = trail_analysis_procs(report->answers, &procs);
    report_table(report, &table, "{Slots}",
                 "{slot_column}> running> syscall> other> idle> runs> calls> released>");
    for (size_t i = 0; i < count && i < report->limit; i++) {
        html_cell_id(&table, procs[i].id);
        html_cell_duration(&table, procs[i].running_ns);
        html_cell_duration(&table, procs[i].syscall_ns);
        html_cell_duration(&table, procs[i].other_ns);
        html_cell_duration(&table, procs[i].idle_ns);
        html_cell_number(&table, procs[i].runs);
        html_cell_number(&table, procs[i].syscalls);
        html_cell_number(&table, procs[i].taken);
    }
    rows_end(report, &table, count);
}

/* Writes "main.work (main.go:42)" into `buf`, for the frame that best names the stack's place. */
static trail_string place_text(const struct report *report, trail_stack stack, char *buf,
                               size_t size)
{
    const trail_place *places;
    size_t count = trail_analysis_stack(report->answers, stack, &places);
    if (count == 0)
        return text_from("-");
    const trail_place *own = &places[trail_analysis_stack_own(report->answers, stack)];
    trail_string name = trail_analysis_text(report->answers, own->function);
    trail_string file = trail_analysis_text(report->answers, own->file);
    (void)place_of_frame(name, file, own->line, PLACE_PARENTHESES, buf, size);
    return text_from(buf);
}

/* Writes "mutex stats_mu" into `buf`. */
static trail_string lock_text(const struct report *report, const trail_lock *lock, char *buf,
                              size_t size)
{
    trail_string kind = report_text(report, lock->kind);
    trail_string name = trail_analysis_text(report->answers, lock->name);
    (void)snprintf(buf, size, "%.*s%s%.*s", (int)(kind.size < 150 ? kind.size : 150), kind.data,
                   name.size ? " " : "", (int)(name.size < 300 ? name.size : 300), name.data);
    return (trail_string){buf, strnlen(buf, size)};
}

static void put_locks(const struct report *report)
{
    const trail_lock *const *locks;
    struct html_table table;
    char text[512], name[512];
    size_t count = trail_analysis_locks(report->answers, &locks);
    if (count == 0) {
        out_str(report->out,
                "<p class=\"none\">The trace has no wait for a lock. (Waits for channels: "
                "<code>trail locks --channels</code>.)</p>\n");
        return;
    }
    html_table_begin(&table, report->out, "Locks",
                     "lock< waited_in< waits> total> median> p95> p99> longest> still> holds> "
                     "held> longest_in<");
    for (size_t i = 0; i < count && i < report->limit; i++) {
        const trail_lock *lock = locks[i];
        trail_stack stack = lock->waited         ? lock->waited
                            : lock->waiter_count ? lock->waiters[0].stack
                                                 : 0;
        html_cell_text(&table, lock_text(report, lock, name, sizeof name));
        html_cell_text(&table, place_text(report, stack, text, sizeof text));
        rows_spread(&table, &lock->wait);
        html_cell_duration(&table, lock->open_ns);
        html_cell_number(&table, lock->hold.count);
        html_cell_duration(&table, lock->hold.sum_ns);
        rows_longest(report, &table, &lock->longest);
    }
    rows_end(report, &table, count);
}

static void put_regions(const struct report *report)
{
    const trail_group *groups;
    struct html_table table;
    size_t count = trail_analysis_region_groups(report->answers, &groups);
    if (count == 0) {
        out_str(report->out,
                "<p class=\"none\">The trace has no regions. A program marks them with "
                "<code>trace.WithRegion</code> (Go, runtime/trace) or "
                "<code>trail_region_begin</code> (C).</p>\n");
        return;
    }
    html_table_begin(&table, report->out, "Regions", "name< " ROWS_SPREAD "running>");
    for (size_t i = 0; i < count && i < report->limit; i++) {
        html_cell_text(&table, report_text(report, groups[i].name));
        rows_spread(&table, &groups[i].columns[TRAIL_COLUMN_TOTAL]);
        html_cell_duration(&table, groups[i].times.exec_ns);
    }
    rows_end(report, &table, count);
}

static void put_tasks(const struct report *report)
{
    const trail_task_kind *const *kinds;
    struct html_table table;
    char command[512], text[40];
    size_t count = trail_analysis_task_kinds(report->answers, &kinds);
    if (count == 0) {
        out_str(report->out, "<p class=\"none\">The trace has no tasks. A program marks them with "
                             "<code>trace.NewTask</code> (Go, runtime/trace) or "
                             "<code>trail_task_begin</code> (C).</p>\n");
        return;
    }
    html_table_begin(&table, report->out, "Tasks",
                     "type< begun> ended> " ROWS_SPREAD "longest_in<");
    for (size_t i = 0; i < count && i < report->limit; i++) {
        html_cell_text(&table, report_text(report, kinds[i]->name));
        html_cell_number(&table, kinds[i]->begun);
        html_cell_number(&table, kinds[i]->ended);
        rows_spread(&table, &kinds[i]->spread);
        (void)snprintf(text, sizeof text, "task %" PRIu64, (uint64_t)kinds[i]->longest.goroutine);
        (void)snprintf(command, sizeof command, "trail tasks --task=%" PRIu64 " %s",
                       (uint64_t)kinds[i]->longest.goroutine, report->file);
        html_cell_hint(&table, kinds[i]->spread.count > 0 ? text : "-", command);
    }
    rows_end(report, &table, count);
}

void report_tables(const struct report *report)
{
    report_section(report, "tables", "Tables");
    put_groups(report);
    put_locks(report);
    put_tasks(report);
    put_regions(report);
    put_threads(report);
    put_procs(report);
    report_section_end(report);
}
