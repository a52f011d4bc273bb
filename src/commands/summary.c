/*
 * trail summary: a trace on one screen: use of its Ps, where the time of goroutines went, the
 * largest waits, garbage collection, heap, tasks and regions. Figures of one point in time have the
 * command that shows it beside them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyze/part.h"
#include "base/share.h"
#include "commands/panels.h"
#include "commands/summary_files.h"
#include "commands/summary_processes.h"
#include "commands/summary_recording.h"
#include "report/overview.h"
#include "report/tiles.h"
#include "ui/follow_up.h"
#include "ui/groups.h"
#include "ui/spark.h"
#include "ui/values.h"

enum { MMU_WINDOWS = 3 };
static const int64_t mmu_windows[MMU_WINDOWS] = {1000000, 10000000, 100000000};

struct request {
    struct analysis analysis;
    size_t limit;
    bool idle;
    bool colour;
    trail_activity activity;
};

static const struct option rows[] = {
    {'n', "limit", "N", "at most N rows in each table (default 6; 0: all)",
     TO_LIMIT(struct request, limit), .expects = "a number"},
    {0, "idle", NULL, "waits for work stand among the others, not behind them",
     TO_FLAG(struct request, idle)},
    SKIP_FRAMES_ROW,
    ANALYSIS_ROWS,
    {0},
};

/* MARK: Command line */

static void want(trail_analysis_options *options)
{
    summary_files_want(options);
}

static bool want_colour(void)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(STDOUT_FILENO) && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
}

/* MARK: What is shown in both forms */

static int64_t length_of(const struct request *request)
{
    return request->analysis.span.end_ns - request->analysis.span.begin_ns;
}

/* MARK: JSON */

static void json_longest(struct json *json, const trail_longest *longest, const char *whose)
{
    json_open(json, "longest", '{');
    json_signed(json, "ns", longest->ns);
    json_signed(json, "begin_ns", longest->begin_ns);
    json_signed(json, whose, longest->goroutine);
    json_close(json, '}');
}

static void json_activity(const struct request *request, struct json *json)
{
    const trail_activity *a = &request->activity;
    json_open(json, "activity", '{');
    json_number(json, "procs", a->procs);
    json_signed(json, "running_ns", a->running_ns);
    json_signed(json, "ready_ns", a->runnable_ns);
    json_signed(json, "procs_ns", a->procs_ns);
    json_signed(json, "available_ns", a->available_ns);
    json_signed(json, "idle_work_ns", a->idle_work_ns);
    json_signed(json, "idle_lock_ns", a->idle_lock_ns);
    json_signed(json, "idle_nothing_ns", a->idle_nothing_ns);
    if (a->lost_ns > 0)
        json_signed(json, "lost_ns", a->lost_ns);
    json_signed(json, "slice_ns", a->slice_ns);
    json_open(json, "slices", '[');
    for (size_t i = 0; i < a->slice_count; i++) {
        json_open(json, NULL, '{');
        json_signed(json, "running_ns", a->slices[i].running_ns);
        json_signed(json, "ready_ns", a->slices[i].runnable_ns);
        json_signed(json, "procs_ns", a->slices[i].procs_ns);
        json_close(json, '}');
    }
    json_close(json, ']');
    json_close(json, '}');
}

static void json_waits(const struct request *request, struct json *json)
{
    const trail_analysis *answers = request->analysis.answers;
    const trail_wait_group *const *groups;
    size_t count = trail_analysis_waits(answers, &groups);
    json_open(json, "waits", '[');
    for (size_t i = 0; i < count; i++) {
        json_open(json, NULL, '{');
        json_text(json, "name", trail_analysis_text(answers, groups[i]->name));
        json_number(json, "created", groups[i]->created);
        json_number(json, "ended", groups[i]->ended);
        json_open(json, "ready", '{');
        json_number(json, "count", groups[i]->ready.count);
        json_signed(json, "sum_ns", groups[i]->ready.sum_ns);
        analysis_json_histogram(json, "spread", &groups[i]->ready);
        json_longest(json, &groups[i]->ready_longest, "goroutine");
        json_close(json, '}');
        json_open(json, "blocked", '[');
        for (size_t n = 0; n < groups[i]->wait_count; n++) {
            const trail_wait *wait = &groups[i]->waits[n];
            json_open(json, NULL, '{');
            analysis_json_wait(&request->analysis, json, wait->reason);
            if (wait->idle_count) {
                json_number(json, "idle_count", wait->idle_count);
                json_signed(json, "idle_ns", wait->idle_ns);
            }
            if (wait->timed_out)
                json_number(json, "timed_out", wait->timed_out);
            json_number(json, "count", wait->spread.count);
            json_signed(json, "sum_ns", wait->spread.sum_ns);
            analysis_json_histogram(json, "spread", &wait->spread);
            json_longest(json, &wait->longest, "goroutine");
            json_close(json, '}');
        }
        json_close(json, ']');
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void json_gc(const struct request *request, struct json *json)
{
    const trail_analysis *answers = request->analysis.answers;
    const trail_gc_cycle *cycles;
    int64_t sum_ns;
    size_t cycle_count = trail_analysis_gc_cycles(answers, &cycles), pause_count;
    const trail_gc_pause *longest = overview_pauses(answers, &pause_count, &sum_ns);
    json_open(json, "gc", '{');
    json_number(json, "cycles", cycle_count);
    json_signed(json, "marking_ns", overview_marking(answers));
    json_number(json, "pauses", pause_count);
    json_signed(json, "paused_ns", sum_ns);
    json_signed(json, "longest_pause_ns", longest ? pause_length(longest) : 0);
    json_signed(json, "longest_pause_begin_ns", longest ? longest->begin_ns : 0);
    json_real(json, "share", 1 - trail_analysis_mmu(answers, 0, length_of(request)));
    json_open(json, "mmu", '{');
    json_real(json, "1ms", trail_analysis_mmu(answers, 0, mmu_windows[0]));
    json_real(json, "10ms", trail_analysis_mmu(answers, 0, mmu_windows[1]));
    json_real(json, "100ms", trail_analysis_mmu(answers, 0, mmu_windows[2]));
    json_close(json, '}');
    json_close(json, '}');
}

static void json_heap_tasks(const struct request *request, struct json *json)
{
    const trail_activity *a = &request->activity;
    const trail_task_kind *const *kinds;
    size_t count = trail_analysis_task_kinds(request->analysis.answers, &kinds);
    if (a->has_heap) {
        json_open(json, "heap", '{');
        json_number(json, "first_bytes", a->heap_first);
        json_number(json, "peak_bytes", a->heap_peak);
        json_number(json, "last_bytes", a->heap_last);
        json_signed(json, "peak_at_ns", a->heap_peak_ns);
        json_close(json, '}');
    } else {
        json_null(json, "heap");
    }
    json_open(json, "tasks", '[');
    for (size_t i = 0; i < count; i++) {
        json_open(json, NULL, '{');
        json_text(json, "name", trail_analysis_text(request->analysis.answers, kinds[i]->name));
        json_number(json, "begun", kinds[i]->begun);
        json_number(json, "ended", kinds[i]->ended);
        analysis_json_histogram(json, "spread", &kinds[i]->spread);
        json_longest(json, &kinds[i]->longest, "task");
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void json_findings(const struct request *request, struct json *json)
{
    const trail_finding *findings;
    size_t count = trail_analysis_findings(request->analysis.answers, &findings);
    json_open(json, "findings", '[');
    for (size_t i = 0; i < count; i++) {
        json_open(json, NULL, '{');
        json_string(json, "kind", findings[i].kind);
        json_string(json, "text", findings[i].text);
        json_real(json, "weight", findings[i].weight);
        json_signed(json, "gain_ns", findings[i].gain_ns);
        if (findings[i].function != 0)
            json_text(json, "function",
                      trail_analysis_text(request->analysis.answers, findings[i].function));
        if (findings[i].object != 0)
            json_text(json, "object",
                      trail_analysis_text(request->analysis.answers, findings[i].object));
        if (findings[i].has_moment) {
            json_signed(json, "begin_ns", findings[i].begin_ns);
            json_signed(json, "end_ns", findings[i].end_ns);
        }
        if (findings[i].goroutine != TRAIL_NONE)
            json_signed(json, "goroutine", findings[i].goroutine);
        if (findings[i].task != TRAIL_NONE)
            json_signed(json, "task", findings[i].task);
        if (findings[i].region != 0)
            json_text(json, "region",
                      trail_analysis_text(request->analysis.answers, findings[i].region));
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void json_tiles(const struct request *request, struct json *json)
{
    struct tiles tiles;
    char title[TERM_SIZE + 64];
    tiles_make(&tiles, request->analysis.answers, &request->analysis.vocabulary);
    json_open(json, "tiles", '[');
    for (size_t i = 0; i < tiles.count; i++) {
        const struct tile *tile = &tiles.list[i];
        json_open(json, NULL, '{');
        json_string(json, "key", tile->key);
        json_string(json, "title",
                    words_text(&request->analysis.vocabulary, tile->title, title, sizeof title));
        json_signed(json, "value", tile->value);
        json_string(json, "text", tile->text);
        json_string(json, "note", tile->note);
        if (tile->command)
            json_string(json, "command", tile->command);
        if (tile->has_moment) {
            json_signed(json, "begin_ns", tile->begin_ns);
            json_signed(json, "end_ns", tile->end_ns);
        }
        if (tile->goroutine != TRAIL_NONE)
            json_signed(json, "goroutine", tile->goroutine);
        if (tile->task != TRAIL_NONE)
            json_signed(json, "task", tile->task);
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void json_processes(const struct request *request, struct json *json)
{
    struct summary_process *list;
    size_t count = summary_processes(request->analysis.answers, request->analysis.reader, &list);
    json_open(json, "processes", '[');
    for (size_t i = 0; i < count; i++) {
        json_open(json, NULL, '{');
        json_text(json, "name", list[i].name);
        json_number(json, "pid", list[i].pid);
        json_number(json, "threads", list[i].threads);
        json_signed(json, "running_ns", list[i].running_ns);
        json_signed(json, "ready_ns", list[i].ready_ns);
        json_signed(json, "waiting_ns", list[i].waiting_ns);
        if (list[i].recorded) {
            json_signed(json, "cpu_ns", list[i].cpu_ns);
            json_signed(json, "recorder_ns", list[i].recorder_ns);
        }
        json_close(json, '}');
    }
    json_close(json, ']');
    free(list);
}

static void show_json(const struct request *request)
{
    const trail_analysis_span *span = &request->analysis.span;
    const trail_group *groups;
    struct json json = analysis_json_begin(&request->analysis);
    json_signed(&json, "begin_ns", span->begin_ns);
    json_signed(&json, "end_ns", span->end_ns);
    json_number(&json, "events", span->events);
    json_number(&json, "goroutines", span->goroutines);
    json_number(&json, "goroutines_alive", span->goroutines_alive);
    char largest[OVERVIEW_SIZE];
    json_tiles(request, &json);
    json_findings(request, &json);
    json_string(
        &json, "largest",
        overview_largest(request->analysis.answers, &request->analysis.vocabulary, largest));
    json_activity(request, &json);
    json_processes(request, &json);
    summary_recording_json(request->analysis.reader, &json);
    size_t count = trail_analysis_groups(request->analysis.answers, &groups);
    groups_json(&request->analysis, &json, "groups", groups, count);
    json_waits(request, &json);
    json_gc(request, &json);
    json_heap_tasks(request, &json);
    count = trail_analysis_region_groups(request->analysis.answers, &groups);
    groups_json(&request->analysis, &json, "regions", groups, count);
    analysis_summary(request->analysis.answers, &json);
    analysis_json_end(&json);
}

/* MARK: For people */

static void put_colour(const struct request *request, const char *colour)
{
    if (request->colour)
        terminal_control(stdout, colour);
}

static void title(const struct request *request, const char *text)
{
    putchar('\n');
    put_colour(request, "\033[1m");
    fputs(text, stdout);
    put_colour(request, "\033[0m");
    putchar('\n');
}

/* The command that shows a time, for copying. */
static void put_command(const struct request *request, struct table *table,
                        const trail_longest *longest)
{
    char text[FOLLOW_UP_SIZE];
    table_word(table, longest->ns > 0 ? follow_up_of(&request->analysis, longest->goroutine,
                                                     longest->begin_ns, longest->ns, text)
                                      : "-");
}

#define SPREAD_TITLES "times> sum> p50> p95> p99> max> "

static const char *word(const struct request *request, enum term name)
{
    return term(&request->analysis.vocabulary, name);
}

static const char *count_word(const struct request *request, uint64_t count, enum term one)
{
    return term_count(&request->analysis.vocabulary, count, one);
}

static void show_head(const struct request *request)
{
    const trail_analysis_span *span = &request->analysis.span;
    char length[SHOW_SIZE], goroutines[32], alive[32], events[32];
    show_line("%s: %s, %" PRIu64 " %s, %s %s (%s alive at the end), %s event%s",
              source_title(request->analysis.word), show_duration(length, length_of(request)),
              request->activity.procs, count_word(request, request->activity.procs, TERM_slot),
              table_thousands(goroutines, span->goroutines),
              count_word(request, span->goroutines, TERM_task),
              table_thousands(alive, span->goroutines_alive), table_thousands(events, span->events),
              plural_s(span->events));
}

/* Where the program only waited for others, the process that worked comes first. */
static void show_worker(const struct request *request)
{
    struct summary_process *list;
    const struct summary_process *program, *worker;
    char ran[SHOW_SIZE], waited[SHOW_SIZE];
    size_t count = summary_processes(request->analysis.answers, request->analysis.reader, &list);
    worker = summary_processes_worker(list, count, &program);
    if (worker)
        show_line("%.*s (%" PRIu64 ") ran longest, %s; %.*s (%" PRIu64 "), which was started, "
                  "waited for %s",
                  (int)worker->name.size, worker->name.data, worker->pid,
                  show_duration(ran, worker->running_ns), (int)program->name.size,
                  program->name.data, program->pid, show_duration(waited, program->waiting_ns));
    free(list);
}

static bool nothing_ran(const struct request *request)
{
    return request->analysis.span.goroutines == 0;
}

/* Of the three lines of activity. */
static int label_width(const struct request *request)
{
    size_t widest = strlen(word(request, TERM_slots_idle)), least = sizeof "running " - 1;
    return (int)(widest > least ? widest : least);
}

/* Prints the number of goroutines in a state, over time, relative to the number of Ps. */
static void show_counts(const struct request *request, const char *name, bool runnable)
{
    const trail_activity *a = &request->activity;
    int64_t length = length_of(request), sum = runnable ? a->runnable_ns : a->running_ns;
    int64_t *ns = calloc(a->slice_count + 1, sizeof *ns);
    if (!ns)
        show_lacks();
    struct spark spark = {ns, a->slice_count, a->slice_ns, length};
    for (size_t i = 0; ns && i < a->slice_count; i++)
        ns[i] = runnable ? a->slices[i].runnable_ns : a->slices[i].running_ns;
    printf("%-*s ", label_width(request), name);
    spark_line(&spark, (double)(a->procs ? a->procs : 1));
    printf(" %.2f on average, of %" PRIu64 " %s\n", length > 0 ? (double)sum / (double)length : 0,
           a->procs, count_word(request, a->procs, TERM_slot));
    free(ns);
}

static void show_lost(const struct request *request)
{
    char lost[SHOW_SIZE];
    int64_t ns = request->activity.lost_ns;
    if (ns > 0)
        printf("lost events leave states unknown for %s, %.1f %% of the time: more %s may have run or "
               "been ready there, and the row above does not count it\n",
               show_duration(lost, ns), percent_of(ns, length_of(request)),
               word(request, TERM_tasks));
}

static void show_activity(const struct request *request)
{
    const trail_activity *a = &request->activity;
    int64_t idle = a->idle_work_ns + a->idle_lock_ns + a->idle_nothing_ns;
    show_counts(request, "running", false);
    show_counts(request, "ready", true);
    printf("%-*s %.1f %% of their time: %.1f %% nothing to do, %.1f %% waiting for locks, "
           "%.1f %% although work was ready\n",
           label_width(request), word(request, TERM_slots_idle), percent_of(idle, a->available_ns),
           percent_of(a->idle_nothing_ns, a->available_ns),
           percent_of(a->idle_lock_ns, a->available_ns),
           percent_of(a->idle_work_ns, a->available_ns));
    if (a->inferred_ns > 0) {
        char inferred[SHOW_SIZE];
        printf("inferred for %s: context switches were not recorded; of the %s that ran or were "
               "ready there, "
               "at most %" PRIu64 " count as running here, and all in the rows below\n",
               show_duration(inferred, a->inferred_ns), word(request, TERM_tasks), a->procs);
    }
    show_lost(request);
}

/* The commands that show more of a finding, for copying. */
static void put_commands(const struct request *request, const trail_finding *finding)
{
    char command[FOLLOW_UP_SIZE], file[FOLLOW_UP_SIZE];
    (void)follow_up_file(&request->analysis, file);
    if (finding->task != TRAIL_NONE)
        printf("  trail why --task=%" PRId64 " %s\n", finding->task, file);
    if (finding->region != 0)
        printf("  trail why --region=%s %s\n",
               shell_name(trail_analysis_text(request->analysis.answers, finding->region), command),
               file);
    if (strcmp(finding->kind, "maybe-deadlock") == 0)
        printf("  trail locks %s\n", file);
    if (finding->has_moment)
        printf("  %s\n", follow_up_of(&request->analysis, finding->goroutine, finding->begin_ns,
                                      finding->end_ns - finding->begin_ns, command));
}

static void show_findings(const struct request *request)
{
    const trail_finding *findings;
    size_t count = trail_analysis_findings(request->analysis.answers, &findings);
    title(request, "Findings");
    if (count == 0) {
        char largest[OVERVIEW_SIZE];
        (void)overview_largest(request->analysis.answers, &request->analysis.vocabulary, largest);
        printf("No known problem found. The largest figures: ");
        show_figures(largest);
        puts(".");
    }
    for (size_t i = 0; i < count; i++) {
        const trail_finding *finding = &findings[i];
        put_colour(request, "\033[33m");
        putchar('*');
        put_colour(request, "\033[0m");
        putchar(' ');
        show_figures(finding->text);
        putchar('\n');
        put_commands(request, finding);
    }
}

static void put_part(struct table *table, const char *state, trail_string what, int64_t ns,
                     int64_t total)
{
    if (ns == 0)
        return;
    table_duration(table, ns);
    table_percent(table, share_of(ns, total));
    table_word(table, state);
    table_text(table, what);
}

/* What a wait was for, for people. */
static trail_string reason_text(const struct request *request, trail_string reason)
{
    return words_reason(&request->analysis.vocabulary, reason);
}

static void show_times(const struct request *request)
{
    const char *lost = word(request, TERM_slot_lost);
    const trail_string none = {"", 0}, no_p = {lost, strlen(lost)};
    char text[2 * TERM_SIZE];
    struct overview_part *parts;
    struct table table;
    size_t count;
    trail_times sum = overview_times(request->analysis.answers, false, &parts, &count);
    (void)snprintf(text, sizeof text, "Time of all %s", word(request, TERM_tasks));
    table_begin(&table, "time> share> state< for<");
    put_part(&table, "running", none, sum.exec_ns, sum.total_ns);
    put_part(&table, "ready", none, sum.sched_wait_ns, sum.total_ns);
    put_part(&table, "system call", none, sum.syscall_ns, sum.total_ns);
    put_part(&table, "system call", no_p, sum.syscall_block_ns, sum.total_ns);
    for (size_t i = 0; i < count && i < request->limit; i++)
        put_part(&table, "blocked", reason_text(request, parts[i].name), parts[i].ns, sum.total_ns);
    free(parts);
    (void)overview_times(request->analysis.answers, true, &parts, &count);
    for (size_t i = 0; i < count && i < request->limit; i++)
        put_part(&table, "of these, in", parts[i].name, parts[i].ns, sum.total_ns);
    free(parts);
    if (table.count > 0) {
        title(request, text);
        table_print(&table);
    }
}

static void print_more(const struct request *request, size_t count)
{
    if (count > request->limit)
        printf("... and %zu more; --limit=0 shows all\n", count - request->limit);
}

static void show_processes(const struct request *request)
{
    struct summary_process *list;
    struct table table;
    size_t count = summary_processes(request->analysis.answers, request->analysis.reader, &list);
    if (count == 0)
        return;
    bool recorded = list[0].recorded;
    title(request, "Processes");
    table_begin(&table, recorded ? "threads> running> ready> waiting> CPU> recorder> PID> process<"
                                 : "threads> running> ready> waiting> PID> process<");
    for (size_t i = 0; i < count && i < request->limit; i++) {
        char pid[32];
        (void)snprintf(pid, sizeof pid, "%" PRIu64, list[i].pid);
        table_number(&table, list[i].threads);
        table_duration(&table, list[i].running_ns);
        table_duration(&table, list[i].ready_ns);
        table_duration(&table, list[i].waiting_ns);
        if (recorded) {
            table_duration(&table, list[i].cpu_ns);
            table_duration(&table, list[i].recorder_ns);
        }
        table_word(&table, pid);
        table_text(&table, list[i].name);
    }
    table_print(&table);
    print_more(request, count);
    free(list);
}

static void show_ready(const struct request *request)
{
    const trail_wait_group *const *groups;
    struct table table;
    size_t count = trail_analysis_waits(request->analysis.answers, &groups);
    title(request, "Scheduling latency (ready until running)");
    table_begin_with(&table, &request->analysis.vocabulary,
                     "{tasks}> running> " SPREAD_TITLES "start_function< the_longest<");
    for (size_t i = 0; i < count && i < request->limit; i++) {
        const trail_group *group = overview_group(request->analysis.answers, groups[i]->name);
        table_number(&table, group ? group->count : 0);
        table_duration(&table, group ? group->times.exec_ns : 0);
        table_spread(&table, &groups[i]->ready);
        table_text(&table, analysis_text(&request->analysis, groups[i]->name));
        put_command(request, &table, &groups[i]->ready_longest);
    }
    table_print(&table);
    print_more(request, count);
}

static void put_reason(struct table *table, trail_string reason, uint64_t timed_out)
{
    char text[128], number[32];
    if (reason.size == 0)
        reason = (trail_string){"no reason given", 15};
    if (timed_out == 0) {
        table_text(table, reason);
        return;
    }
    (void)snprintf(text, sizeof text, "%.*s (%s timed out)",
                   (int)(reason.size < 64 ? reason.size : 64), reason.data,
                   table_thousands(number, timed_out));
    table_word(table, text);
}

static void print_waits(const struct request *request, const struct overview_wait *list,
                        size_t count)
{
    struct table table;
    title(request, "Waits that ended");
    table_begin(&table, SPREAD_TITLES "for< start_function< the_longest<");
    for (size_t i = 0; i < count && i < request->limit; i++) {
        table_spread(&table, &list[i].wait->spread);
        put_reason(&table, analysis_reason(&request->analysis, list[i].wait->reason),
                   list[i].wait->timed_out);
        table_text(&table, analysis_text(&request->analysis, list[i].group->name));
        put_command(request, &table, &list[i].wait->longest);
    }
    table_print(&table);
    print_more(request, count);
}

static void show_waits(const struct request *request)
{
    size_t waits;
    struct overview_wait *list = overview_waits(request->analysis.answers, request->idle, &waits);
    if (list && waits > 0)
        print_waits(request, list, waits);
    free(list);
}

static void show_gc(const struct request *request)
{
    const trail_analysis *answers = request->analysis.answers;
    const trail_gc_cycle *cycles;
    char text[SHOW_SIZE], sum[SHOW_SIZE], command[FOLLOW_UP_SIZE];
    int64_t sum_ns;
    size_t cycle_count = trail_analysis_gc_cycles(answers, &cycles), pause_count;
    const trail_gc_pause *longest = overview_pauses(answers, &pause_count, &sum_ns);
    if (cycle_count == 0 && pause_count == 0)
        return;
    title(request, "Garbage collection");
    printf(
        "%zu cycle%s, marking %s; it took %.1f %% of the %s' time; left to the program at worst: "
        "%.1f %% of 1 ms, %.1f %% of 10 ms, %.1f %% of 100 ms\n",
        cycle_count, plural_s(cycle_count), show_duration(text, overview_marking(answers)),
        100 * (1 - trail_analysis_mmu(answers, 0, length_of(request))), word(request, TERM_slots),
        100 * trail_analysis_mmu(answers, 0, mmu_windows[0]),
        100 * trail_analysis_mmu(answers, 0, mmu_windows[1]),
        100 * trail_analysis_mmu(answers, 0, mmu_windows[2]));
    if (!longest)
        return;
    printf("%zu stop-the-world pause%s, %s in all, at most %s: %s\n", pause_count,
           plural_s(pause_count), show_duration(sum, sum_ns),
           show_duration(text, pause_length(longest)),
           follow_up_of(&request->analysis, TRAIL_NONE, longest->begin_ns, pause_length(longest),
                        command));
}

static void show_heap(const struct request *request)
{
    const trail_activity *a = &request->activity;
    char first[SHOW_SIZE], peak[SHOW_SIZE], last[SHOW_SIZE], at[SHOW_SIZE];
    if (!a->has_heap)
        return;
    printf("heap: %s at first, %s at most (at %s), %s at the end\n",
           show_bytes(first, a->heap_first), show_bytes(peak, a->heap_peak),
           show_duration(at, a->heap_peak_ns - request->analysis.span.origin_ns),
           show_bytes(last, a->heap_last));
}

static void show_tasks(const struct request *request)
{
    const trail_task_kind *const *kinds;
    struct table table;
    char text[FOLLOW_UP_SIZE + 64], file[FOLLOW_UP_SIZE];
    size_t count = trail_analysis_task_kinds(request->analysis.answers, &kinds);
    if (count == 0)
        return;
    title(request, "Tasks");
    table_begin(&table, "begun> ended> " SPREAD_TITLES "type< the_longest<");
    for (size_t i = 0; i < count && i < request->limit; i++) {
        table_number(&table, kinds[i]->begun);
        table_number(&table, kinds[i]->ended);
        table_spread(&table, &kinds[i]->spread);
        table_text(&table, analysis_text(&request->analysis, kinds[i]->name));
        (void)snprintf(text, sizeof text, "trail tasks --task=%" PRIu64 " %s",
                       (uint64_t)kinds[i]->longest.goroutine,
                       follow_up_file(&request->analysis, file));
        table_word(&table, kinds[i]->spread.count > 0 ? text : "-");
    }
    table_print(&table);
    print_more(request, count);
}

/* The command that shows the critical path of the longest region of a name. */
static void put_why(const struct request *request, struct table *table, trail_name region)
{
    char text[2 * FOLLOW_UP_SIZE + 64], name[FOLLOW_UP_SIZE], file[FOLLOW_UP_SIZE];
    (void)snprintf(text, sizeof text, "trail why --region=%s %s",
                   shell_name(trail_analysis_text(request->analysis.answers, region), name),
                   follow_up_file(&request->analysis, file));
    table_word(table, region ? text : "-");
}

static void show_regions(const struct request *request)
{
    const trail_group *groups;
    struct table table;
    size_t count = trail_analysis_region_groups(request->analysis.answers, &groups);
    if (count == 0)
        return;
    title(request, "Regions");
    table_begin(&table, SPREAD_TITLES "running> name< why_the_longest_took<");
    for (size_t i = 0; i < count && i < request->limit; i++) {
        table_spread(&table, &groups[i].columns[TRAIL_COLUMN_TOTAL]);
        table_duration(&table, groups[i].times.exec_ns);
        table_text(&table, analysis_text(&request->analysis, groups[i].name));
        put_why(request, &table, groups[i].name);
    }
    table_print(&table);
    print_more(request, count);
}

static int show(void *context)
{
    struct request *request = context;
    trail_analysis_activity(request->analysis.answers, &request->activity);
    if (request->analysis.json) {
        show_json(request);
        return EXIT_GOOD;
    }
    show_head(request);
    show_worker(request);
    if (nothing_ran(request)) {
        analysis_nothing_ran(&request->analysis, TERM_task);
    } else {
        show_activity(request);
        show_findings(request);
        show_times(request);
    }
    show_processes(request);
    if (summary_recording_has(request->analysis.reader)) {
        title(request, "Recording");
        summary_recording_show(request->analysis.reader);
    }
    if (!nothing_ran(request))
        show_ready(request);
    show_waits(request);
    show_gc(request);
    show_heap(request);
    show_tasks(request);
    show_regions(request);
    return EXIT_GOOD;
}

static void panel_want(trail_analysis_options *options)
{
    want(options);
    options->what |= TILES_ANALYSES;
}

static void panel_show(const struct analysis *analysis, size_t limit)
{
    struct request request = {.analysis = *analysis, .limit = limit};
    trail_analysis_activity(analysis->answers, &request.activity);
    show_json(&request);
}

const struct panel panel_summary = {panel_want, panel_show};

/* A line for each of several files. */
static int run_files(struct analysis *analysis, const struct options *options)
{
    int code = analysis_word(analysis, options->words[0]);
    if (code == EXIT_GOOD)
        code = summary_files_show(analysis, options);
    skip_frames_free(analysis->skip_frames);
    return code;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct request request = {
        .analysis = {.command = command},
        .limit = 6,
        .colour = want_colour(),
    };
    struct options options;
    int code = options_each(&options, command, argc, argv, NULL, &request.analysis);
    want(&request.analysis.options);
    if (code == EXIT_GOOD && summary_files_are(&options))
        return run_files(&request.analysis, &options);
    if (code == EXIT_GOOD)
        code = analysis_words(&request.analysis, &options);
    /* Only the tiles have locks. */
    if (request.analysis.json)
        request.analysis.options.what |= TILES_ANALYSES;
    code = analysis_answer(&request.analysis, code, show, &request);
    if (!overview_is_whole())
        show_lacks();
    return code;
}

const struct command command_summary = {
    COMMAND_ROW(summary),
    .synopsis = "[options] FILE|FOLDER...",
    .details =
        "Shows how many goroutines ran and were ready at each time, what idle Ps lacked, where "
        "the goroutines' time went, how long they were ready and waited, by start function, "
        "garbage collection, heap, tasks and regions. Commands that show the longest of each "
        "stand beside it. Of several files, or those in a folder, a line each: the first finding, "
        "what it would gain, by which they are sorted, and the longest wait, pause and task.",
    .examples = "  trail summary app.trace\n"
                "  trail summary traces/\n"
                "  trail summary --from=1s --to=+200ms app.trace\n"
                "  trail summary --json app.trace | jq .gc",
    .options = rows,
    .run = run,
    .wrapped = true,
};
