/*
 * Findings: problems that a trace shows, as sentences with figures and the place. One function per
 * finding; each has a threshold, because a list that reports normal behaviour is not read twice.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/gc.h"
#include "analyze/misuses.h"
#include "analyze/part.h"
#include "analyze/regions.h"
#include "analyze/stuck.h"
#include "analyze/utilisation.h"
#include "analyze/waits.h"
#include "base/duration.h"
#include "base/grow.h"
#include "base/share.h"
#include "base/text.h"
#include "base/whole.h"
#include "words/function_name.h"
#include "words/place.h"
#include "words/vocabulary.h"

/* Thresholds, as shares of the time. */
#define LOCK_SHARE   0.2
#define IDLE_SHARE   0.05
#define GC_SHARE     0.25
#define LONG_IDLE    INT64_C(10000000)
#define PAUSE_SHARE  0.05
#define LONG_PAUSE   INT64_C(10000000)
#define ODD_PAUSE    INT64_C(1000000)
#define MOST_LOCKS   3
#define LOCK_WAITS   10
#define FUTILE_LEAST 100
#define LEAK_LEAST   20
#define OPEN_LEAST   INT64_C(100000000) /* a wait that has not ended */
#define MOST_OPEN    3
#define CIRCLE_LEAST                                                                               \
    INT64_C(1000000) /* each wait of a deadlock: one with a time limit may still end */
#define SLOW_LEAST  INT64_C(10000000)
#define SLOW_TIMES  10 /* the slowest compared with the median */
#define SLOW_COUNT  5
#define READY_SHARE 0.2
#define READY_LEAST INT64_C(10000000)
/* A flaw of the trace rather than lost time: behind what costs more than 1 % of it. */
#define MISUSE_WEIGHT 0.01

/* Answers of other parts, which own them; NULL: not requested. */
struct findings {
    struct trail_analysis *analysis;
    const struct activity *activity;
    const struct waits *waits; /* with activity */
    const struct gc *gc;
    const struct utilisations *utilisation;
    const struct stuck *stuck;
    const struct regions *regions;
    const struct misuses *misuses;
    struct vocabulary vocabulary;
    trail_finding *rows;
    size_t count, capacity;
    struct arena texts;
    trail_finding none; /* takes what is said of a finding for which there is no memory */
    bool failed;        /* out of memory */
};

/* MARK: Words */

struct words {
    char text[DURATION_SIZE];
};

static struct words duration(int64_t ns)
{
    struct words words = {0};
    (void)duration_text(words.text, ns, DURATION_WORDS);
    return words;
}

static trail_string text_of(const struct findings *findings, trail_name name)
{
    static const trail_string unknown = {"(unknown)", 9};
    trail_string text = names_text(&findings->analysis->names, name);
    return text.size > 0 ? text : unknown;
}

static const char *word(const struct findings *findings, enum term name)
{
    return term(&findings->vocabulary, name);
}

static int64_t length_of(const struct findings *findings)
{
    return ns_between(findings->analysis->span.begin_ns, findings->analysis->span.end_ns);
}

/* Adds a finding at `moment`, or without one if that is NULL. */
__attribute__((format(printf, 5, 6))) static void say(struct findings *findings, const char *kind,
                                                      double weight, const trail_longest *moment,
                                                      const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start is right above. */
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    char *copy = arena_copy(&findings->texts, text, strlen(text) + 1);
    if (!copy || !GROW(findings->rows, findings->capacity, findings->count + 1)) {
        findings->failed = true;
        return;
    }
    findings->rows[findings->count++] = (trail_finding){
        .kind = kind,
        .text = copy,
        .weight = weight,
        .has_moment = moment != NULL,
        .begin_ns = moment ? moment->begin_ns : 0,
        .end_ns = moment ? (int64_t)((uint64_t)moment->begin_ns + (uint64_t)moment->ns) : 0,
        .goroutine = moment ? moment->goroutine : TRAIL_NONE,
        .task = TRAIL_NONE,
    };
}

/* The finding that was added last. */
static trail_finding *last_of(struct findings *findings)
{
    return findings->count > 0 && !findings->failed ? &findings->rows[findings->count - 1]
                                                    : &findings->none;
}

/* Returns the time in which goroutines had work: they ran, or were ready to. */
static int64_t time_with_work(const trail_activity *activity)
{
    int64_t sum = activity->running_ns;
    ns_add(&sum, activity->runnable_ns);
    return sum;
}

/* MARK: Locks and conditions */

static const struct place_waker *most_frequent(const struct place *place)
{
    const struct place_waker *most = place->wakers;
    for (size_t i = 1; i < PLACE_WAKERS; i++)
        if (place->wakers[i].count > most->count)
            most = &place->wakers[i];
    return most;
}

/* Sets the locks with the longest serial time, longest first. */
static void worst_locks(const struct waits *waits, struct place **worst)
{
    for (size_t i = 0; i < waits->place_count; i++) {
        struct place *place = waits->all[i];
        for (size_t n = 0; n < MOST_LOCKS && place && place->kind == PLACE_LOCK; n++) {
            struct place *other = worst[n];
            if (other && other->serial_ns >= place->serial_ns)
                continue;
            worst[n] = place;
            place = other;
        }
    }
}

/* "mutex stats_mu", or `nameless` where the trace has no names of locks. */
static trail_string lock_of(const struct findings *findings, const struct place *place,
                            const char *nameless)
{
    trail_string name = names_text(&findings->analysis->names, place->lock);
    return name.size > 0 ? name : text_from(nameless);
}

/*
 * Much of the time in which goroutines had work they waited for one lock, though others worked
 * meanwhile: then it does not serialise, but costs.
 */
static void lock_contention(struct findings *findings)
{
    const struct waits *waits = findings->waits;
    const struct place *worst = NULL;
    trail_activity activity;
    int64_t busy;
    trail_analysis_activity(findings->analysis, &activity);
    busy = time_with_work(&activity);
    for (size_t i = 0; i < waits->place_count; i++) {
        const struct place *place = waits->all[i];
        if (place->kind != PLACE_LOCK)
            continue;
        ns_add(&busy, place->ns);
        worst = worst && worst->ns >= place->ns ? worst : place;
    }
    if (!worst || worst->waits < LOCK_WAITS || share_of(worst->ns, busy) < LOCK_SHARE ||
        share_of(worst->serial_ns, length_of(findings)) >= LOCK_SHARE ||
        share_of(worst->ns, length_of(findings)) < LOCK_SHARE)
        return;
    trail_string at = text_of(findings, worst->name);
    trail_string by = text_of(findings, most_frequent(worst)->name);
    trail_string lock = lock_of(findings, worst, "a lock");
    say(findings, "lock-contention", share_of(worst->ns, busy) / 2, &worst->longest,
        "lock contention: %.0f %% of the time in which %s had work they waited for %.*s at %.*s: "
        "%" PRIu64 " waits, %s in all, the longest %s; released mostly at %.*s: hold it for a "
        "shorter time, or divide what it protects",
        100 * share_of(worst->ns, busy), word(findings, TERM_tasks), (int)lock.size, lock.data,
        (int)at.size, at.data, worst->waits, duration(worst->ns).text,
        duration(worst->longest.ns).text, (int)by.size, by.data);
}

/* There was a waiter for the lock, and at most one goroutine worked meanwhile. */
static void lock_serialises(struct findings *findings)
{
    const struct waits *waits = findings->waits;
    struct place *worst[MOST_LOCKS] = {0};
    worst_locks(waits, worst);
    for (size_t i = 0; i < MOST_LOCKS && worst[i]; i++) {
        const struct place *place = worst[i];
        double share = share_of(place->serial_ns, length_of(findings));
        if (place->waits < LOCK_WAITS || share < LOCK_SHARE)
            continue;
        trail_string at = text_of(findings, place->name);
        trail_string by = text_of(findings, most_frequent(place)->name);
        trail_string lock = lock_of(findings, place, "it");
        say(findings, "lock-serialises", share, &place->longest,
            "a lock serialises the program: during %.0f %% of the time a %s waited for %.*s at "
            "%.*s while at most one worked; %" PRIu64
            " wait%s, %s in all, the longest %s; released mostly at %.*s: hold it for a shorter "
            "time, or divide what it protects",
            100 * share, word(findings, TERM_task), (int)lock.size, lock.data, (int)at.size,
            at.data, place->waits, plural_s(place->waits), duration(place->ns).text,
            duration(place->longest.ns).text, (int)by.size, by.data);
    }
}

/* Woken, no work done, waiting again at the same place. */
static void futile_wakeups(struct findings *findings)
{
    const struct waits *waits = findings->waits;
    for (size_t i = 0; i < waits->place_count; i++) {
        const struct place *place = waits->all[i];
        if (place->kind != PLACE_CONDITION || place->futile < FUTILE_LEAST ||
            place->futile < place->waits / 2)
            continue;
        trail_string at = text_of(findings, place->name);
        say(findings, "futile-wakeups", (double)place->futile / (double)(place->waits + 1) / 10,
            NULL,
            "wake-ups without effect: %" PRIu64 " of %" PRIu64
            " times a %s that was woken at %.*s woke no other and waited there again within "
            "10 us; wake one instead of all, or only when the condition holds",
            place->futile, place->waits, word(findings, TERM_task), (int)at.size, at.data);
    }
}

/* MARK: Waits that have not ended */

/* "thread forward (2)" */
static void put_task(const struct findings *findings, char *text, size_t size, trail_name name,
                     int64_t goroutine)
{
    char buf[FUNCTION_NAME_SIZE];
    trail_string shown = function_name_short(text_of(findings, name), buf);
    (void)snprintf(text, size, "%s %.*s (%" PRId64 ")", word(findings, TERM_task),
                   (int)(shown.size < 100 ? shown.size : 100), shown.data, goroutine);
}

/* "mutex a_mu" */
static void put_lock(const struct findings *findings, char *text, size_t size,
                     const struct stuck_wait *wait)
{
    trail_string kind = text_of(findings, wait->kind);
    trail_string object = names_text(&findings->analysis->names, wait->object);
    (void)snprintf(text, size, "%.*s%s%.*s", (int)(kind.size < 40 ? kind.size : 40), kind.data,
                   object.size ? " " : "", (int)(object.size < 150 ? object.size : 150),
                   object.size ? object.data : "");
}

/* "mutex a_mu", or "a lock at main.work (main.go:42)" where only the place is known. */
static void put_wanted(const struct findings *findings, char *text, size_t size,
                       const struct stuck_wait *wait)
{
    trail_string place = names_text(&findings->analysis->names, wait->place);
    if (wait->kind == 0)
        (void)snprintf(text, size, "a lock at %.*s", (int)(place.size < 200 ? place.size : 200),
                       place.data);
    else
        put_lock(findings, text, size, wait);
}

enum { NAME_SIZE = 256 };

/* The wait in the cycle whose lock the goroutine of `wait` holds. */
static const struct stuck_wait *waits_for(const struct stuck *stuck, const struct stuck_wait *wait)
{
    const struct stuck_wait *other = wait;
    while (&stuck->waits[other->next] != wait)
        other = &stuck->waits[other->next];
    return other;
}

/* "thread a (2) holds mutex a_mu and waits for mutex b_mu; ..." */
static void put_circle(const struct findings *findings, const struct stuck_wait *first, char *text,
                       size_t size)
{
    const struct stuck *stuck = findings->stuck;
    const struct stuck_wait *wait = first;
    size_t used = 0;
    do {
        char task[NAME_SIZE], has[NAME_SIZE], wants[NAME_SIZE];
        put_task(findings, task, sizeof task, wait->name, wait->goroutine);
        put_lock(findings, has, sizeof has, waits_for(stuck, wait));
        put_lock(findings, wants, sizeof wants, wait);
        int added = snprintf(text + used, size - used, "%s%s holds %s and waits for %s",
                             wait == first ? "" : "; ", task, has,
                             wait->next == (size_t)(wait - stuck->waits) ? "it" : wants);
        used += added > 0 && (size_t)added < size - used ? (size_t)added : 0;
        wait = &stuck->waits[wait->next];
    } while (wait != first && size - used > (size_t)3 * NAME_SIZE);
    if (wait != first)
        (void)snprintf(text + used, size - used, "; ...");
}

static void deadlock(struct findings *findings)
{
    const struct stuck *stuck = findings->stuck;
    for (size_t circle = 1; circle <= stuck->circles; circle++) {
        const struct stuck_wait *first = NULL;
        char text[4 * NAME_SIZE];
        int64_t ns = INT64_MAX;
        for (size_t i = 0; i < stuck->count; i++) {
            const struct stuck_wait *wait = &stuck->waits[i];
            if (wait->circle != circle)
                continue;
            first = first ? first : wait;
            ns = wait->ns < ns ? wait->ns : ns;
        }
        if (!first || ns < CIRCLE_LEAST)
            continue;
        trail_longest moment = {first->ns, first->begin_ns, first->goroutine};
        put_circle(findings, first, text, sizeof text);
        bool by_itself = &stuck->waits[first->next] == first;
        say(findings, "deadlock", 2, &moment, "deadlock for %s when the trace ended: %s; %s",
            duration(ns).text, text,
            by_itself ? "release the lock before it is taken again"
                      : "take locks in the same order everywhere");
    }
}

/* Longest first. */
static int by_length(const void *a, const void *b)
{
    const struct stuck_wait *x = *(const struct stuck_wait *const *)a;
    const struct stuck_wait *y = *(const struct stuck_wait *const *)b;
    if (x->ns != y->ns)
        return x->ns > y->ns ? -1 : 1;
    return x->goroutine < y->goroutine ? -1 : 1;
}

static void say_open(struct findings *findings, const struct stuck_wait *wait)
{
    char task[NAME_SIZE], lock[NAME_SIZE], holder[NAME_SIZE];
    trail_longest moment = {wait->ns, wait->begin_ns, wait->goroutine};
    put_task(findings, task, sizeof task, wait->name, wait->goroutine);
    put_wanted(findings, lock, sizeof lock, wait);
    put_task(findings, holder, sizeof holder, wait->holder_name, wait->holder);
    say(findings, "open-wait", 1 + share_of(wait->ns, length_of(findings)), &moment,
        "%s has waited for %s for %s when the trace ended%s%s", task, lock, duration(wait->ns).text,
        wait->holder == TRAIL_NONE ? "; its holder is not recorded" : "; it is held by ",
        wait->holder == TRAIL_NONE ? "" : holder);
}

/*
 * Several goroutines have waited for locks for long at several places, and none of these waits
 * ended meanwhile: without holders that is all that can be known of a deadlock.
 */
static void maybe_deadlock(struct findings *findings)
{
    const struct stuck *stuck = findings->stuck;
    const struct stuck_wait *longest = NULL;
    int64_t shortest = INT64_MAX;
    size_t count = 0;
    bool several = false;
    for (size_t i = 0; i < stuck->count; i++) {
        const struct stuck_wait *wait = &stuck->waits[i];
        if (wait->kind != 0 || !wait->unmoved || wait->ns < OPEN_LEAST)
            continue;
        count++;
        several = several || (longest && longest->place != wait->place);
        shortest = wait->ns < shortest ? wait->ns : shortest;
        longest = longest && longest->ns >= wait->ns ? longest : wait;
    }
    if (!several)
        return;
    trail_longest moment = {longest->ns, longest->begin_ns, longest->goroutine};
    say(findings, "maybe-deadlock", 2, &moment,
        "possibly a deadlock: when the trace ended %zu %s had waited for locks at several places, "
        "%s to %s, and no wait there had ended meanwhile; the trace does not record which locks "
        "they hold",
        count, word(findings, TERM_tasks), duration(shortest).text, duration(longest->ns).text);
}

/* Waits of a deadlock are reported with it. */
static void open_waits(struct findings *findings)
{
    const struct stuck *stuck = findings->stuck;
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers. */
    const struct stuck_wait **longest = calloc(stuck->count + 1, sizeof *longest);
    size_t count = 0;
    if (!longest) {
        findings->failed = true;
        return;
    }
    for (size_t i = 0; i < stuck->count; i++)
        if (!stuck->waits[i].circle && stuck->waits[i].ns >= OPEN_LEAST)
            longest[count++] = &stuck->waits[i];
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers. */
    qsort((void *)longest, count, sizeof *longest, by_length);
    for (size_t i = 0; i < count && i < MOST_OPEN; i++)
        say_open(findings, longest[i]);
    free((void *)longest);
}

/* MARK: Tasks */

static void slow_task(struct findings *findings)
{
    const trail_task_kind *const *kinds;
    size_t count = trail_analysis_task_kinds(findings->analysis, &kinds);
    for (size_t i = 0; i < count; i++) {
        int64_t median = trail_histogram_quantile(&kinds[i]->spread, 0.5);
        int64_t slowest = kinds[i]->longest.ns;
        trail_longest moment = kinds[i]->longest;
        if (kinds[i]->spread.count < SLOW_COUNT || slowest < SLOW_LEAST ||
            slowest / SLOW_TIMES < median)
            continue;
        trail_string name = text_of(findings, kinds[i]->name);
        moment.goroutine = TRAIL_NONE;
        say(findings, "slow-task", share_of(slowest, length_of(findings)), &moment,
            "the slowest task %.*s took %s, the median of %" PRIu64
            " took %s: it waited for something that the others did not",
            (int)(name.size < 100 ? name.size : 100), name.data, duration(slowest).text,
            kinds[i]->spread.count, duration(median).text);
        last_of(findings)->task = kinds[i]->longest.goroutine;
    }
}

static void slow_region(struct findings *findings)
{
    const struct regions *regions = findings->regions;
    for (size_t i = 0; regions && i < regions->groups.count; i++) {
        const trail_group *group = &regions->groups.rows[i];
        const trail_histogram *total = group->columns ? &group->columns[TRAIL_COLUMN_TOTAL] : NULL;
        int64_t median = total ? trail_histogram_quantile(total, 0.5) : 0;
        if (!total || group->name == 0 || total->count < SLOW_COUNT || total->max_ns < SLOW_LEAST ||
            total->max_ns / SLOW_TIMES < median)
            continue;
        trail_string name = text_of(findings, group->name);
        int size = (int)(name.size < 100 ? name.size : 100);
        say(findings, "slow-region", share_of(total->max_ns, length_of(findings)), NULL,
            "the slowest region %.*s took %s, the median of %" PRIu64 " took %s", size, name.data,
            duration(total->max_ns).text, total->count, duration(median).text);
        last_of(findings)->region = group->name;
    }
}

/* MARK: Ready without running */

static void ready_for_long(struct findings *findings)
{
    const struct waits *waits = findings->waits;
    trail_activity activity;
    trail_longest longest = {0};
    trail_analysis_activity(findings->analysis, &activity);
    double share = share_of(activity.runnable_ns, time_with_work(&activity));
    for (size_t i = 0; i < waits->count; i++)
        if (waits->items[i]->row.ready_longest.ns > longest.ns)
            longest = waits->items[i]->row.ready_longest;
    if (share < READY_SHARE || longest.ns < READY_LEAST ||
        share_of(activity.runnable_ns, length_of(findings)) < READY_SHARE)
        return;
    say(findings, "ready", share / 2, &longest,
        "%s were ready but not running for %.0f %% of the time in which they had work, the longest "
        "%s: more of them want to run than there are CPUs for the program",
        word(findings, TERM_tasks), 100 * share, duration(longest.ns).text);
}

/* MARK: Ps */

static void one_runs_alone(struct findings *findings)
{
    const struct stretch_sum *sum = &findings->activity->stretches[STRETCH_LONE];
    double share = share_of(sum->ns, length_of(findings));
    if (share < IDLE_SHARE && sum->longest.ns < LONG_IDLE)
        return;
    say(findings, "one-runs-alone", share, &sum->longest,
        "one %s ran alone although others were ready and %s idle: %" PRIu64
        " stretch%s of 1 ms or more, %s in all (%.0f %% of the time), the longest %s, of %s "
        "%" PRId64 "; the others were woken late, or other programs had the CPUs",
        word(findings, TERM_task), word(findings, TERM_slots), sum->count,
        sum->count == 1 ? "" : "es", duration(sum->ns).text, 100 * share,
        duration(sum->longest.ns).text, word(findings, TERM_task), sum->longest.goroutine);
}

static void ready_while_idle(struct findings *findings)
{
    const struct stretch_sum *sum = &findings->activity->stretches[STRETCH_QUEUE];
    double share = share_of(sum->ns, length_of(findings));
    trail_longest moment = sum->longest;
    if (share < IDLE_SHARE && sum->longest.ns < LONG_IDLE)
        return;
    moment.goroutine = TRAIL_NONE;
    say(findings, "ready-while-idle", share, &moment,
        "%s were ready while %s were idle: %" PRIu64
        " stretch%s of 1 ms or more, %s in all (%.0f %% of the time), the longest %s; the machine "
        "had no CPU for the program's threads%s",
        word(findings, TERM_tasks), word(findings, TERM_slots), sum->count,
        sum->count == 1 ? "" : "es", duration(sum->ns).text, 100 * share,
        duration(sum->longest.ns).text, word(findings, TERM_not_woken));
}

static void keeps_p(struct findings *findings)
{
    const struct waits *waits = findings->waits;
    for (size_t i = 0; i < waits->count; i++) {
        const struct wait_group *group = waits->items[i];
        if (group->held == 0)
            continue;
        trail_string name = text_of(findings, group->row.name);
        say(findings, "keeps-p", share_of(group->held_longest.ns, length_of(findings)),
            &group->held_longest,
            "%s of %.*s kept their %s for 20 ms or more while others were ready and no %s "
            "was idle: %" PRIu64 " time%s, the longest %s; divide the work, or let it yield",
            word(findings, TERM_tasks), (int)name.size, name.data, word(findings, TERM_slot),
            word(findings, TERM_slot), group->held, plural_s(group->held),
            duration(group->held_longest.ns).text);
    }
}

/* MARK: Annotations */

static void misused(struct findings *findings)
{
    const struct misuses *misuses = findings->misuses;
    struct stack_row stack = stacks_get(&findings->analysis->stacks, misuses->stack);
    char place[PLACE_TEXT_SIZE] = "a place without a stack", others[64] = "";
    if (misuses->count == 0)
        return;
    if (stack.count > 0) {
        const trail_place *own = &stack.places[stack.own];
        const struct names *names = &findings->analysis->names;
        (void)place_of_frame(names_text(names, own->function), names_text(names, own->file),
                             own->line, PLACE_PARENTHESES, place, sizeof place);
    }
    if (misuses->count > 1)
        (void)snprintf(others, sizeof others, " (the first of %" PRIu64 " such events)",
                       misuses->count);
    trail_string name = names_text(&findings->analysis->names, misuses->name);
    say(findings, "misused-annotation", MISUSE_WEIGHT, &misuses->first,
        "%s '%.*s' at %s %s%s; Go's tools stop reading the trace there", misuses->what,
        (int)name.size, name.data, place, misuses->rule, others);
}

/* MARK: Stop-the-world pauses and garbage collection */

static void late_for_stop(struct findings *findings)
{
    const struct late_stop *late = &findings->activity->late;
    if (late->count == 0)
        return;
    say(findings, "delays-stop", share_of(late->longest.ns, length_of(findings)), &late->longest,
        "stop-the-world pauses were delayed %" PRIu64
        " time%s by a %s that ran on for 1 ms or more; the longest was %s %" PRId64
        ", for %s of a pause of %s; a loop without calls delays them",
        late->count, plural_s(late->count), word(findings, TERM_task), word(findings, TERM_task),
        late->longest.goroutine, duration(late->longest.ns).text, duration(late->pause_ns).text);
}

static int64_t pause_ns(const trail_gc_pause *pause)
{
    return ns_between(pause->begin_ns, pause->end_ns);
}

static void long_pause(struct findings *findings)
{
    const struct gc *gc = findings->gc;
    if (!gc)
        return;
    /* The array may be allocated even if no pause is in the window. */
    const trail_gc_pause *longest = gc->pause_count > 0 ? gc->pauses : NULL;
    trail_histogram spread = {0};
    for (size_t i = 0; i < gc->pause_count; i++) {
        if (!trail_histogram_add(&spread, pause_ns(&gc->pauses[i])))
            findings->failed = true;
        if (pause_ns(&gc->pauses[i]) > pause_ns(longest))
            longest = &gc->pauses[i];
    }
    int64_t median = trail_histogram_quantile(&spread, 0.5);
    bool odd = gc->pause_count >= 5 && spread.max_ns >= ODD_PAUSE && spread.max_ns / 10 >= median;
    trail_histogram_free(&spread);
    if (!longest || (!odd && pause_ns(longest) < LONG_PAUSE))
        return;
    trail_string name = text_of(findings, longest->name);
    trail_longest moment = {pause_ns(longest), longest->begin_ns, longest->goroutine};
    say(findings, "long-pause", share_of(moment.ns, length_of(findings)), &moment,
        "a stop-the-world pause took %s: %.*s; the median of %zu pause%s is %s",
        duration(moment.ns).text, (int)name.size, name.data, gc->pause_count,
        plural_s(gc->pause_count), duration(median).text);
}

static void pauses_take_much(struct findings *findings)
{
    const struct gc *gc = findings->gc;
    int64_t sum = 0;
    trail_longest longest = {0};
    if (!gc)
        return;
    for (size_t i = 0; i < gc->pause_count; i++) {
        const trail_gc_pause *pause = &gc->pauses[i];
        ns_add(&sum, pause_ns(pause));
        longest_note(&longest, pause_ns(pause), pause->begin_ns, pause->goroutine);
    }
    double share = share_of(sum, length_of(findings));
    if (share < PAUSE_SHARE)
        return;
    say(findings, "pause-share", share, &longest,
        "stop-the-world pauses took %.0f %% of the time: %zu pause%s, %s in all, the longest %s",
        100 * share, gc->pause_count, plural_s(gc->pause_count), duration(sum).text,
        duration(longest.ns).text);
}

static void gc_takes_much(struct findings *findings)
{
    const struct gc *gc = findings->gc;
    if (!findings->utilisation || !findings->utilisation->curves[0].flags || !gc ||
        gc->cycle_count == 0 || length_of(findings) <= 0)
        return;
    double share = 1 - utilisation_least(&findings->utilisation->curves[0], length_of(findings));
    if (share < GC_SHARE)
        return;
    say(findings, "gc-share", share, NULL,
        "garbage collection took %.0f %% of the %s' time, in %zu cycle%s, one every %s: allocate "
        "less, or let the heap grow (GOGC, GOMEMLIMIT)",
        100 * share, word(findings, TERM_slots), gc->cycle_count, plural_s(gc->cycle_count),
        duration(length_of(findings) / (int64_t)gc->cycle_count).text);
}

/* MARK: Leaks */

/* Created throughout, hardly any ended, and most blocked for long. */
static void leaks(struct findings *findings)
{
    const struct waits *waits = findings->waits;
    for (size_t i = 0; i < waits->count; i++) {
        const struct wait_group *group = waits->items[i];
        uint64_t late = group->stuck - group->stuck_early;
        if (group->stuck < LEAK_LEAST || group->row.ended * 10 > group->row.created ||
            group->stuck_early * 4 < group->stuck || late * 8 < group->stuck)
            continue;
        trail_string name = text_of(findings, group->row.name);
        trail_longest moment = {1, group->stuck_since_ns, group->stuck_goroutine};
        say(findings, "leak", 0.5, &moment,
            "%s of %.*s look leaked: %" PRIu64 " were created all along, %" PRIu64
            " ended, %" PRIu64 " have been blocked for a tenth of the time or longer; the first is "
            "%s %" PRId64,
            word(findings, TERM_tasks), (int)name.size, name.data, group->row.created,
            group->row.ended, group->stuck, word(findings, TERM_task), group->stuck_goroutine);
    }
}

/* MARK: All */

static void (*const all[])(struct findings *) = {
    deadlock,         maybe_deadlock,  open_waits,      slow_task,      slow_region,
    ready_for_long,   lock_serialises, lock_contention, futile_wakeups, one_runs_alone,
    ready_while_idle, keeps_p,         late_for_stop,   long_pause,     pauses_take_much,
    gc_takes_much,    leaks,           misused,
};

static int by_weight(const void *a, const void *b)
{
    const trail_finding *x = a, *y = b;
    if (x->weight != y->weight)
        return x->weight < y->weight ? 1 : -1;
    return strcmp(x->text, y->text);
}

static bool init(void *part, struct trail_analysis *analysis, void *const *needed)
{
    struct findings *findings = part;
    findings->analysis = analysis;
    findings->activity = needed[0];
    findings->waits = needed[1];
    findings->gc = needed[2];
    findings->utilisation = needed[3];
    findings->stuck = needed[4];
    findings->regions = needed[5];
    findings->misuses = needed[6];
    return true;
}

static bool finish(void *part, int64_t ns)
{
    struct findings *findings = part;
    (void)ns;
    vocabulary_init(&findings->vocabulary, trail_reader_maker(findings->analysis->reader),
                    findings->analysis->options.words);
    for (size_t i = 0; findings->activity && i < sizeof all / sizeof *all; i++)
        all[i](findings);
    if (findings->count > 0)
        qsort(findings->rows, findings->count, sizeof *findings->rows, by_weight);
    return !findings->failed;
}

static void drop(void *part)
{
    struct findings *findings = part;
    free(findings->rows);
    arena_free(&findings->texts);
}

const struct analysis_part findings_part = {
    .what = TRAIL_ANALYZE_FINDINGS,
    .size = sizeof(struct findings),
    .needs = {&activity_part, &waits_part, &gc_part, &utilisation_part, &stuck_part, &regions_part,
              &misuses_part},
    .init = init,
    .free = drop,
    .finish = finish,
};

size_t trail_analysis_findings(const trail_analysis *analysis, const trail_finding **rows)
{
    const struct findings *findings = analysis_object(analysis, &findings_part);
    *rows = findings ? findings->rows : NULL;
    return findings ? findings->count : 0;
}
