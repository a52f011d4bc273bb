/* Findings: Go's garbage collection, and pauses that stop the world. */
#include <inttypes.h>
#include <stdlib.h>

#include "analyze/gc.h"
#include "analyze/utilisation.h"
#include "base/order.h"
#include "base/quantile.h"
#include "diagnose/findings_cpus.h"
#include "diagnose/findings_outside.h"
#include "diagnose/waits.h"

/* Thresholds, as shares of the time. */
#define GC_SHARE     0.25
#define GC_BUSY      0.4  /* the same beside other programs, which make collections longer */
#define SMALL_SHARE  0.02 /* beside other programs, pauses and their delays are longer */
#define PAUSE_SHARE  0.05
#define LONG_PAUSE   INT64_C(10000000)
#define MUCH_PAUSE   INT64_C(50000000) /* whatever its share */
#define ODD_PAUSE    INT64_C(1000000)
#define FORCED_SHARE 0.2

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
        finding_is_by_others(findings, late->ns) ||
        (late->longest.ns < MUCH_PAUSE && time_share(findings, late->ns) < PAUSE_SHARE))
        return;
    const struct finding_of of = {"delays-stop", .gain_ns = late->ns, .moment = &late->longest,
                                  .function = late->name};
    finding_say(findings, &of,
                "Stop-the-world pauses were delayed %s time%s by a %s that ran on for 1 ms or more",
                counted(late->count).text, plural_s(late->count), word(findings, TERM_task));
    finding_explain(findings,
                    "The longest was %s %" PRId64 " (%.*s), for %s of a pause of %s. Code that "
                    "cannot be preempted delays them: a long call in "
                    "assembly, or before Go 1.14 a loop without calls.",
                    word(findings, TERM_task), late->longest.goroutine, NAMED(findings, late->name),
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
        is_small(findings, pause_ns(longest)) ||
        finding_is_by_others(findings, pause_ns(longest)) ||
        is_by_stops(findings, pause_ns(longest), findings->activity->late.longest.ns))
        return;
    trail_longest moment = {pause_ns(longest), longest->begin_ns, longest->goroutine};
    const struct finding_of of = {"long-pause", .gain_ns = moment.ns, .moment = &moment,
                                  .object = longest->name};
    finding_say(findings, &of, "A stop-the-world pause took %s (%.*s)", duration(moment.ns).text,
                NAMED(findings, longest->name));
    finding_explain(findings, "The median of %zu pause%s is %s.", gc->pause_count,
                    plural_s(gc->pause_count), duration(median).text);
}

/* The function with the longest time in all; NULL: none is known. */
static const struct gc_helper *most_of(const struct idmap *helpers)
{
    const struct gc_helper *most = NULL;
    IDMAP_VALUES(const struct gc_helper, helper, helpers) {
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
    EACH(const trail_gc_pause, pause, gc->pauses, gc->pause_count) {
        ns_add(&sum, pause_ns(pause));
        longest_note(&longest, pause_ns(pause), pause->begin_ns, pause->goroutine);
    }
    double share = time_share(findings, sum);
    if (share < PAUSE_SHARE || finding_is_by_others(findings, sum) ||
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
    finding_explain(findings, "%.*s made %s of them, %s in all.", NAMED(findings, most->function),
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
    bool busy = finding_lacked_cpus(findings);
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
        finding_explain(findings, "%.*s allocates most: it had to help %s time%s, for %s in all.",
                        NAMED(findings, most->function), counted(most->count).text,
                        plural_s(most->count), duration(most->ns).text);
    }
    finding_explain(findings, "%zu cycle%s, one every %s.", gc->cycle_count,
                    plural_s(gc->cycle_count),
                    duration(length_of(findings) / (int64_t)gc->cycle_count).text);
    if (busy)
        finding_explain(findings, "Other programs used the CPUs at times, which makes it longer.");
    finding_advise(findings, "Allocate less, or let the heap grow (GOGC, GOMEMLIMIT).");
}

/* MARK: Forced collections */

/* A goroutine of a Go program asks for garbage collections, and waits until they end. */
void finding_forced_gc(struct findings *findings)
{
    OUTSIDE_EACH(row, &findings->waits->outside) {
        int64_t ns = blame_union_ns(&row->at_least_one);
        if (row->wait != findings->waits->collection || ns < OUTSIDE_LEAST ||
            time_share(findings, ns) < FORCED_SHARE)
            continue;
        const struct finding_of of =
            finding_saves("forced-gc", ns, &row->longest, row->function, row->wait);
        finding_say(findings, &of,
                    "%.*s asked for garbage collections and waited for their end for %.0f %% of "
                    "the time",
                    NAMED(findings, row->place), 100 * time_share(findings, ns));
        finding_explain(findings, "%s.", outside_words(row).text);
        finding_advise(findings, "Leave it to the runtime when to collect (GOGC, GOMEMLIMIT).");
    }
}
