#include "report/tiles.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/goroutines.h"
#include "base/duration.h"
#include "base/order.h"
#include "base/share.h"
#include "base/text.h"
#include "base/utf8.h"
#include "report/overview.h"
#include "words/function_name.h"

struct maker {
    struct tiles *tiles;
    const trail_analysis *answers;
    const struct vocabulary *words;
    trail_analysis_span span;
    trail_activity activity;
    int64_t length_ns;
};

/* MARK: Parts of a tile */

static struct tile *add(const struct maker *m, const char *key, const char *title, int64_t value)
{
    struct tile *tile = &m->tiles->list[m->tiles->count++];
    *tile = (struct tile){
        .key = key, .title = title, .value = value, .goroutine = TRAIL_NONE, .task = TRAIL_NONE};
    return tile;
}

static void set_text(struct tile *tile, const char *form, ...)
    __attribute__((format(printf, 2, 3)));
static void set_note(struct tile *tile, const char *form, ...)
    __attribute__((format(printf, 2, 3)));

static void set_text(struct tile *tile, const char *form, ...)
{
    va_list list;
    va_start(list, form);
    (void)vsnprintf(tile->text, sizeof tile->text, form, list);
    va_end(list);
}

static void set_note(struct tile *tile, const char *form, ...)
{
    va_list list;
    va_start(list, form);
    (void)vsnprintf(tile->note, sizeof tile->note, form, list);
    va_end(list);
}

static void set_moment(struct tile *tile, int64_t begin_ns, int64_t end_ns, int64_t goroutine)
{
    tile->has_moment = true;
    tile->begin_ns = begin_ns;
    tile->end_ns = end_ns;
    tile->goroutine = goroutine;
}

static void set_longest(struct tile *tile, const trail_longest *longest)
{
    if (longest->ns > 0)
        set_moment(tile, longest->begin_ns, ns_behind(longest->begin_ns, longest->ns),
                   longest->goroutine);
}

/* Returns the beginning of a name of the trace, as far as a note has room. */
static trail_string shown(const struct maker *m, trail_name name)
{
    return utf8_first(trail_analysis_text(m->answers, name), 80);
}

#define TEXT(string) (int)(string).size, (string).size ? (string).data : ""

/* Returns the name of a function without the path of its package. */
static trail_string function_shown(const struct maker *m, trail_name name, char *room)
{
    trail_string text = function_name_short(trail_analysis_text(m->answers, name), room);
    for (size_t i = 0; i < text.size && !strchr("([<{ ", text.data[i]); i++) {
        if (text.data[i] == '/') {
            text = (trail_string){text.data + i + 1, text.size - i - 1};
            i = 0;
        }
    }
    return utf8_first(text, 80);
}

enum { LOCK_SIZE = 200 };

/* Writes "mutex stats_mu", or, for a lock without a name, where it is waited for:
 * "sync.(*Mutex).Lock in main.add". */
static const char *lock_title(const struct maker *m, const trail_lock *lock, char buf[LOCK_SIZE])
{
    const trail_place *places;
    char function[FUNCTION_NAME_SIZE];
    trail_string kind = words_reason(m->words, shown(m, lock->kind)), name = shown(m, lock->name);
    bool has_place = name.size == 0 && lock->waited != 0 &&
                     trail_analysis_stack(m->answers, lock->waited, &places) > 0;
    if (has_place) {
        trail_name own = places[trail_analysis_stack_own(m->answers, lock->waited)].function;
        name = function_shown(m, own, function);
    }
    (void)snprintf(buf, LOCK_SIZE, "%.*s%s%.*s", TEXT(kind),
                   name.size == 0 ? ""
                   : has_place    ? " in "
                                  : " ",
                   TEXT(name));
    return buf;
}

/* MARK: Use of the Ps */

static void add_length(const struct maker *m)
{
    struct tile *tile = add(m, "length_ns", "Length", m->length_ns);
    char events[SHOW_SIZE];
    (void)duration_text(tile->text, m->length_ns, DURATION_WORDS);
    set_note(tile, "%s event%s", show_thousands(events, m->span.events), plural_s(m->span.events));
}

static void add_goroutines(const struct maker *m)
{
    uint64_t count = m->span.goroutines;
    struct tile *tile =
        add(m, "goroutines", "{Tasks}", count > INT64_MAX ? INT64_MAX : (int64_t)count);
    char alive[SHOW_SIZE];
    (void)show_thousands(tile->text, count);
    set_note(tile, "%s alive at the end", show_thousands(alive, m->span.goroutines_alive));
    tile->command = "goroutines";
}

static void add_running(const struct maker *m)
{
    const trail_activity *a = &m->activity;
    struct tile *tile = add(m, "running_ns", "Running", a->running_ns);
    set_text(tile, "%.2f of %" PRIu64, share_of(a->running_ns, m->length_ns), a->procs);
    set_note(tile, "%s, on average", term_count(m->words, a->procs, TERM_slot));
    tile->command = "procs";
}

static void add_idle(const struct maker *m)
{
    const trail_activity *a = &m->activity;
    int64_t idle = a->idle_work_ns + a->idle_lock_ns + a->idle_nothing_ns;
    struct tile *tile = add(m, "idle_ns", "{Slots_idle}", idle);
    tile->command = "procs";
    if (a->available_ns == 0) {
        set_text(tile, "unknown");
        set_note(tile, "events are lost, and with them when %s were idle",
                 term(m->words, TERM_slots));
        return;
    }
    if (overview_lacks_switches(a, m->length_ns)) {
        set_text(tile, "unknown");
        set_note(tile, "context switches were not recorded");
        return;
    }
    (void)show_percent(tile->text, 100 * share_of(idle, a->available_ns));
    set_note(tile,
             "%.1f %% nothing to do, %.1f %% waiting for locks, %.1f %% although work was ready",
             100 * share_of(a->idle_nothing_ns, a->available_ns),
             100 * share_of(a->idle_lock_ns, a->available_ns),
             100 * share_of(a->idle_work_ns, a->available_ns));
}

/* MARK: Waits */

static void add_ready(const struct maker *m)
{
    const trail_wait_group *const *groups, *worst = NULL;
    size_t count = trail_analysis_waits(m->answers, &groups);
    struct tile *tile = add(m, "ready_ns", "Ready, not running", m->activity.runnable_ns);
    set_text(tile, "%.2f", share_of(m->activity.runnable_ns, m->length_ns));
    set_note(tile, "on average");
    tile->command = "latency";
    for (size_t i = 0; i < count; i++) {
        if (!worst || groups[i]->ready_longest.ns > worst->ready_longest.ns)
            worst = groups[i];
    }
    if (!worst || worst->ready_longest.ns <= 0)
        return;
    char function[FUNCTION_NAME_SIZE];
    trail_string name = function_shown(m, worst->name, function);
    tile = add(m, "longest_ready_ns", "Longest ready", worst->ready_longest.ns);
    (void)duration_text(tile->text, worst->ready_longest.ns, DURATION_WORDS);
    set_note(tile, "%s %" PRId64 "%s%.*s%s", term(m->words, TERM_task),
             worst->ready_longest.goroutine, name.size > 0 ? " (" : "", TEXT(name),
             name.size > 0 ? ")" : "");
    tile->command = "latency";
    set_longest(tile, &worst->ready_longest);
}

/* All waits for one reason, without those of the runtime's own goroutines. */
struct reason_sum {
    trail_string reason;
    int64_t ns;
    trail_longest longest;
};

static int by_sum(const void *a, const void *b)
{
    const struct reason_sum *x = a, *y = b;
    return ORDER(y->ns, x->ns);
}

/* Sums waits by reason as shown; returns the number of reasons. */
static size_t sum_reasons(const struct maker *m, const struct overview_wait *waits, size_t count,
                          struct reason_sum *sums)
{
    size_t reasons = 0;
    for (size_t i = 0; i < count && !waits[i].system && !waits[i].idle; i++) {
        const trail_wait *wait = waits[i].wait;
        trail_string reason = words_reason(m->words, trail_analysis_text(m->answers, wait->reason));
        size_t at = 0;
        while (at < reasons && !text_equal(sums[at].reason, reason))
            at++;
        if (at == reasons)
            sums[reasons++] = (struct reason_sum){.reason = reason};
        ns_add(&sums[at].ns, wait->spread.sum_ns);
        if (wait->longest.ns > sums[at].longest.ns)
            sums[at].longest = wait->longest;
    }
    if (reasons > 0)
        qsort(sums, reasons, sizeof *sums, by_sum);
    return reasons;
}

/* Waits for work of the program's own threads, which say nothing about what can be improved. */
static int64_t idle_waits(const struct overview_wait *waits, size_t count)
{
    int64_t sum = 0;
    for (size_t i = 0; i < count && !waits[i].system; i++)
        if (waits[i].idle)
            ns_add(&sum, waits[i].wait->spread.sum_ns);
    return sum;
}

static void add_waiting(const struct maker *m)
{
    enum { SHOWN = 3 };
    size_t count = 0, reasons;
    struct overview_wait *waits = overview_waits(m->answers, false, &count);
    struct reason_sum *sums = calloc(count + 1, sizeof *sums);
    int64_t sum = 0;
    if (!sums)
        overview_lacks();
    reasons = waits && sums ? sum_reasons(m, waits, count, sums) : 0;
    for (size_t i = 0; i < reasons; i++)
        ns_add(&sum, sums[i].ns);
    if (sum > 0) {
        struct tile *tile = add(m, "waiting_ns", "Waited", sum);
        int64_t idle = idle_waits(waits, count);
        size_t used = 0;
        char text[SHOW_SIZE];
        (void)duration_text(tile->text, sum, DURATION_WORDS);
        for (size_t i = 0; i < reasons && i < SHOWN && used < sizeof tile->note; i++) {
            trail_string reason = utf8_first(sums[i].reason, 60);
            used += (size_t)snprintf(tile->note + used, sizeof tile->note - used, "%s%.*s %s",
                                     i > 0 ? ", " : "", TEXT(reason),
                                     duration_text(text, sums[i].ns, DURATION_WORDS));
        }
        if (idle > 0 && used < sizeof tile->note)
            (void)snprintf(tile->note + used, sizeof tile->note - used,
                           "; without %s of waits for work",
                           duration_text(text, idle, DURATION_WORDS));
        tile->command = "latency";
        set_longest(tile, &sums[0].longest);
    }
    free(sums);
    free(waits);
}

/* MARK: Locks and tasks */

static void add_lock(const struct maker *m)
{
    const trail_lock *const *locks, *lock = NULL;
    size_t count = trail_analysis_locks(m->answers, &locks);
    char longest[SHOW_SIZE], title[LOCK_SIZE];
    for (size_t i = 0; i < count && !lock; i++)
        lock = locks[i]->can_be_held ? locks[i] : NULL;
    if (!lock || lock->wait.sum_ns <= 0)
        return;
    struct tile *tile = add(m, "lock_ns", "Most waited-for lock", lock->wait.sum_ns);
    (void)duration_text(tile->text, lock->wait.sum_ns, DURATION_WORDS);
    set_note(tile, "%s: %" PRIu64 " wait%s, at most %s", lock_title(m, lock, title),
             lock->wait.count, plural_s(lock->wait.count),
             duration_text(longest, lock->longest.ns, DURATION_WORDS));
    tile->command = "locks";
    set_longest(tile, &lock->longest);
}

static void add_open(const struct maker *m)
{
    const trail_lock *const *locks, *worst = NULL;
    size_t count = trail_analysis_locks(m->answers, &locks);
    uint64_t open = 0;
    char longest[SHOW_SIZE], title[LOCK_SIZE];
    for (size_t i = 0; i < count; i++) {
        open += locks[i]->open;
        if (locks[i]->open > 0 && (!worst || locks[i]->longest_open.ns > worst->longest_open.ns))
            worst = locks[i];
    }
    if (!worst)
        return;
    struct tile *tile = add(m, "open_waits", "Open waits", (int64_t)open);
    (void)duration_text(longest, worst->longest_open.ns, DURATION_WORDS);
    set_text(tile, "%" PRIu64 ", up to %s", open, longest);
    set_note(tile, "at the end; the longest for %s: %s", longest, lock_title(m, worst, title));
    tile->command = "locks";
    set_longest(tile, &worst->longest_open);
}

static void add_task(const struct maker *m)
{
    const trail_task_kind *const *kinds, *worst = NULL;
    size_t count = trail_analysis_task_kinds(m->answers, &kinds);
    char p50[SHOW_SIZE];
    for (size_t i = 0; i < count; i++) {
        if (!worst || kinds[i]->longest.ns > worst->longest.ns)
            worst = kinds[i];
    }
    if (!worst || worst->longest.ns <= 0)
        return;
    trail_string name = shown(m, worst->name);
    struct tile *tile = add(m, "slowest_task_ns", "Slowest task", worst->longest.ns);
    (void)duration_text(tile->text, worst->longest.ns, DURATION_WORDS);
    set_note(tile, "%.*s%stask %" PRId64 "; the median of %" PRIu64 " is %s%s", TEXT(name),
             name.size > 0 ? ", " : "", worst->longest.goroutine, worst->spread.count,
             overview_about(&worst->spread),
             duration_text(p50, trail_histogram_quantile(&worst->spread, 0.5), DURATION_WORDS));
    tile->command = "tasks";
    set_longest(tile, &worst->longest);
    tile->task = worst->longest.goroutine;
    tile->goroutine = TRAIL_NONE;
}

/* MARK: Memory */

static void add_heap(const struct maker *m)
{
    const trail_activity *a = &m->activity;
    char first[SHOW_SIZE], last[SHOW_SIZE];
    if (!a->has_heap)
        return;
    struct tile *tile = add(m, "heap_peak_bytes", "Heap", (int64_t)a->heap_peak);
    (void)show_bytes(tile->text, a->heap_peak);
    set_note(tile, "at most; %s at first, %s at the end", show_bytes(first, a->heap_first),
             show_bytes(last, a->heap_last));
    tile->command = "gc";
    set_moment(tile, a->heap_peak_ns, a->heap_peak_ns, TRAIL_NONE);
}

static void add_gc(const struct maker *m)
{
    const trail_gc_cycle *cycles;
    size_t count = trail_analysis_gc_cycles(m->answers, &cycles), pauses;
    int64_t sum_ns;
    const trail_gc_pause *longest = overview_pauses(m->answers, &pauses, &sum_ns);
    char text[SHOW_SIZE];
    if (count == 0)
        return;
    struct tile *tile = add(m, "gc_cycles", "Garbage collection", (int64_t)count);
    (void)show_percent(tile->text, 100 * (1 - trail_analysis_mmu(m->answers, 0, m->length_ns)));
    set_note(tile, "of the %s' time, in %zu cycle%s; longest pause %s", term(m->words, TERM_slots),
             count, plural_s(count),
             longest ? duration_text(text, pause_length(longest), DURATION_WORDS) : "-");
    tile->command = "mmu";
    if (longest)
        set_moment(tile, longest->begin_ns, longest->end_ns, longest->goroutine);
}

void tiles_make(struct tiles *tiles, const trail_analysis *answers, const struct vocabulary *words)
{
    struct maker m = {.tiles = tiles, .answers = answers, .words = words};
    tiles->count = 0;
    trail_analysis_get_span(answers, &m.span);
    trail_analysis_activity(answers, &m.activity);
    m.length_ns = ns_between(m.span.begin_ns, m.span.end_ns);
    add_length(&m);
    add_goroutines(&m);
    add_running(&m);
    add_idle(&m);
    add_ready(&m);
    add_waiting(&m);
    add_lock(&m);
    add_open(&m);
    add_task(&m);
    add_heap(&m);
    add_gc(&m);
}
