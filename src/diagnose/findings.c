/* Findings: the list, and those of tasks, CPUs, garbage collection and leaks. */
#include "diagnose/findings.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/gc.h"
#include "analyze/regions.h"
#include "analyze/utilisation.h"
#include "base/grow.h"
#include "base/order.h"
#include "base/quantile.h"
#include "base/whole.h"
#include "diagnose/misuses.h"
#include "diagnose/stuck.h"
#include "diagnose/waits.h"
#include "diagnose/why_ready.h"
#include "words/function_name.h"
#include "words/gain.h"
#include "words/place.h"
#include "words/wrappers.h"

/* Thresholds, as shares of the time. */
#define IDLE_SHARE   0.1 /* less is usual beside other programs */
#define ABOUT_ONE_P  1.05
#define GC_SHARE     0.25
#define GC_BUSY      0.4  /* the same beside other programs, which make collections longer */
#define KEPT_SHARE   0.1  /* less is usual beside other programs */
#define SMALL_SHARE  0.02 /* beside other programs, pauses and their delays are longer */
#define PAUSE_SHARE  0.05
#define LONG_PAUSE   INT64_C(10000000)
#define MUCH_PAUSE   INT64_C(50000000) /* whatever its share */
#define ODD_PAUSE    INT64_C(1000000)
#define FUTILE_LEAST 100
#define LEAK_LEAST   20
#define SLOW_LEAST   INT64_C(10000000)
#define SLOW_TIMES   10 /* the slowest compared with the median */
#define SLOW_COUNT   5
#define ASSIST_SHARE 0.1 /* of the slowest task or region */
#define READY_SHARE  0.2
#define READY_MOST   0.5 /* from here on, however short each time was */
#define READY_OTHERS 0.4 /* where there were CPUs enough, but for other programs */
/* ... and none of these is a cause: it may be bursts of other programs, or the machine's host. */
#define READY_UNKNOWN 0.75
#define READY_MUCH    INT64_C(100000000)
#define READY_LEAST   INT64_C(10000000)
#define RUNNER_SHARE  0.5   /* of the time, running: what had the CPUs */
#define ABOUT_ONE     1.2   /* ran on average */
#define LACK_PART     50    /* of a delay, without a CPU: from here on it may be because of that */
#define LACK_SHARE    0.005 /* of the time without a CPU */
#define ALL_CPUS      0.85  /* of the CPUs: from here on all are in use */

/* MARK: Sentences */

/*
 * Appends formatted sentences to `text`, with a capital first letter, which a name keeps as it is:
 * formats that begin with one begin with "%.*s".
 */
static const char *append(struct findings *findings, const char *text, const char *format,
                          va_list args)
{
    char all[4096];
    size_t used = (size_t)snprintf(all, sizeof all, "%s%s", text, *text ? " " : "");
    if (used < sizeof all)
        (void)vsnprintf(all + used, sizeof all - used, format, args);
    if (used < sizeof all && strncmp(format, "%.*s", 4) != 0 && all[used] >= 'a' &&
        all[used] <= 'z')
        all[used] = (char)(all[used] - 'a' + 'A');
    const char *copy = arena_copy(&findings->texts, all, strlen(all) + 1);
    findings->failed |= !copy;
    return copy ? copy : "";
}

void finding_say(struct findings *findings, const struct finding_of *of, const char *format, ...)
{
    const trail_longest *moment = of->moment;
    double gain = time_share(findings, of->gain_ns),
           share = of->weight_ns ? time_share(findings, of->weight_ns) : gain;
    va_list args;
    if (!GROW(findings->rows, findings->capacity, findings->count + 1)) {
        findings->failed = true;
        return;
    }
    /* gain_words gives no bound for what weighs as much as the whole. */
    if (gain < GAIN_MOST_SHARE && share > GAIN_LESS_SHARE)
        share = GAIN_LESS_SHARE;
    va_start(args, format);
    findings->rows[findings->count++] = (trail_finding){
        .kind = of->kind,
        .heading = append(findings, "", format, args),
        .details = "",
        .remedy = "",
        .gain_ns = of->gain_ns,
        /* 1 and more are hangs, which a share of the whole time is not. */
        .weight = (double)of->rank + (share < MOST_SHARE ? share : MOST_SHARE),
        .note = of->note && share < NOTE_SHARE,
        .function = of->function,
        .object = of->object,
        .has_moment = moment != NULL,
        .begin_ns = moment ? moment->begin_ns : 0,
        .end_ns = moment ? (int64_t)((uint64_t)moment->begin_ns + (uint64_t)moment->ns) : 0,
        .goroutine = moment ? moment->goroutine : TRAIL_NONE,
        .task = TRAIL_NONE,
    };
    va_end(args);
    char bound[GAIN_BOUND_SIZE];
    if (of->saves && gain < GAIN_MOST_SHARE)
        finding_advise(findings, "%s",
                       gain_bound(of->kind, of->gain_ns, length_of(findings), bound));
}

void finding_explain(struct findings *findings, const char *format, ...)
{
    trail_finding *finding = finding_last(findings);
    va_list args;
    va_start(args, format);
    finding->details = append(findings, finding->details, format, args);
    va_end(args);
}

void finding_advise(struct findings *findings, const char *format, ...)
{
    trail_finding *finding = finding_last(findings);
    va_list args;
    va_start(args, format);
    finding->remedy = append(findings, finding->remedy, format, args);
    va_end(args);
}

/* Joins the parts. */
static const char *whole_text(struct findings *findings, const trail_finding *finding)
{
    char all[8192];
    (void)snprintf(all, sizeof all, "%s.%s%s%s%s", finding->heading, *finding->details ? " " : "",
                   finding->details, *finding->remedy ? " " : "", finding->remedy);
    const char *copy = arena_copy(&findings->texts, all, strlen(all) + 1);
    findings->failed |= !copy;
    return copy ? copy : "";
}

static void drop_bound(struct findings *findings, trail_finding *finding)
{
    char bound[GAIN_BOUND_SIZE];
    finding->remedy = gain_remedy(finding, length_of(findings), bound);
    if (*bound)
        finding->text = whole_text(findings, finding);
}

bool finding_replayed(struct findings *findings, trail_finding *finding, const char *const *options,
                      const char *sentence)
{
    drop_bound(findings, finding);
    finding->replayed = arena_copy(&findings->texts, sentence, strlen(sentence) + 1);
    for (int i = 0; i < 2 && options[i]; i++) {
        finding->whatif[i] = arena_copy(&findings->texts, options[i], strlen(options[i]) + 1);
        if (!finding->whatif[i])
            return false;
    }
    return finding->replayed != NULL && !findings->failed;
}

bool finding_was_said(const struct findings *findings, const char *kind)
{
    for (size_t i = 0; i < findings->count; i++)
        if (strcmp(findings->rows[i].kind, kind) == 0)
            return true;
    return false;
}

bool finding_names(const struct findings *findings, const char *kind, trail_name function)
{
    for (size_t i = 0; i < findings->count; i++)
        if (findings->rows[i].function == function && strcmp(findings->rows[i].kind, kind) == 0)
            return true;
    return false;
}

trail_finding *finding_last(struct findings *findings)
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

bool finding_is_runtime(const struct findings *findings, trail_name name)
{
    return text_begins(text_of(findings, name), "runtime.");
}

const char *finding_put_started(const struct findings *findings, trail_name name, char *text)
{
    const struct wait_group *group = waits_find_group(findings->waits, name);
    trail_string shown = text_of(findings, name);
    bool nameless = memmem(shown.data, shown.size, ".so", 3) != NULL;
    if (!nameless || !group || group->created_at == 0) {
        (void)snprintf(text, STARTED_SIZE, "%.*s", SHOWN(shown));
        return text;
    }
    trail_string at = text_of(findings, group->created_at);
    (void)snprintf(text, STARTED_SIZE, "%.*s (created at %.*s)", SHOWN(shown), SHOWN(at));
    return text;
}

/* MARK: Condition variables */

/* Woken, no work done, waiting again at the same place. */
void finding_futile_wakeups(struct findings *findings)
{
    const struct waits *waits = findings->waits;
    for (size_t i = 0; i < waits->place_count; i++) {
        const struct place *place = waits->all[i];
        if (place->kind != PLACE_CONDITION || place->futile < FUTILE_LEAST ||
            place->futile < place->woken / 2 ||
            (place->most_waiters < 2 && place->waits >= HANDOFF_TIMES))
            continue;
        trail_string at = text_of(findings, place->name);
        int64_t ns = blame_union_ns(&place->futile_for), length = length_of(findings);
        const struct finding_of of = {"futile-wakeups", .gain_ns = ns < length ? ns : length,
                                      .moment = &place->longest, .function = place->waiter,
                                      .object = place->lock};
        finding_say(findings, &of, "At %.*s, %s of %s wake-ups had no effect", SHOWN(at),
                    counted(place->futile).text, counted(place->woken).text);
        finding_explain(findings,
                        "Each time, the %s woke no other and waited there again within %s. At most "
                        "%s waited there at the same time.",
                        word(findings, TERM_task), place->most_waiters > 1 ? "30 us" : "10 us",
                        counted(place->most_waiters).text);
        finding_advise(findings, "Wake one instead of all, or only when the condition holds.");
    }
}

/* MARK: Tasks */

/* Whether the wait is most of the slowest task or region. */
static bool is_most_of(const trail_longest *span, const trail_longest *wait)
{
    return wait->goroutine == span->goroutine && wait->begin_ns >= span->begin_ns &&
           ns_between(span->begin_ns, wait->begin_ns) + wait->ns <= span->ns &&
           wait->ns >= span->ns / 2;
}

/* Explains what most of `span` was one wait for. Returns false if that is not known. */
static bool explain_wait(struct findings *findings, const trail_longest *span)
{
    const struct waits *waits = findings->waits;
    for (size_t i = 0; i < waits->blame.count; i++) {
        const struct blame_row *row = &waits->blame.rows[i];
        char what[200];
        /* A goroutine of Go that ends a wait for the network only looked at the connections. */
        if (row->function == 0 || !is_most_of(span, &row->longest) ||
            (waits->is_go && row->wait == waits->network))
            continue;
        trail_string wait = text_of(findings, row->wait), by = text_of(findings, row->place);
        (void)snprintf(what, sizeof what, "%.*s", SHOWN(wait));
        if (row->lock)
            finding_put_lock(findings, row->wait, what, sizeof what);
        finding_explain(findings, "For %s of it, its %s waited for %s, which %.*s %s.",
                        duration(row->longest.ns).text, word(findings, TERM_task), what, SHOWN(by),
                        row->lock ? "held" : "ended");
        return true;
    }
    for (size_t i = 0; i < waits->outside.count; i++) {
        const struct outside_row *row = &waits->outside.rows[i];
        if (!is_most_of(span, &row->longest))
            continue;
        trail_string wait = text_of(findings, row->wait), place = text_of(findings, row->place);
        finding_explain(findings, "For %s of it, its %s waited (%.*s) at %.*s.",
                        duration(row->longest.ns).text, word(findings, TERM_task), SHOWN(wait),
                        SHOWN(place));
        return true;
    }
    return false;
}

/* Explains what the slowest task or region spent its time with, and the function. */
static void explain_spent(struct findings *findings, const trail_longest *span,
                          const struct task_spent *spent)
{
    if (!spent->known)
        return;
    bool assists = spent->assist_ns > (int64_t)(ASSIST_SHARE * (double)span->ns);
    if (spent->assist_ns <= span->ns / 2 && !explain_wait(findings, span))
        finding_explain(findings, "Its %s ran for %s, was ready for %s and waited for the rest.",
                        word(findings, TERM_task), duration(spent->exec_ns).text,
                        duration(spent->ready_ns).text);
    if (!assists)
        return;
    finding_explain(findings,
                    "For %s of it, its %s had to help the garbage collection (assists), since it "
                    "allocates faster than the collection marks.",
                    duration(spent->assist_ns).text, word(findings, TERM_task));
    finding_advise(findings, "Allocate less in it, or let the heap grow (GOGC, GOMEMLIMIT).");
}

/* Whether a flight recorder found something of this name slow: "task request took 312 ms". */
static bool is_over_limit(const struct findings *findings, const char *what, trail_string name)
{
    const trail_recorded *rows;
    size_t count = trail_reader_recorded(findings->analysis->names.reader, &rows);
    for (size_t i = 0; i < count; i++) {
        trail_string text = rows[i].name;
        if (rows[i].what == TRAIL_RECORDED_SLOW && text_take(&text, what) &&
            text_take(&text, " ") && text.size > name.size && text.data[name.size] == ' ' &&
            memcmp(text.data, name.data, name.size) == 0)
            return true;
    }
    return false;
}

/*
 * Adds a finding if the slowest task or region of a name is much slower than the others, or than
 * the recording allows. Returns whether it is.
 */
static bool say_slowest(struct findings *findings, const struct finding_of *of, const char *what,
                        const trail_histogram *all, int64_t slowest)
{
    int64_t median = trail_histogram_quantile(all, 0.5);
    trail_string name = text_of(findings, of->function);
    struct finding_of own = *of;
    if (all->count >= SLOW_COUNT && slowest >= SLOW_LEAST && slowest / SLOW_TIMES >= median) {
        own.gain_ns = ns_between(median, slowest);
        finding_say(findings, &own, "The slowest %s %.*s took %s, the median of %s about %s", what,
                    SHOWN(name), duration(slowest).text, counted(all->count).text,
                    duration(median).text);
        return true;
    }
    if (!is_over_limit(findings, what, name))
        return false;
    own.gain_ns = slowest;
    finding_say(findings, &own, "The slowest %s %.*s took %s, over the limit of the recording",
                what, SHOWN(name), duration(slowest).text);
    return true;
}

void finding_slow_task(struct findings *findings)
{
    const trail_task_kind *const *kinds;
    size_t count = trail_analysis_task_kinds(findings->analysis, &kinds);
    for (size_t i = 0; i < count; i++) {
        const struct task_kind *kind = (const struct task_kind *)kinds[i];
        const trail_longest *longest = &kinds[i]->longest;
        const trail_longest span = {longest->ns, longest->begin_ns, kind->goroutine};
        const struct finding_of of = {"slow-task", .moment = &span, .function = kinds[i]->name};
        if (!say_slowest(findings, &of, "task", &kinds[i]->spread, span.ns))
            continue;
        explain_spent(findings, &span, &kind->slowest);
        finding_last(findings)->task = kinds[i]->longest.goroutine;
    }
}

void finding_slow_region(struct findings *findings)
{
    const struct regions *regions = findings->regions;
    for (size_t i = 0; regions && i < regions->groups.count; i++) {
        const trail_group *group = &regions->groups.rows[i];
        const trail_histogram *total = group->columns ? &group->columns[TRAIL_COLUMN_TOTAL] : NULL;
        const struct region_slowest *slowest = objects_find(&regions->slowest, group->name);
        const struct finding_of of = {"slow-region", .moment = slowest ? &slowest->span : NULL,
                                      .function = group->name};
        if (!total || group->name == 0 ||
            !say_slowest(findings, &of, "region", total, total->max_ns))
            continue;
        if (slowest)
            explain_spent(findings, &slowest->span, &slowest->spent);
        finding_last(findings)->region = group->name;
    }
}

/* The recorder's begin of a wait differs by a few ns from that of its event. */
#define WAIT_SLACK_NS 1000

/* The waits for which a flight recorder has written a snapshot. */
void finding_slow_wait(struct findings *findings)
{
    const trail_recorded *rows;
    size_t count = trail_reader_recorded(findings->analysis->names.reader, &rows);
    for (size_t i = 0; i < count; i++) {
        trail_longest wait = {rows[i].cpu_ns, rows[i].recorder_ns, (int64_t)rows[i].count};
        const struct finding_of of = {"slow-wait", .gain_ns = wait.ns, .moment = &wait};
        trail_longest span = {wait.ns + WAIT_SLACK_NS, wait.begin_ns, wait.goroutine};
        trail_string text = rows[i].name;
        if (rows[i].what != TRAIL_RECORDED_SLOW || wait.goroutine == 0 || text.size == 0)
            continue;
        finding_say(findings, &of, "%c%.*s", toupper((unsigned char)*text.data), (int)text.size - 1,
                    text.data + 1);
        (void)explain_wait(findings, &span);
    }
}

/* MARK: Ready without running */

/*
 * For how long a program of Go is known to have had no CPU for its Ps, in stretches of 1 ms or more
 * outside of pauses. On an idle machine there are hardly any. They are a small part of what it
 * lacked: events do not show that a thread had no CPU while its P ran.
 */
static int64_t lacked_ns(const struct findings *findings)
{
    const struct stretch_sum *stretches = findings->activity->stretches;
    int64_t ns = stretches[STRETCH_LONE].ns;
    ns_add(&ns, stretches[STRETCH_QUEUE].ns);
    return findings->waits->is_go ? ns : 0;
}

/* Whether other programs, which had the CPUs, may explain delays of `ns` in all. */
static bool is_by_others(const struct findings *findings, int64_t ns)
{
    int64_t lacked = lacked_ns(findings);
    return lacked > 0 && lacked >= ns / LACK_PART;
}

/* Whether other programs had CPUs for long enough to distort shares of the time. */
static bool lacked_cpus(const struct findings *findings)
{
    return time_share(findings, lacked_ns(findings)) >= LACK_SHARE;
}

/*
 * The group whose goroutines were ready for longest; `runtime_ns` is that time of goroutines of
 * Go's runtime, such as those that sweep when nothing else has work.
 */
static const struct wait_group *readiest(const struct findings *findings, int64_t *runtime_ns)
{
    const struct waits *waits = findings->waits;
    const struct wait_group *most = NULL;
    for (size_t i = 0; i < waits->count; i++) {
        int64_t ns = waits->items[i]->row.ready.sum_ns;
        if (finding_is_runtime(findings, waits->items[i]->row.name))
            ns_add(runtime_ns, ns);
        else if (!most || ns > most->row.ready.sum_ns)
            most = waits->items[i];
    }
    return most;
}

/*
 * Whether all CPUs were in use and at most one goroutine more wanted one, as where one feeds as
 * many workers as there are CPUs. Nothing is gained by fewer of them. One P may be too few by
 * mistake.
 */
static bool is_well_used(const trail_activity *activity, double wanted, double ran)
{
    double procs = (double)activity->procs;
    return procs > 1 && wanted <= procs + 1 && ran >= ALL_CPUS * procs;
}

/*
 * Whether goroutines of Go were ready because others ran on all Ps, as where work is divided into
 * more parts than there are Ps, or a server has as many requests as it can serve. There are as many
 * Ps as CPUs, unless the trace says how many CPUs there are.
 */
static bool lacks_ps(const struct findings *findings, const trail_activity *activity)
{
    return findings->waits->is_go && activity->procs > 1 &&
           !why_ready_has_limits(findings->analysis->reader) &&
           share_of(findings->activity->unused_ns, activity->runnable_ns) < READY_SHARE;
}

/* The largest share of the time that ranks one of the findings of a kind; 0: there is none. */
static double most_share(const struct findings *findings, const char *kind)
{
    double most = 0;
    for (size_t i = 0; i < findings->count; i++)
        if (strcmp(findings->rows[i].kind, kind) == 0 && findings->rows[i].weight > most)
            most = findings->rows[i].weight;
    return most;
}

/* The same as a time. */
static int64_t most_ns(const struct findings *findings, const char *kind)
{
    return part_of(length_of(findings), most_share(findings, kind));
}

/* Whether a lock, or stops of the world, explain why one ran at a time for half of the time or
 * more. */
static bool is_serialised(const struct findings *findings, double ran)
{
    bool one = ran < ABOUT_ONE && findings->activity->sums.procs > 1;
    return one && (most_share(findings, "lock-serialises") >= READY_MOST ||
                   most_share(findings, "pause-share") >= READY_MOST);
}

/* Whether another finding says why the goroutines of `most` were ready for that long. */
static bool is_ready_for(const struct findings *findings, const struct wait_group *most, int64_t ns)
{
    static const char *const kinds[] = {"futile-wakeups", "hand-offs", "spins", "unseen-waits"};
    /* A goroutine needs a P and another thread after each such call. */
    if (finding_was_said(findings, "blocking-calls"))
        return true;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (finding_names(findings, kinds[i], most->row.name))
            return true;
    /* What spins has the CPUs. */
    const struct wait_group *runner = finding_busiest_but(findings, most->row.name);
    if (runner && finding_names(findings, "spins", runner->row.name))
        return true;
    /* Those that hand over are ready as often as those that are handed something. */
    return most_ns(findings, "hand-offs") > ns / 2 || findings->holder_ready_ns > ns / 2;
}

/* Explains which of the program's other threads had the CPUs. */
static void explain_runner(struct findings *findings, const struct wait_group *ready)
{
    const struct wait_group *runner = finding_busiest_but(findings, ready->row.name);
    if (!runner || runner->row.name == 0 || runner->exec_ns < ready->exec_ns ||
        time_share(findings, runner->exec_ns) < RUNNER_SHARE)
        return;
    trail_string name = text_of(findings, runner->row.name);
    finding_explain(findings, "%.*s ran most, for %s.", SHOWN(name),
                    duration(runner->exec_ns).text);
}

/* `wanted` had work on average, and `ran` ran. */
static void say_ready(struct findings *findings, const struct wait_group *most,
                      const trail_activity *activity, double wanted, double ran)
{
    char name[STARTED_SIZE], why[WHY_READY_SIZE];
    int64_t length = length_of(findings);
    enum why_ready cause =
        why_ready(findings->analysis->reader, wanted, ran, activity->procs, length, why);
    bool others = cause == WHY_READY_OTHERS;
    double share = share_of(activity->runnable_ns, time_with_work(activity));
    if (cause == WHY_READY_UNKNOWN && wanted <= (double)activity->procs && share < READY_UNKNOWN)
        return;
    const struct finding_of of = {
        "ready",
        .gain_ns = activity->runnable_ns < length ? activity->runnable_ns : length,
        .moment = &most->row.ready_longest,
        .function = most->row.name,
        .note = others || wanted <= (double)activity->procs,
    };
    double percent = 100 * share;
    bool one_p = findings->waits->is_go && activity->procs == 1;
    const char *of_whom = finding_put_started(findings, most->row.name, name);
    if (others)
        finding_say(findings, &of,
                    "Other programs used the CPUs while %s were ready to run, for %.0f %% of the "
                    "time in which these had work",
                    word(findings, TERM_tasks), percent);
    else
        finding_say(findings, &of,
                    "%s were ready but not running for %.0f %% of the time in which they had work, "
                    "mostly those of %s",
                    word(findings, TERM_tasks), percent, of_whom);
    finding_explain(findings,
                    "The %s of %s waited %s for a CPU, at most %s at once. On average %.1f had "
                    "work, %.1f ran; there %s %s %s.",
                    word(findings, TERM_tasks), of_whom, duration(most->row.ready.sum_ns).text,
                    duration(most->row.ready_longest.ns).text, wanted, ran,
                    activity->procs == 1 ? "is" : "are", counted(activity->procs).text,
                    word(findings, activity->procs == 1 ? TERM_slot : TERM_slots));
    if (others)
        finding_explain(findings,
                        "%s. The cause is outside of the program; it lengthens other times in this "
                        "trace, too.",
                        why);
    else
        explain_runner(findings, most);
    /* The threads that keep the holder of a lock from a CPU are ready for long themselves. */
    int64_t holder_ns = most_ns(findings, "holder-not-running");
    if (holder_ns > 0)
        finding_last(findings)->weight = time_share(findings, holder_ns) / 2;
    /* The sums over goroutines do not show that other programs took most of the CPU time. With
     * several Ps, some P took ready goroutines late, or had no CPU. */
    if (lacked_cpus(findings) ||
        (findings->waits->is_go && !why_ready_has_limits(findings->analysis->reader)))
        finding_last(findings)->note = !one_p;
    if (one_p)
        finding_advise(findings, "GOMAXPROCS is 1: raise it if the program may use more CPUs.");
    else if (others)
        finding_advise(findings, "Record while the machine is idle.");
    else
        finding_advise(findings, "%s.", why);
}

/* Where it is inferred, a goroutine is ready from its wake-up to the end of the call, which takes
 * up to this long on an idle machine. */
#define WAKE_UP_NS 50000

/* How much of the ready time the wake-ups themselves take. */
static int64_t wake_ups_ns(const struct findings *findings, const trail_activity *activity)
{
    const struct waits *waits = findings->waits;
    double count = 0;
    for (size_t i = 0; i < waits->count; i++)
        count += (double)waits->items[i]->row.ready.count;
    return whole_of(count * WAKE_UP_NS * time_share(findings, activity->inferred_ns));
}

/* Whether a program of Go had one P nearly all the time, though it may have begun with more. */
static bool has_one_p(const struct findings *findings, const trail_activity *activity)
{
    int64_t known_ns = ns_between(activity->lost_ns, length_of(findings));
    double average = share_of(activity->available_ns, known_ns);
    return findings->waits->is_go && average > 0 && average < ABOUT_ONE_P;
}

void finding_ready_for_long(struct findings *findings)
{
    int64_t left_out_ns = 0;
    const struct wait_group *most = readiest(findings, &left_out_ns);
    int64_t length = length_of(findings);
    trail_activity activity;
    trail_analysis_activity(findings->analysis, &activity);
    if (has_one_p(findings, &activity))
        activity.procs = 1;
    ns_add(&left_out_ns, wake_ups_ns(findings, &activity));
    activity.runnable_ns =
        left_out_ns < activity.runnable_ns ? activity.runnable_ns - left_out_ns : 0;
    double share = share_of(activity.runnable_ns, time_with_work(&activity));
    bool long_ones = most && most->row.ready_longest.ns >= READY_LEAST;
    int64_t gc_ns = (int64_t)findings->activity->sums.procs * most_ns(findings, "gc-share");
    /* Goroutines that are ready for short times only are normal where all Ps have work. */
    bool all_short = findings->waits->is_go && activity.procs > 1;
    if (!most || share < READY_SHARE || time_share(findings, activity.runnable_ns) < READY_SHARE ||
        (!long_ones && (all_short || share < READY_MOST || activity.runnable_ns < READY_MUCH)) ||
        gc_ns > activity.runnable_ns / 2)
        return;
    double wanted = time_share(findings, time_with_work(&activity));
    double ran = time_share(findings, activity.running_ns);
    if (((wanted <= (double)activity.procs || lacked_cpus(findings)) && share < READY_OTHERS) ||
        is_well_used(&activity, wanted, ran) || is_serialised(findings, ran) ||
        lacks_ps(findings, &activity) ||
        is_ready_for(findings, most, activity.runnable_ns < length ? activity.runnable_ns : length))
        return;
    say_ready(findings, most, &activity, wanted, ran);
}

/* MARK: Ps */

/*
 * Whether a P is only a unit of concurrency, so that none is idle while a thread is ready, and the
 * kernel decides how long one is kept: those of recordings by the kernel's context switches, in
 * which that is found as `ready`.
 */
static bool has_no_ps(const struct findings *findings)
{
    const trail_maker *maker = trail_reader_maker(findings->analysis->reader);
    return maker &&
           (maker->made_by == TRAIL_MADE_BY_RECORD || maker->made_by == TRAIL_MADE_BY_IMPORT);
}

void finding_one_runs_alone(struct findings *findings)
{
    const struct stretch_sum *sum = &findings->activity->stretches[STRETCH_LONE];
    double share = time_share(findings, sum->ns);
    if (share < IDLE_SHARE || has_no_ps(findings))
        return;
    const struct finding_of of = {"one-runs-alone", .gain_ns = sum->ns, .moment = &sum->longest,
                                  .note = true};
    finding_say(findings, &of, "One %s ran alone although others were ready and %s idle",
                word(findings, TERM_task), word(findings, TERM_slots));
    finding_explain(
        findings,
        "%s stretch%s of 1 ms or more, %s in all (%.0f %% of the time), the longest %s, "
        "of %s %" PRId64 ". The others were woken late, or other programs had the CPUs.",
        counted(sum->count).text, sum->count == 1 ? "" : "es", duration(sum->ns).text, 100 * share,
        duration(sum->longest.ns).text, word(findings, TERM_task), sum->longest.goroutine);
}

void finding_ready_while_idle(struct findings *findings)
{
    const struct stretch_sum *sum = &findings->activity->stretches[STRETCH_QUEUE];
    double share = time_share(findings, sum->ns);
    trail_longest moment = sum->longest;
    if (share < IDLE_SHARE || has_no_ps(findings))
        return;
    moment.goroutine = TRAIL_NONE;
    const struct finding_of of = {"ready-while-idle", .gain_ns = sum->ns, .moment = &moment,
                                  .note = true};
    finding_say(findings, &of, "%s were ready while %s were idle", word(findings, TERM_tasks),
                word(findings, TERM_slots));
    finding_explain(findings,
                    "%s stretch%s of 1 ms or more, %s in all (%.0f %% of the time), the "
                    "longest %s. The machine had no CPU for the program's threads%s.",
                    counted(sum->count).text, sum->count == 1 ? "" : "es", duration(sum->ns).text,
                    100 * share, duration(sum->longest.ns).text, word(findings, TERM_not_woken));
}

void finding_keeps_p(struct findings *findings)
{
    const struct waits *waits = findings->waits;
    for (size_t i = 0; i < waits->count && !has_no_ps(findings); i++) {
        const struct wait_group *group = waits->items[i];
        trail_string name = text_of(findings, group->row.name);
        /* Of Go's own that began before the trace, the start function is not always recorded. */
        if (group->held == 0 || finding_is_runtime(findings, group->row.name) ||
            names_text(&findings->analysis->names, group->row.name).size == 0 ||
            is_by_others(findings, group->held_ns) ||
            time_share(findings, group->held_ns) < KEPT_SHARE)
            continue;
        const struct finding_of of = {"keeps-p", .gain_ns = group->held_longest.ns,
                                      .moment = &group->held_longest, .function = group->row.name};
        finding_say(
            findings, &of,
            "%s of %.*s kept their %s for 50 ms or more while others were ready and no %s was idle",
            word(findings, TERM_tasks), SHOWN(name), word(findings, TERM_slot),
            word(findings, TERM_slot));
        finding_explain(findings, "%s time%s, the longest %s.", counted(group->held).text,
                        plural_s(group->held), duration(group->held_longest.ns).text);
        if (findings->waits->is_go)
            finding_explain(findings,
                            "Since Go 1.14, the runtime's monitor (sysmon) preempts after "
                            "10 ms: code in assembly cannot be, or the monitor had no CPU.");
        finding_advise(findings, "Divide the work, or let it yield.");
    }
}

/* MARK: Annotations */

void finding_misused(struct findings *findings)
{
    const struct misuses *misuses = findings->misuses;
    struct stack_row stack = stacks_get(&findings->analysis->stacks, misuses->stack);
    char place[PLACE_TEXT_SIZE] = "a place without a stack", others[120] = "";
    if (misuses->count == 0)
        return;
    if (stack.count > 0) {
        const trail_place *own = &stack.places[stack.own];
        const struct names *names = &findings->analysis->names;
        (void)place_of_frame(names_text(names, own->function), names_text(names, own->file),
                             own->line, PLACE_PARENTHESES, place, sizeof place);
    }
    if (misuses->count > 1)
        (void)snprintf(others, sizeof others, " (the first of %s such events)",
                       counted(misuses->count).text);
    trail_string name = names_text(&findings->analysis->names, misuses->name);
    /* A flaw of the trace, which costs no time. */
    const struct finding_of of = {"misused-annotation", .moment = &misuses->first};
    finding_say(findings, &of, "%s '%.*s' at %s %s%s", misuses->what, SHOWN(name), place,
                misuses->rule, others);
    finding_explain(findings, "Go's tools stop reading the trace there.");
}

/* MARK: Stop-the-world pauses and garbage collection */

/* Whether a delay is too short to matter, in itself and as a share of the time. */
static bool is_small(const struct findings *findings, int64_t ns)
{
    return ns < MUCH_PAUSE && time_share(findings, ns) < SMALL_SHARE;
}

void finding_late_for_stop(struct findings *findings)
{
    const struct late_stop *late = &findings->activity->late;
    if (late->count == 0 || finding_is_runtime(findings, late->name) ||
        is_by_others(findings, late->ns) ||
        (late->longest.ns < MUCH_PAUSE && time_share(findings, late->ns) < PAUSE_SHARE))
        return;
    const struct finding_of of = {"delays-stop", .gain_ns = late->ns, .moment = &late->longest,
                                  .function = late->name};
    trail_string name = text_of(findings, late->name);
    finding_say(findings, &of,
                "Stop-the-world pauses were delayed %s time%s by a %s that ran on for 1 ms or more",
                counted(late->count).text, plural_s(late->count), word(findings, TERM_task));
    finding_explain(findings,
                    "The longest was %s %" PRId64 " (%.*s), for %s of a pause of %s. Code that "
                    "cannot be preempted delays them: a long call in "
                    "assembly, or before Go 1.14 a loop without calls.",
                    word(findings, TERM_task), late->longest.goroutine, SHOWN(name),
                    duration(late->longest.ns).text, duration(late->pause_ns).text);
}

/* Whether most of so much time is a delay of stops, which is reported instead. */
static bool is_by_stops(const struct findings *findings, int64_t ns, int64_t late_ns)
{
    return finding_was_said(findings, "delays-stop") && late_ns >= ns - ns / 2;
}

static int64_t pause_ns(const trail_gc_pause *pause)
{
    return ns_between(pause->begin_ns, pause->end_ns);
}

static int64_t median_pause(struct findings *findings, const struct gc *gc)
{
    int64_t *lengths = calloc(gc->pause_count + 1, sizeof *lengths);
    findings->failed |= !lengths;
    if (!lengths)
        return 0;
    for (size_t i = 0; i < gc->pause_count; i++)
        lengths[i] = pause_ns(&gc->pauses[i]);
    qsort(lengths, gc->pause_count, sizeof *lengths, order_numbers);
    int64_t median = lengths[quantile_index(0.5, gc->pause_count)];
    free(lengths);
    return median;
}

void finding_long_pause(struct findings *findings)
{
    const struct gc *gc = findings->gc;
    if (!gc)
        return;
    /* The array may be allocated even if no pause is in the window. */
    const trail_gc_pause *longest = gc->pause_count > 0 ? gc->pauses : NULL;
    for (size_t i = 0; i < gc->pause_count; i++)
        if (pause_ns(&gc->pauses[i]) > pause_ns(longest))
            longest = &gc->pauses[i];
    int64_t median = median_pause(findings, gc);
    bool odd =
        gc->pause_count >= 5 && pause_ns(longest) >= ODD_PAUSE && pause_ns(longest) / 10 >= median;
    if (!longest || (!odd && pause_ns(longest) < LONG_PAUSE) ||
        is_small(findings, pause_ns(longest)) || is_by_others(findings, pause_ns(longest)) ||
        is_by_stops(findings, pause_ns(longest), findings->activity->late.longest.ns))
        return;
    trail_string name = text_of(findings, longest->name);
    trail_longest moment = {pause_ns(longest), longest->begin_ns, longest->goroutine};
    const struct finding_of of = {"long-pause", .gain_ns = moment.ns, .moment = &moment,
                                  .object = longest->name};
    finding_say(findings, &of, "A stop-the-world pause took %s (%.*s)", duration(moment.ns).text,
                SHOWN(name));
    finding_explain(findings, "The median of %zu pause%s is %s.", gc->pause_count,
                    plural_s(gc->pause_count), duration(median).text);
}

/* The function with the longest time in all; NULL: none is known. */
static const struct gc_helper *most_of(const struct idmap *helpers)
{
    const struct gc_helper *most = NULL;
    IDMAP_EACH(slot, helpers) {
        const struct gc_helper *helper = slot->value;
        if (helper->function != 0 && helper->count > 0 &&
            (!most || helper->ns > most->ns ||
             (helper->ns == most->ns && helper->function < most->function)))
            most = helper;
    }
    return most;
}

void finding_pauses_take_much(struct findings *findings)
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
    double share = time_share(findings, sum);
    if (share < PAUSE_SHARE || is_by_others(findings, sum) ||
        is_by_stops(findings, sum, findings->activity->late.ns))
        return;
    const struct gc_helper *most = most_of(&gc->stopped_by.map);
    bool by_most = most && most->ns > sum / 2;
    const struct finding_of of = {"pause-share", .gain_ns = sum, .moment = &longest,
                                  .function = by_most ? most->function : 0};
    finding_say(findings, &of, "Stop-the-world pauses took %.*f %% of the time", share < 0.1,
                100 * share);
    finding_explain(findings, "%zu pause%s, %s in all, the longest %s.", gc->pause_count,
                    plural_s(gc->pause_count), duration(sum).text, duration(longest.ns).text);
    if (!by_most)
        return;
    trail_string name = text_of(findings, most->function);
    finding_explain(findings, "%.*s made %s of them, %s in all.", SHOWN(name),
                    counted(most->count).text, duration(most->ns).text);
    finding_advise(findings, "Let it do so less often.");
}

void finding_gc_takes_much(struct findings *findings)
{
    const struct gc *gc = findings->gc;
    if (!findings->utilisation || !findings->utilisation->curves[0].flags || !gc ||
        gc->cycle_count == 0 || length_of(findings) <= 0)
        return;
    double share = 1 - utilisation_least(&findings->utilisation->curves[0], length_of(findings));
    bool busy = lacked_cpus(findings);
    if (share < (busy ? GC_BUSY : GC_SHARE) ||
        is_by_stops(findings, part_of(length_of(findings), share), findings->activity->late.ns))
        return;
    const struct gc_helper *most = most_of(&gc->by_function.map);
    trail_longest moment = {0};
    for (size_t i = 0; i < gc->cycle_count; i++)
        longest_note(&moment, ns_between(gc->cycles[i].begin_ns, gc->cycles[i].end_ns),
                     gc->cycles[i].begin_ns, TRAIL_NONE);
    const struct finding_of of = {"gc-share", .gain_ns = part_of(length_of(findings), share),
                                  .moment = moment.ns > 0 ? &moment : NULL,
                                  .function = most ? most->function : 0};
    finding_say(findings, &of, "Garbage collection took %.0f %% of the %s' time", 100 * share,
                word(findings, TERM_slots));
    if (most) {
        trail_string name = text_of(findings, most->function);
        finding_explain(findings, "%.*s allocates most: it had to help %s time%s, for %s in all.",
                        SHOWN(name), counted(most->count).text, plural_s(most->count),
                        duration(most->ns).text);
    }
    finding_explain(findings, "%zu cycle%s, one every %s.", gc->cycle_count,
                    plural_s(gc->cycle_count),
                    duration(length_of(findings) / (int64_t)gc->cycle_count).text);
    if (busy)
        finding_explain(findings, "Other programs used the CPUs at times, which makes it longer.");
    finding_advise(findings, "Allocate less, or let the heap grow (GOGC, GOMEMLIMIT).");
}

/* MARK: Leaks */

/* Created throughout, hardly any ended, and most blocked for long. The runtime keeps its own. */
void finding_leaks(struct findings *findings)
{
    const struct waits *waits = findings->waits;
    for (size_t i = 0; i < waits->count; i++) {
        const struct wait_group *group = waits->items[i];
        uint64_t late = group->stuck - group->stuck_early;
        /* Those that wait to send serve no other any more, however many have ended. */
        bool few_end = group->row.ended * 10 <= group->row.created ||
                       group->stuck_sends * 10 >= group->stuck * 9;
        if (group->stuck < LEAK_LEAST || !few_end || group->stuck_early * 4 < group->stuck ||
            late * 8 < group->stuck || finding_is_runtime(findings, group->row.name))
            continue;
        trail_string name = text_of(findings, group->row.name);
        trail_string at = names_text(&findings->analysis->names, group->created_at),
                     wait = text_of(findings, group->stuck_for),
                     waits_at = text_of(findings, group->stuck_at);
        trail_longest moment = {ns_between(group->stuck_since_ns, findings->analysis->span.end_ns),
                                group->stuck_since_ns, group->stuck_goroutine};
        const struct finding_of of = {"leak", .gain_ns = length_of(findings) / 2, .moment = &moment,
                                      .function = group->row.name};
        finding_say(findings, &of, "%s of %.*s look leaked", word(findings, TERM_tasks),
                    SHOWN(name));
        finding_explain(findings,
                        "%s were created throughout%s%.*s, %s ended, and %s have been waiting for "
                        "a tenth of the time or longer%s; the first is %s %" PRId64 ".",
                        counted(group->row.created).text, group->created_at ? " at " : "",
                        SHOWN(at), counted(group->row.ended).text, counted(group->stuck).text,
                        group->stuck_sends * 10 >= group->stuck * 9
                            ? " (chan send: nothing receives what they send)"
                            : "",
                        word(findings, TERM_task), group->stuck_goroutine);
        if (group->stuck_for != 0 && group->stuck_at != 0)
            finding_explain(findings, "All of these wait (%.*s) at %.*s.", SHOWN(wait),
                            SHOWN(waits_at));
        /* It costs memory: the share that ranks it is no time that would be saved. */
        finding_last(findings)->gain_ns = 0;
    }
}

/* MARK: All */

static void (*const all[])(struct findings *) = {
#define FINDING(function, kind) finding_##function,
#include "diagnose/findings.def"
};

static int by_weight(const void *a, const void *b)
{
    const trail_finding *x = a, *y = b;
    if (x->note != y->note)
        return x->note ? 1 : -1;
    if (x->weight != y->weight)
        return x->weight < y->weight ? 1 : -1;
    return strcmp(x->text, y->text);
}

void findings_sort(struct findings *findings)
{
    if (findings->count > 0)
        qsort(findings->rows, findings->count, sizeof *findings->rows, by_weight);
}

static void explain_of(struct findings *findings, trail_finding *finding, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    finding->details = append(findings, finding->details, format, args);
    finding->text = whole_text(findings, finding);
    va_end(args);
}

/* Where a function has no name but its address, says once what would give it one. */
static void explain_address(struct findings *findings)
{
    for (size_t i = 0; i < findings->count; i++) {
        trail_string name = text_of(findings, findings->rows[i].function);
        const char *plus = memmem(name.data, name.size, "+0x", 3);
        if (frame_rank(NULL, name, (trail_string){NULL, 0}) != FRAME_ADDRESS || !plus)
            continue;
        trail_string module = {name.data, (size_t)(plus - name.data)};
        explain_of(findings, &findings->rows[i],
                   "%.*s has no symbols: build it with -g and record again, or install its debug "
                   "information and see trail-symbolize(1).",
                   SHOWN(module));
        return;
    }
}

static bool init(void *part, struct trail_analysis *analysis)
{
    struct findings *findings = part;
    findings->analysis = analysis;
    findings->activity = analysis_object(analysis, &activity_part);
    findings->waits = analysis_object(analysis, &waits_part);
    findings->gc = analysis_object(analysis, &gc_part);
    findings->utilisation = analysis_object(analysis, &utilisation_part);
    findings->stuck = analysis_object(analysis, &stuck_part);
    findings->regions = analysis_object(analysis, &regions_part);
    findings->misuses = analysis_object(analysis, &misuses_part);
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
    for (size_t i = 0; i < findings->count; i++)
        findings->rows[i].text = whole_text(findings, &findings->rows[i]);
    findings_sort(findings);
    explain_address(findings);
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
    .init = init,
    .free = drop,
    .finish = finish,
};

struct findings *findings_of(const struct trail_analysis *analysis)
{
    return analysis_object(analysis, &findings_part);
}

size_t trail_analysis_findings(const trail_analysis *analysis, const trail_finding **rows)
{
    const struct findings *findings = findings_of(analysis);
    *rows = findings ? findings->rows : NULL;
    return findings ? findings->count : 0;
}
