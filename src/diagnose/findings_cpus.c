/* Findings: ready without running, and Ps that are idle although work is ready. */
#include <inttypes.h>

#include "base/whole.h"
#include "diagnose/findings_cpus.h"
#include "diagnose/findings_waits.h"
#include "diagnose/waits.h"
#include "diagnose/why_ready.h"

/* Thresholds, as shares of the time. */
#define IDLE_SHARE   0.1 /* less is usual beside other programs */
#define ABOUT_ONE_P  1.05
#define KEPT_SHARE   0.1 /* less is usual beside other programs */
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

/* Returns the time in which goroutines had work: they ran, or were ready to. */
static int64_t time_with_work(const trail_activity *activity)
{
    int64_t sum = activity->running_ns;
    ns_add(&sum, activity->runnable_ns);
    return sum;
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

bool finding_is_by_others(const struct findings *findings, int64_t ns)
{
    int64_t lacked = lacked_ns(findings);
    return lacked > 0 && lacked >= ns / LACK_PART;
}

bool finding_lacked_cpus(const struct findings *findings)
{
    return time_share(findings, lacked_ns(findings)) >= LACK_SHARE;
}

/*
 * The group whose goroutines were ready for longest; `runtime_ns` is that time of goroutines of
 * Go's runtime, such as those that sweep when nothing else has work.
 */
static const struct wait_group *readiest(const struct findings *findings, int64_t *runtime_ns)
{
    const struct wait_group *most = NULL;
    GROUPS_EACH(group, findings->waits) {
        int64_t ns = group->row.ready.sum_ns;
        if (finding_is_runtime(findings, group->row.name))
            ns_add(runtime_ns, ns);
        else if (!most || ns > most->row.ready.sum_ns)
            most = group;
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
    finding_explain(findings, "%.*s ran most, for %s.", NAMED(findings, runner->row.name),
                    duration(runner->exec_ns).text);
}

/* `wanted` had work on average, and `ran` ran. */
static void say_ready(struct findings *findings, const struct wait_group *most,
                      const trail_activity *activity, double wanted, double ran)
{
    char why[WHY_READY_SIZE];
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
    struct finding_words of_whom = finding_started(findings, most->row.name);
    if (others)
        finding_say(findings, &of,
                    "Other programs used the CPUs while %s were ready to run, for %.0f %% of the "
                    "time in which these had work",
                    word(findings, TERM_tasks), percent);
    else
        finding_say(findings, &of,
                    "%s were ready but not running for %.0f %% of the time in which they had work, "
                    "mostly those of %s",
                    word(findings, TERM_tasks), percent, of_whom.text);
    finding_explain(findings,
                    "The %s of %s waited %s for a CPU, at most %s at once. On average %.1f had "
                    "work, %.1f ran; there %s %s %s.",
                    word(findings, TERM_tasks), of_whom.text, duration(most->row.ready.sum_ns).text,
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
    if (finding_lacked_cpus(findings) ||
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
    double count = 0;
    GROUPS_EACH(group, findings->waits)
        count += (double)group->row.ready.count;
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
    if (((wanted <= (double)activity.procs || finding_lacked_cpus(findings)) &&
         share < READY_OTHERS) ||
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
        /* Of Go's own that began before the trace, the start function is not always recorded. */
        if (group->held == 0 || finding_is_runtime(findings, group->row.name) ||
            names_text(&findings->analysis->names, group->row.name).size == 0 ||
            finding_is_by_others(findings, group->held_ns) ||
            time_share(findings, group->held_ns) < KEPT_SHARE)
            continue;
        const struct finding_of of = {"keeps-p", .gain_ns = group->held_longest.ns,
                                      .moment = &group->held_longest, .function = group->row.name};
        finding_say(
            findings, &of,
            "%s of %.*s kept their %s for 50 ms or more while others were ready and no %s was idle",
            word(findings, TERM_tasks), NAMED(findings, group->row.name), word(findings, TERM_slot),
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
