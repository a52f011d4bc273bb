#include "commands/diff_rows.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/order.h"
#include "base/text.h"
#include "report/overview.h"
#include "ui/lock_name.h"
#include "wire/waits.h"

/* Where new rows go, and which trace and part they describe. */
struct collector {
    struct diff_rows *rows;
    const struct analysis *analysis;
    int side;
    enum diff_scope scope;
    trail_string name;              /* "" for the whole trace */
    const trail_wait_group **waits; /* by their group's name */
    size_t wait_count;
};

/* MARK: Rows */

static char *copy_of(trail_string text)
{
    return strndup(text.size > 0 ? text.data : "", text.size);
}

/* Takes ownership of `path`. */
static void append(struct collector *c, char *path, enum diff_unit unit, bool sums,
                   struct diff_measure measure)
{
    struct diff_rows *rows = c->rows;
    char *name = copy_of(c->name);
    if (!path || !name || !GROW(rows->rows, rows->capacity, rows->count + 1)) {
        rows->no_memory = true;
        free(path);
        free(name);
        return;
    }
    struct diff_row *row = &rows->rows[rows->count++];
    *row = (struct diff_row){.scope = c->scope, .unit = unit, .sums = sums};
    row->path = path;
    row->name = name;
    row->of[c->side] = measure;
    row->of[c->side].there = true;
}

static void add(struct collector *c, const char *path, enum diff_unit unit, bool sums, double value)
{
    append(c, strdup(path), unit, sums, (struct diff_measure){.value = value});
}

static struct diff_measure measure_of(int64_t ns, const trail_histogram *spread)
{
    return (struct diff_measure){
        .value = (double)ns,
        .spread = true,
        .count = (double)spread->count,
        .p50 = (double)trail_histogram_quantile(spread, 0.5),
        .p99 = (double)trail_histogram_quantile(spread, 0.99),
        .max = (double)spread->max_ns,
    };
}

static void add_time(struct collector *c, const char *path, int64_t ns,
                     const trail_histogram *spread)
{
    append(c, strdup(path), DIFF_NS, true, measure_of(ns, spread));
}

static void add_up(struct collector *c, trail_histogram *sum, const trail_histogram *more)
{
    if (!trail_histogram_merge(sum, more))
        c->rows->no_memory = true;
}

/* MARK: Goroutines */

/* Columns of goroutines' totals; those of single waits are below. */
static const struct {
    trail_column column;
    const char *path, *region_path;
} columns[] = {
    {TRAIL_COLUMN_TOTAL, "total", "region"},
    {TRAIL_COLUMN_EXEC, "exec", "region.exec"},
    {TRAIL_COLUMN_SYSCALL, "syscall", "region.syscall"},
    {TRAIL_COLUMN_SYSCALL_BLOCK, "syscall_block", "region.syscall_block"},
    {TRAIL_COLUMN_BLOCK, "block", "region.block"},
    {TRAIL_COLUMN_SCHED_WAIT, "sched_wait", "region.sched_wait"},
};

enum { COLUMNS = sizeof columns / sizeof *columns, LIFE_COLUMNS = COLUMNS - 1 };

/* The part of an open system call without a P, counted once, as blocked. */
static int64_t corrected(const trail_times *times, trail_column column)
{
    trail_times once = trail_times_corrected(times);
    return trail_times_column(&once, column);
}

/* Returns "block.chan_receive". */
static char *block_path(trail_string reason)
{
    char *path;
    if (reason.size == 0)
        reason = text_from("unknown");
    if (asprintf(&path, "block.%.*s", (int)reason.size, reason.data) < 0)
        return NULL;
    for (char *at = path; *at; at++)
        if (*at == ' ')
            *at = '_';
    return path;
}

/* Returns a path by kind if the kind is recorded, else by reason. */
static char *wait_path(const struct collector *c, trail_name wait)
{
    const trail_analysis *answers = c->analysis->answers;
    const char *kind = trail_analysis_wait_for(answers, wait).kind;
    return block_path(kind ? text_from(kind) : trail_analysis_text(answers, wait));
}

static bool index_waits(struct collector *c)
{
    const trail_wait_group *const *rows;
    size_t count = trail_analysis_waits(c->analysis->answers, &rows);
    for (size_t i = 0; i < count; i++)
        if (rows[i]->name >= c->wait_count)
            c->wait_count = (size_t)rows[i]->name + 1;
    c->waits = calloc(c->wait_count + 1, sizeof(void *));
    for (size_t i = 0; i < count && c->waits; i++)
        c->waits[rows[i]->name] = rows[i];
    return c->waits;
}

static const trail_histogram *spread_of(const trail_wait_group *waits, trail_name reason)
{
    static const trail_histogram empty;
    for (size_t i = 0; waits && i < waits->wait_count; i++)
        if (waits->waits[i].reason == reason)
            return &waits->waits[i].spread;
    return &empty;
}

static void collect_group(struct collector *c, const trail_group *group)
{
    static const trail_histogram empty;
    trail_name kind = overview_kind(c->analysis->answers, group->name);
    const trail_wait_group *waits = kind < c->wait_count ? c->waits[kind] : NULL;
    c->name = analysis_text(c->analysis, group->name);
    /* The waits of several threads of a kind are not known apart. */
    if (!text_equal(c->name, analysis_text(c->analysis, kind)))
        waits = NULL;
    add(c, "count", DIFF_COUNT, true, (double)group->count);
    for (int i = 0; i < LIFE_COLUMNS; i++)
        add_time(c, columns[i].path, corrected(&group->times, columns[i].column),
                 &group->columns[columns[i].column]);
    add_time(c, "sched_wait", corrected(&group->times, TRAIL_COLUMN_SCHED_WAIT),
             waits ? &waits->ready : &empty);
    for (uint32_t i = 0; i < group->times.block_count; i++) {
        const trail_named_time *time = &group->times.block[i];
        append(c, wait_path(c, time->name), DIFF_NS, true,
               measure_of(time->ns, spread_of(waits, time->name)));
    }
}

/* A reason, summed over all groups. */
struct reason {
    trail_name name;
    int64_t ns;
    trail_histogram spread;
};

struct reasons {
    struct reason *list;
    size_t count, capacity;
};

static struct reason *reason_of(struct collector *c, struct reasons *reasons, trail_name name)
{
    for (size_t i = 0; i < reasons->count; i++)
        if (reasons->list[i].name == name)
            return &reasons->list[i];
    if (!GROW(reasons->list, reasons->capacity, reasons->count + 1)) {
        c->rows->no_memory = true;
        return NULL;
    }
    reasons->list[reasons->count] = (struct reason){.name = name};
    return &reasons->list[reasons->count++];
}

static void sum_reasons(struct collector *c, const trail_group *groups, size_t count)
{
    struct reasons reasons = {0};
    const trail_wait_group *const *waits;
    size_t wait_count = trail_analysis_waits(c->analysis->answers, &waits);
    for (size_t i = 0; i < count; i++)
        for (uint32_t n = 0; n < groups[i].times.block_count; n++) {
            struct reason *reason = reason_of(c, &reasons, groups[i].times.block[n].name);
            if (reason)
                reason->ns += groups[i].times.block[n].ns;
        }
    for (size_t i = 0; i < wait_count; i++)
        for (size_t n = 0; n < waits[i]->wait_count; n++) {
            struct reason *reason = reason_of(c, &reasons, waits[i]->waits[n].reason);
            if (reason)
                add_up(c, &reason->spread, &waits[i]->waits[n].spread);
        }
    for (size_t i = 0; i < reasons.count; i++) {
        struct reason *reason = &reasons.list[i];
        append(c, wait_path(c, reason->name), DIFF_NS, true,
               measure_of(reason->ns, &reason->spread));
        trail_histogram_free(&reason->spread);
    }
    free(reasons.list);
}

static void sum_column(struct collector *c, const trail_group *groups, size_t count, int column)
{
    trail_histogram spread = {0};
    int64_t ns = 0;
    for (size_t i = 0; i < count; i++) {
        ns += corrected(&groups[i].times, columns[column].column);
        add_up(c, &spread, &groups[i].columns[columns[column].column]);
    }
    add_time(c, columns[column].path, ns, &spread);
    trail_histogram_free(&spread);
}

static void sum_ready(struct collector *c, const trail_group *groups, size_t count)
{
    trail_histogram spread = {0};
    const trail_wait_group *const *waits;
    size_t wait_count = trail_analysis_waits(c->analysis->answers, &waits);
    int64_t ns = 0;
    for (size_t i = 0; i < count; i++)
        ns += corrected(&groups[i].times, TRAIL_COLUMN_SCHED_WAIT);
    for (size_t i = 0; i < wait_count; i++)
        add_up(c, &spread, &waits[i]->ready);
    add_time(c, "sched_wait", ns, &spread);
    trail_histogram_free(&spread);
}

static void collect_goroutines(struct collector *c)
{
    const trail_group *groups;
    size_t count = trail_analysis_groups(c->analysis->answers, &groups);
    add(c, "count", DIFF_COUNT, true, (double)c->analysis->span.goroutines);
    for (int i = 0; i < LIFE_COLUMNS; i++)
        sum_column(c, groups, count, i);
    sum_ready(c, groups, count);
    sum_reasons(c, groups, count);
    c->scope = DIFF_GOROUTINES;
    if (!index_waits(c)) {
        c->rows->no_memory = true;
        return;
    }
    for (size_t i = 0; i < count; i++)
        collect_group(c, &groups[i]);
    free(c->waits);
}

/* MARK: Regions and tasks */

static void collect_regions(struct collector *c)
{
    const trail_group *groups;
    size_t count = trail_analysis_region_groups(c->analysis->answers, &groups);
    c->scope = DIFF_REGIONS;
    for (size_t i = 0; i < count; i++) {
        c->name = analysis_text(c->analysis, groups[i].name);
        for (int n = 0; n < COLUMNS; n++)
            add_time(c, columns[n].region_path, corrected(&groups[i].times, columns[n].column),
                     &groups[i].columns[columns[n].column]);
    }
}

static void collect_tasks(struct collector *c)
{
    const trail_task_kind *const *kinds;
    size_t count = trail_analysis_task_kinds(c->analysis->answers, &kinds);
    c->scope = DIFF_TASKS;
    for (size_t i = 0; i < count; i++) {
        c->name = analysis_text(c->analysis, kinds[i]->name);
        add_time(c, "task", kinds[i]->spread.sum_ns, &kinds[i]->spread);
    }
}

/* MARK: Locks */

/* A lock under a name that is comparable between traces; several locks may share a name. */
struct named_lock {
    char *name;
    const trail_lock *lock;
};

static int by_lock_name(const void *a, const void *b)
{
    const struct named_lock *x = a, *y = b;
    return strcmp(x->name, y->name);
}

/* Adds up several locks. Waits that did not end count as time, but not in the distribution. */
static void sum_locks(struct collector *c, const char *name, const struct named_lock *locks,
                      size_t count)
{
    trail_histogram wait = {0}, hold = {0};
    int64_t wait_ns = 0, hold_ns = 0;
    for (size_t i = 0; i < count; i++) {
        const trail_lock *lock = locks[i].lock;
        wait_ns += lock->wait.sum_ns + lock->open_ns;
        hold_ns += lock->hold.sum_ns;
        add_up(c, &wait, &lock->wait);
        add_up(c, &hold, &lock->hold);
    }
    c->name = text_from(name);
    add_time(c, "lock.wait", wait_ns, &wait);
    if (hold.count > 0)
        add_time(c, "lock.hold", hold_ns, &hold);
    trail_histogram_free(&wait);
    trail_histogram_free(&hold);
}

static void sum_each_lock(struct collector *c, struct named_lock *locks, size_t count)
{
    size_t end;
    qsort(locks, count, sizeof *locks, by_lock_name);
    for (size_t begin = 0; begin < count; begin = end) {
        for (end = begin + 1; end < count && by_lock_name(&locks[begin], &locks[end]) == 0;)
            end++;
        sum_locks(c, locks[begin].name, locks + begin, end - begin);
    }
}

static void collect_locks(struct collector *c)
{
    const trail_lock *const *rows;
    char text[LOCK_NAME_SIZE];
    size_t count = trail_analysis_locks(c->analysis->answers, &rows);
    struct named_lock *locks = calloc(count + 1, sizeof *locks);
    c->rows->no_memory |= !locks;
    for (size_t i = 0; locks && i < count; i++) {
        char *name = strdup(lock_identity(c->analysis, rows[i], text));
        locks[i] = (struct named_lock){name, rows[i]};
        c->rows->no_memory |= !name;
    }
    if (!c->rows->no_memory) {
        c->scope = DIFF_WHOLE;
        sum_locks(c, "", locks, count);
        c->scope = DIFF_LOCKS;
        sum_each_lock(c, locks, count);
    }
    for (size_t i = 0; locks && i < count; i++)
        free(locks[i].name);
    free(locks);
}

/* MARK: Of the whole */

static void collect_pauses(struct collector *c)
{
    const trail_gc_pause *pauses;
    trail_histogram spread = {0};
    size_t count = trail_analysis_gc_pauses(c->analysis->answers, &pauses);
    for (size_t i = 0; i < count; i++)
        if (!trail_histogram_add(&spread, pauses[i].end_ns - pauses[i].begin_ns))
            c->rows->no_memory = true;
    add_time(c, "stw", spread.sum_ns, &spread);
    trail_histogram_free(&spread);
}

static void collect_gc(struct collector *c)
{
    const trail_gc_cycle *cycles;
    const trail_analysis_span *span = &c->analysis->span;
    trail_histogram mark = {0};
    int64_t assist_ns = 0, sweep_ns = 0;
    size_t count = trail_analysis_gc_cycles(c->analysis->answers, &cycles);
    for (size_t i = 0; i < count; i++) {
        const trail_gc_cycle *cycle = &cycles[i];
        int64_t begin, end;
        assist_ns += cycle->assist_ns;
        sweep_ns += cycle->sweep_ns;
        if (overview_marked(span, cycle, &begin, &end) && !trail_histogram_add(&mark, end - begin))
            c->rows->no_memory = true;
    }
    add_time(c, "gc.mark", mark.sum_ns, &mark);
    add(c, "gc.assist", DIFF_NS, true, (double)assist_ns);
    add(c, "gc.sweep", DIFF_NS, true, (double)sweep_ns);
    trail_histogram_free(&mark);
}

static void collect_whole(struct collector *c)
{
    static const struct {
        const char *path;
        int64_t window_ns;
    } mmu[] = {{"mmu.1ms", 1000000}, {"mmu.10ms", 10000000}, {"mmu.100ms", 100000000}};
    const trail_analysis_span *span = &c->analysis->span;
    trail_activity activity;
    trail_analysis_activity(c->analysis->answers, &activity);
    c->scope = DIFF_WHOLE;
    c->name = (trail_string){"", 0};
    add(c, "duration", DIFF_NS, false, (double)(span->end_ns - span->begin_ns));
    add(c, "events", DIFF_COUNT, true, (double)span->events);
    if (activity.has_heap)
        add(c, "heap.peak", DIFF_BYTES, false, (double)activity.heap_peak);
    for (size_t i = 0; i < sizeof mmu / sizeof *mmu; i++)
        add(c, mmu[i].path, DIFF_SHARE, false,
            trail_analysis_mmu(c->analysis->answers, 0, mmu[i].window_ns));
    collect_pauses(c);
    collect_gc(c);
}

void diff_rows_collect(struct diff_rows *rows, const struct analysis *analysis, int side)
{
    struct collector c = {.rows = rows, .analysis = analysis, .side = side};
    collect_whole(&c);
    collect_goroutines(&c);
    collect_tasks(&c);
    collect_regions(&c);
    collect_locks(&c);
}

/* MARK: Joining */

static int by_key(const void *a, const void *b)
{
    const struct diff_row *x = a, *y = b;
    return ORDER(x->scope, y->scope) ?: strcmp(x->name, y->name) ?: strcmp(x->path, y->path) ?:
           (int)y->of[0].there - (int)x->of[0].there;
}

static bool same_key(const struct diff_row *x, const struct diff_row *y)
{
    return x->scope == y->scope && strcmp(x->name, y->name) == 0 && strcmp(x->path, y->path) == 0;
}

bool diff_rows_join(struct diff_rows *rows)
{
    size_t kept = 0;
    if (rows->no_memory)
        return false;
    qsort(rows->rows, rows->count, sizeof *rows->rows, by_key);
    for (size_t i = 0; i < rows->count; i++) {
        struct diff_row *row = &rows->rows[i], *last = kept > 0 ? &rows->rows[kept - 1] : NULL;
        if (!last || last->of[1].there || !row->of[1].there || !same_key(last, row)) {
            rows->rows[kept++] = *row;
            continue;
        }
        last->of[1] = row->of[1];
        free(row->path);
        free(row->name);
    }
    rows->count = kept;
    return true;
}

void diff_rows_scale(struct diff_rows *rows, const double factors[2])
{
    for (size_t i = 0; i < rows->count; i++)
        for (int side = 0; side < 2 && rows->rows[i].sums; side++) {
            rows->rows[i].of[side].value *= factors[side];
            rows->rows[i].of[side].count *= factors[side];
        }
}

/* MARK: Finding */

static char folded(char c)
{
    return c == '-' || c == ' ' ? '_' : (char)tolower((unsigned char)c);
}

bool diff_same_path(const char *a, const char *b)
{
    for (; *a && folded(*a) == folded(*b); a++)
        b++;
    return *a == '\0' && *b == '\0';
}

/* MARK: Words */

static const struct {
    const char *path, *words;
} figures[] = {
    {"block", "waiting"},
    {"count", "number"},
    {"exec", "running"},
    {"gc.assist", "GC mark assists"},
    {"gc.mark", "GC marking"},
    {"gc.sweep", "GC sweeping"},
    {"heap.peak", "largest heap"},
    {"lock.hold", "locks held"},
    {"lock.wait", "waited for locks"},
    {"mmu.100ms", "MMU 100 ms"},
    {"mmu.10ms", "MMU 10 ms"},
    {"mmu.1ms", "MMU 1 ms"},
    {"region", "duration"},
    {"sched_wait", "ready"},
    {"stw", "stop-the-world pauses"},
    {"syscall_block", "syscall, {slot_lost}"},
    {"task", "duration"},
};

/* Writes the reason or kind at the end of a path as other commands show it. */
static void put_wait(const struct vocabulary *words, const char *end, char text[DIFF_FIGURE_SIZE])
{
    char reason[DIFF_FIGURE_SIZE];
    (void)snprintf(reason, sizeof reason, "%s", strcmp(end, "unknown") == 0 ? "" : end);
    for (char *at = reason; *at; at++)
        if (*at == '_')
            *at = ' ';
    trail_string shown = words_reason(words, text_from(reason));
    for (size_t i = WIRE_WAIT_NONE + 1; i < WIRE_WAITS; i++)
        if (strcmp(wire_wait_kinds[i].word, reason) == 0)
            shown = text_from(wire_wait_kinds[i].title);
    (void)snprintf(text, DIFF_FIGURE_SIZE, "waiting: %.*s", (int)shown.size, shown.data);
}

const char *diff_figure(const struct diff_row *row, const struct vocabulary *words,
                        char text[DIFF_FIGURE_SIZE])
{
    static const char region[] = "region.", block[] = "block.";
    const char *path = row->path;
    if (row->scope == DIFF_LOCKS)
        return strcmp(path, "lock.hold") == 0 ? "held" : "waited";
    if (strncmp(path, region, strlen(region)) == 0)
        path += strlen(region);
    if (strncmp(path, block, strlen(block)) == 0) {
        put_wait(words, path + strlen(block), text);
        return text;
    }
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        if (strcmp(figures[i].path, path) == 0)
            return words_text(words, figures[i].words, text, DIFF_FIGURE_SIZE);
    return path; /* is a word: total, syscall, duration, events */
}

bool diff_row_changed(const struct diff_row *row)
{
    const struct diff_measure *a = &row->of[0], *b = &row->of[1];
    return a->value != b->value || a->count != b->count || a->p50 != b->p50 || a->p99 != b->p99 ||
           a->max != b->max;
}

void diff_rows_free(struct diff_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        free(rows->rows[i].path);
        free(rows->rows[i].name);
    }
    free(rows->rows);
    *rows = (struct diff_rows){0};
}
