/*
 * trail summary: a trace on one screen: use of its Ps, where the time of goroutines went, the
 * largest waits, garbage collection, heap, tasks and regions. Figures about a point in time are
 * followed by the command that shows it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/goroutines.h"
#include "analyze/part.h"
#include "base/share.h"
#include "base/text.h"
#include "commands/panels.h"
#include "commands/summary_files.h"
#include "commands/summary_processes.h"
#include "commands/summary_recording.h"
#include "diagnose/gains.h"
#include "report/overview.h"
#include "report/tiles.h"
#include "ui/follow_up.h"
#include "ui/groups.h"
#include "ui/spark.h"
#include "ui/terminal.h"
#include "ui/values.h"
#include "words/gain.h"

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
    {0, "idle", NULL, "show waits for work among the others, not last",
     TO_FLAG(struct request, idle)},
    SKIP_FRAMES_ROW,
    ANALYSIS_ROWS,
    {0},
};

/* MARK: Command line */

static void want(trail_analysis_options *options)
{
    summary_files_want(options);
    options->what |= GAINS_ANALYSES;
}

/* MARK: What is shown in both forms */

#define SPREAD_TITLES "times> sum> p50> p95> p99> max>"

static int64_t length_of(const struct request *request)
{
    return request->analysis.span.end_ns - request->analysis.span.begin_ns;
}

/* MARK: JSON */

/* Writes the command that shows a time, for copying. */
static void put_command(struct row *row, const trail_longest *longest)
{
    char text[FOLLOW_UP_SIZE];
    row_word(row, "the_longest<", NULL,
             longest->ns > 0 ? follow_up_of(row->analysis, longest->goroutine, longest->begin_ns,
                                            longest->ns, text)
                             : "-");
}

static void put_slice(struct row *row, const void *of)
{
    const trail_activity_slice *slice = of;
    row_duration(row, NULL, "running_ns", slice->running_ns);
    row_duration(row, NULL, "ready_ns", slice->runnable_ns);
    row_duration(row, NULL, "procs_ns", slice->procs_ns);
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
    rows_json(&request->analysis, json, "slices", put_slice, a->slices, sizeof *a->slices,
              a->slice_count);
    json_close(json, '}');
}

static void put_wait(struct row *row, const void *of)
{
    const trail_wait *wait = of;
    analysis_json_wait(row->analysis, row->json, wait->reason);
    if (wait->idle_count) {
        row_number(row, NULL, "idle_count", wait->idle_count);
        row_duration(row, NULL, "idle_ns", wait->idle_ns);
    }
    if (wait->timed_out)
        row_number(row, NULL, "timed_out", wait->timed_out);
    row_number(row, NULL, "count", wait->spread.count);
    row_duration(row, NULL, "sum_ns", wait->spread.sum_ns);
    row_spread(row, NULL, "spread", &wait->spread);
    row_longest(row, "longest", &wait->longest, "goroutine");
}

static void put_ready(struct row *row, const void *of)
{
    const trail_wait_group *waits = of;
    row_number(row, NULL, "count", waits->ready.count);
    row_duration(row, NULL, "sum_ns", waits->ready.sum_ns);
    row_spread(row, NULL, "spread", &waits->ready);
    row_longest(row, "longest", &waits->ready_longest, "goroutine");
}

static void put_waits(struct row *row, const void *of)
{
    const trail_wait_group *waits = of;
    row_name(row, NULL, "name", waits->name);
    row_number(row, NULL, "created", waits->created);
    row_number(row, NULL, "ended", waits->ended);
    row_json(row->analysis, row->json, "ready", put_ready, waits);
    rows_json(row->analysis, row->json, "blocked", put_wait, waits->waits, sizeof *waits->waits,
              waits->wait_count);
}

static void put_task(struct row *row, const void *of)
{
    const trail_task_kind *kind = of;
    char text[FOLLOW_UP_SIZE + 64], file[FOLLOW_UP_SIZE];
    row_name(row, NULL, "name", kind->name);
    row_number(row, "begun>", "begun", kind->begun);
    row_number(row, "ended>", "ended", kind->ended);
    row_spread(row, SPREAD_TITLES, "spread", &kind->spread);
    row_name(row, "type<", NULL, kind->name);
    row_longest(row, "longest", &kind->longest, "task");
    (void)snprintf(text, sizeof text, "trail tasks --task=%" PRIu64 " %s",
                   (uint64_t)kind->longest.goroutine, follow_up_file(row->analysis, file));
    row_word(row, "the_longest<", NULL, kind->spread.count > 0 ? text : "-");
}

static void put_moment(struct row *row, bool has_moment, int64_t begin_ns, int64_t end_ns)
{
    if (!has_moment)
        return;
    row_time(row, NULL, "begin_ns", begin_ns);
    row_time(row, NULL, "end_ns", end_ns);
}

static void put_if(struct row *row, const char *key, int64_t id)
{
    if (id != TRAIL_NONE)
        row_id(row, NULL, key, id);
}

static void put_name_if(struct row *row, const char *key, trail_name name)
{
    if (name != 0)
        row_name(row, NULL, key, name);
}

static void put_finding(struct row *row, const void *of)
{
    const trail_finding *finding = of;
    const trail_analysis_span *span = &row->analysis->span;
    char bound[GAIN_BOUND_SIZE];
    const char *remedy = gain_remedy(finding, ns_between(span->begin_ns, span->end_ns), bound);
    struct gain_words gain;
    row_word(row, NULL, "kind", finding->kind);
    row_word(row, NULL, "text", finding->text);
    row_word(row, NULL, "heading", finding->heading);
    row_word(row, NULL, "details", finding->details);
    if (*bound)
        row_word(row, NULL, "bound", bound);
    row_word(row, NULL, "remedy", remedy);
    json_real(row->json, "weight", finding->weight);
    row_duration(row, NULL, "gain_ns", finding->gain_ns);
    if (gain_words(finding, &gain)) {
        row_word(row, NULL, "gain_title", gain.title);
        row_word(row, NULL, "gain_figure", gain.figure);
    }
    put_name_if(row, "function", finding->function);
    put_name_if(row, "object", finding->object);
    put_moment(row, finding->has_moment, finding->begin_ns, finding->end_ns);
    put_if(row, "goroutine", finding->goroutine);
    put_if(row, "task", finding->task);
    put_name_if(row, "region", finding->region);
    if (finding->replayed) {
        row_word(row, NULL, "replayed", finding->replayed);
        row_word(row, NULL, "replayed_of", finding->replayed_of);
        row_duration(row, NULL, "replayed_now_ns", finding->replayed_now_ns);
        row_duration(row, NULL, "replayed_then_ns", finding->replayed_then_ns);
        json_open(row->json, "whatif", '[');
        for (int i = 0; i < 2 && finding->whatif[i]; i++)
            json_string(row->json, NULL, finding->whatif[i]);
        json_close(row->json, ']');
    }
}

static void put_tile(struct row *row, const void *of)
{
    const struct tile *tile = of;
    char title[TERM_SIZE + 64];
    row_word(row, NULL, "key", tile->key);
    row_word(row, NULL, "title",
             words_text(&row->analysis->vocabulary, tile->title, title, sizeof title));
    row_id(row, NULL, "value", tile->value);
    row_word(row, NULL, "text", tile->text);
    row_word(row, NULL, "note", tile->note);
    if (tile->command)
        row_word(row, NULL, "command", tile->command);
    put_moment(row, tile->has_moment, tile->begin_ns, tile->end_ns);
    put_if(row, "goroutine", tile->goroutine);
    put_if(row, "task", tile->task);
}

/* A table of processes has columns of CPU time if `recorded`. */
static void put_process_if(struct row *row, const struct summary_process *process, bool recorded)
{
    row_text(row, NULL, "name", process->name);
    row_plain(row, NULL, "pid", process->pid);
    row_number(row, "threads>", "threads", process->threads);
    row_duration(row, "running>", "running_ns", process->running_ns);
    row_duration(row, "ready>", "ready_ns", process->ready_ns);
    row_duration(row, "waiting>", "waiting_ns", process->waiting_ns);
    if (recorded) {
        row_duration(row, "CPU>", "cpu_ns", process->cpu_ns);
        row_duration(row, "recorder>", "recorder_ns", process->recorder_ns);
    }
    row_plain(row, "PID>", NULL, process->pid);
    row_text(row, "process<", NULL, process->name);
}

static void put_recorded(struct row *row, const void *of)
{
    put_process_if(row, of, true);
}

static void put_unrecorded(struct row *row, const void *of)
{
    put_process_if(row, of, false);
}

static void put_process(struct row *row, const void *of)
{
    const struct summary_process *process = of;
    put_process_if(row, process, process->recorded);
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

static void json_heap(const trail_activity *a, struct json *json)
{
    if (!a->has_heap) {
        json_null(json, "heap");
        return;
    }
    json_open(json, "heap", '{');
    json_number(json, "first_bytes", a->heap_first);
    json_number(json, "peak_bytes", a->heap_peak);
    json_number(json, "last_bytes", a->heap_last);
    json_signed(json, "peak_at_ns", a->heap_peak_ns);
    json_close(json, '}');
}

static void show_json(const struct request *request)
{
    const struct analysis *analysis = &request->analysis;
    const trail_analysis *answers = analysis->answers;
    const trail_analysis_span *span = &analysis->span;
    const trail_finding *findings;
    const trail_group *groups;
    const trail_wait_group *const *waits;
    const trail_task_kind *const *kinds;
    struct summary_process *processes;
    struct tiles tiles;
    char largest[OVERVIEW_SIZE];
    struct json json = analysis_json_begin(analysis);
    json_signed(&json, "begin_ns", span->begin_ns);
    json_signed(&json, "end_ns", span->end_ns);
    json_number(&json, "events", span->events);
    json_number(&json, "goroutines", span->goroutines);
    json_number(&json, "goroutines_alive", span->goroutines_alive);
    tiles_make(&tiles, answers, &analysis->vocabulary);
    rows_json(analysis, &json, "tiles", put_tile, tiles.list, sizeof *tiles.list, tiles.count);
    size_t count = trail_analysis_findings(answers, &findings);
    rows_json(analysis, &json, "findings", put_finding, findings, sizeof *findings, count);
    json_string(&json, "largest", overview_largest(answers, &analysis->vocabulary, largest));
    json_activity(request, &json);
    count = summary_processes(answers, analysis->reader, &processes);
    rows_json(analysis, &json, "processes", put_process, processes, sizeof *processes, count);
    free(processes);
    summary_recording_json(analysis->reader, &json);
    count = trail_analysis_groups(answers, &groups);
    groups_json(analysis, &json, "groups", groups, count);
    count = trail_analysis_waits(answers, &waits);
    rows_json(analysis, &json, "waits", put_waits, waits, 0, count);
    json_gc(request, &json);
    json_heap(&request->activity, &json);
    count = trail_analysis_task_kinds(answers, &kinds);
    rows_json(analysis, &json, "tasks", put_task, kinds, 0, count);
    count = trail_analysis_region_groups(answers, &groups);
    groups_json(analysis, &json, "regions", groups, count);
    analysis_summary(answers, &json);
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
              show_thousands(goroutines, span->goroutines),
              count_word(request, span->goroutines, TERM_task),
              show_thousands(alive, span->goroutines_alive), show_thousands(events, span->events),
              plural_s(span->events));
}

/* If the program only waited for others, the process that worked comes first. */
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

/* Returns the width of the labels of the three activity lines. */
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
    char lost[SHOW_SIZE], share[32] = "";
    int64_t ns = request->activity.lost_ns;
    double percent = percent_of(ns, length_of(request));
    if (percent >= SHARE_SHOWN * 100)
        (void)snprintf(share, sizeof share, ", %.1f %% of the time", percent);
    if (ns > 0)
        printf("lost events leave states unknown for %s%s: more %s may have run or been ready "
               "there, and the row above does not count it\n",
               show_duration(lost, ns), share, word(request, TERM_tasks));
}

static void show_idle(const struct request *request)
{
    const trail_activity *a = &request->activity;
    int64_t idle = a->idle_work_ns + a->idle_lock_ns + a->idle_nothing_ns;
    if (a->available_ns == 0 || overview_lacks_switches(a, length_of(request))) {
        printf("%-*s unknown: %s\n", label_width(request), word(request, TERM_slots_idle),
               a->available_ns == 0 ? "events are lost" : "context switches were not recorded");
        return;
    }
    printf("%-*s %.1f %% of their time: %.1f %% nothing to do, %.1f %% waiting for locks, %.1f %% "
           "although work was ready\n",
           label_width(request), word(request, TERM_slots_idle), percent_of(idle, a->available_ns),
           percent_of(a->idle_nothing_ns, a->available_ns),
           percent_of(a->idle_lock_ns, a->available_ns),
           percent_of(a->idle_work_ns, a->available_ns));
}

/* Prints what the clocks of the recorded processes say, which are those of the whole recording. */
static void show_clocks(const struct request *request)
{
    char cpu[SHOW_SIZE];
    int64_t ns = summary_recording_cpu_ns(request->analysis.reader);
    if (ns > 0 && !request->analysis.window.has_from && !request->analysis.window.has_to)
        printf("by the clocks of its processes, the program ran for %s, %.2f on average\n",
               show_duration(cpu, ns), (double)ns / (double)length_of(request));
}

static void show_activity(const struct request *request)
{
    const trail_activity *a = &request->activity;
    show_counts(request, "running", false);
    show_counts(request, "ready", true);
    show_idle(request);
    if (a->inferred_ns > 0) {
        char inferred[SHOW_SIZE];
        printf("inferred for %s: context switches were not recorded; of the %s that ran or were "
               "ready there, at most %" PRIu64
               " count as running here, and all in the rows below\n",
               show_duration(inferred, a->inferred_ns), word(request, TERM_tasks), a->procs);
        show_clocks(request);
    }
    show_lost(request);
}

/* Prints the commands that show more about a finding, for copying. */
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
    if (finding->replayed) {
        fputs("  trail whatif", stdout);
        for (int i = 0; i < 2 && finding->whatif[i]; i++)
            printf(" %s", shell_word(finding->whatif[i], command));
        printf(" %s\n", file);
    }
    if (finding->has_moment)
        printf("  %s\n", follow_up_of(&request->analysis, finding->goroutine, finding->begin_ns,
                                      finding->end_ns - finding->begin_ns, command));
}

static void put_sentences(const char *text)
{
    if (!*text)
        return;
    fputs("  ", stdout);
    show_figures(text);
    putchar('\n');
}

static void show_findings(const struct request *request)
{
    const trail_finding *findings;
    size_t count = trail_analysis_findings(request->analysis.answers, &findings);
    title(request, "Findings");
    if (count == 0) {
        char largest[OVERVIEW_SIZE];
        (void)overview_largest(request->analysis.answers, &request->analysis.vocabulary, largest);
        printf("%s. The largest figures: ", overview_nothing(&request->activity));
        show_figures(largest);
        puts(".");
    }
    for (size_t i = 0; i < count; i++) {
        const trail_finding *finding = &findings[i];
        put_colour(request, "\033[33m");
        putchar('*');
        put_colour(request, "\033[0m");
        putchar(' ');
        show_figures(finding->heading);
        putchar('\n');
        put_sentences(finding->details);
        put_sentences(finding->remedy);
        put_sentences(finding->replayed ? finding->replayed : "");
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

/* Returns what a wait was for, in words. */
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
    put_part(&table, "syscall", none, sum.syscall_ns, sum.total_ns);
    put_part(&table, "syscall", no_p, sum.syscall_block_ns, sum.total_ns);
    for (size_t i = 0; i < count && i < request->limit; i++)
        put_part(&table, "waiting", reason_text(request, parts[i].name), parts[i].ns, sum.total_ns);
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

static void show_processes(const struct request *request)
{
    struct summary_process *list;
    size_t count = summary_processes(request->analysis.answers, request->analysis.reader, &list);
    if (count == 0)
        return;
    title(request, "Processes");
    rows_show(&request->analysis, list[0].recorded ? put_recorded : put_unrecorded, list,
              sizeof *list, count, request->limit);
    free(list);
}

static void put_latency(struct row *row, const void *of)
{
    const trail_wait_group *waits = of;
    struct overview_group group = overview_group(row->analysis->answers, waits->name);
    row_number(row, "{tasks}>", NULL, group.count);
    row_duration(row, "running>", NULL, group.exec_ns);
    row_spread(row, SPREAD_TITLES, NULL, &waits->ready);
    row_name(row, "start_function<", NULL, waits->name);
    put_command(row, &waits->ready_longest);
}

static void show_ready(const struct request *request)
{
    const trail_wait_group *const *groups;
    size_t count = trail_analysis_waits(request->analysis.answers, &groups);
    title(request, "Scheduling latency (ready until running)");
    rows_show(&request->analysis, put_latency, groups, 0, count, request->limit);
}

static void put_reason(struct row *row, trail_string reason, uint64_t timed_out)
{
    char text[128], number[32];
    if (reason.size == 0)
        reason = text_from("no reason given");
    if (timed_out == 0) {
        row_text(row, "for<", NULL, reason);
        return;
    }
    (void)snprintf(text, sizeof text, "%.*s (%s timed out)",
                   (int)(reason.size < 64 ? reason.size : 64), reason.data,
                   show_thousands(number, timed_out));
    row_word(row, "for<", NULL, text);
}

static void put_ended(struct row *row, const void *of)
{
    const struct overview_wait *ended = of;
    row_spread(row, SPREAD_TITLES, NULL, &ended->wait->spread);
    put_reason(row, analysis_reason(row->analysis, ended->wait->reason), ended->wait->timed_out);
    row_name(row, "start_function<", NULL, ended->group->name);
    put_command(row, &ended->wait->longest);
}

static void show_waits(const struct request *request)
{
    size_t waits;
    struct overview_wait *list = overview_waits(request->analysis.answers, request->idle, &waits);
    if (list && waits > 0) {
        title(request, "Waits that ended");
        rows_show(&request->analysis, put_ended, list, sizeof *list, waits, request->limit);
    }
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
    size_t count = trail_analysis_task_kinds(request->analysis.answers, &kinds);
    if (count == 0)
        return;
    title(request, "Tasks");
    rows_show(&request->analysis, put_task, kinds, 0, count, request->limit);
}

static void put_region(struct row *row, const void *of)
{
    const trail_group *group = of;
    char text[2 * FOLLOW_UP_SIZE + 64], name[FOLLOW_UP_SIZE], file[FOLLOW_UP_SIZE];
    row_spread(row, SPREAD_TITLES, NULL, &group->columns[TRAIL_COLUMN_TOTAL]);
    row_duration(row, "running>", NULL, group->times.exec_ns);
    row_name(row, "name<", NULL, group->name);
    (void)snprintf(text, sizeof text, "trail why --region=%s %s",
                   shell_name(trail_analysis_text(row->analysis->answers, group->name), name),
                   follow_up_file(row->analysis, file));
    row_word(row, "why_the_longest_took<", NULL, group->name ? text : "-");
}

static void show_regions(const struct request *request)
{
    const trail_group *groups;
    size_t count = trail_analysis_region_groups(request->analysis.answers, &groups);
    if (count == 0)
        return;
    title(request, "Regions");
    rows_show(&request->analysis, put_region, groups, sizeof *groups, count, request->limit);
}

static int show(void *context)
{
    struct request *request = context;
    if (!gains_add(request->analysis.answers))
        return exit_no_memory();
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
    (void)gains_add(analysis->answers);
    trail_analysis_activity(analysis->answers, &request.activity);
    show_json(&request);
}

const struct panel panel_summary = {panel_want, panel_show};

/* Prints a line for each of several files. */
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
        .colour = terminal_colours(),
    };
    struct options options;
    int code = options_each(&options, command, argc, argv, NULL, &request.analysis);
    want(&request.analysis.options);
    if (code == EXIT_GOOD && summary_files_are(&options))
        return run_files(&request.analysis, &options);
    if (code == EXIT_GOOD)
        code = analysis_words(&request.analysis, &options);
    /* Only the tiles show locks. */
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
        "stand beside it. For several files, or those in a folder, one line each: the first "
        "finding, "
        "what it would gain, by which they are sorted, and the longest wait, pause and task.",
    .examples = "  trail summary app.trace\n"
                "  trail summary traces/\n"
                "  trail summary --from=1s --to=+200ms app.trace\n"
                "  trail summary --json app.trace | jq .gc",
    .wrapped = true,
};
