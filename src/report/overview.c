#include "report/overview.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/part.h"
#include "base/duration.h"
#include "base/order.h"
#include "base/show.h"
#include "base/text.h"
#include "diagnose/waits.h"

static bool lacks; /* out of memory: some answer is incomplete */

void overview_lacks(void)
{
    lacks = true;
}

bool overview_is_whole(void)
{
    return !lacks;
}

/* MARK: Where time went */

static void add_named(const trail_analysis *answers, struct overview_part **parts, size_t *count,
                      const trail_named_time *items, uint32_t item_count)
{
    for (uint32_t i = 0; i < item_count; i++) {
        trail_string name = trail_analysis_text(answers, items[i].name);
        size_t at = 0;
        while (at < *count && !text_equal((*parts)[at].name, name))
            at++;
        if (at == *count) {
            struct overview_part *grown = reallocarray(*parts, *count + 1, sizeof *grown);
            if (!grown) {
                lacks = true;
                return;
            }
            *parts = grown;
            (*parts)[(*count)++] = (struct overview_part){.name = name, .of = items[i].name};
        }
        (*parts)[at].ns += items[i].ns;
    }
}

static int by_ns(const void *a, const void *b)
{
    const struct overview_part *x = a, *y = b;
    return ORDER(y->ns, x->ns);
}

trail_times overview_times(const trail_analysis *answers, bool ranges, struct overview_part **parts,
                           size_t *count)
{
    const trail_group *groups;
    trail_times sum = {0};
    size_t group_count = trail_analysis_groups(answers, &groups);
    *parts = NULL;
    *count = 0;
    for (size_t i = 0; i < group_count; i++) {
        trail_times times = trail_times_corrected(&groups[i].times);
        sum.exec_ns += times.exec_ns;
        sum.sched_wait_ns += times.sched_wait_ns;
        sum.syscall_ns += times.syscall_ns;
        sum.syscall_block_ns += times.syscall_block_ns;
        sum.total_ns += times.total_ns;
        if (ranges)
            add_named(answers, parts, count, times.range, times.range_count);
        else
            add_named(answers, parts, count, times.block, times.block_count);
    }
    if (*count > 0)
        qsort(*parts, *count, sizeof **parts, by_ns);
    return sum;
}

/* MARK: Waits */

static int longest_sum(const void *a, const void *b)
{
    const struct overview_wait *x = a, *y = b;
    int64_t p = x->wait->spread.sum_ns, q = y->wait->spread.sum_ns;
    return ORDER(x->system, y->system) ?: ORDER(x->idle, y->idle) ?: ORDER(q, p) ?:
           ORDER(x->group->name, y->group->name) ?: ORDER(x->wait, y->wait);
}

static bool is_idle(const trail_wait *wait)
{
    return wait->idle_ns > wait->spread.sum_ns / 2;
}

/* Whether Go's runtime waits for itself, perhaps in a goroutine of runtime/trace or of cgo. */
static bool is_of_runtime(const trail_analysis *answers, const trail_wait *wait)
{
    return !is_idle(wait) &&
           text_is(trail_analysis_text(answers, wait->reason), "system goroutine wait");
}

struct overview_wait *overview_waits(const trail_analysis *answers, bool idle, size_t *count)
{
    const trail_wait_group *const *groups;
    size_t group_count = trail_analysis_waits(answers, &groups), at = 0;
    *count = 0;
    for (size_t i = 0; i < group_count; i++)
        *count += groups[i]->wait_count;
    struct overview_wait *list = calloc(*count + 1, sizeof *list);
    lacks |= !list;
    if (!list)
        return NULL;
    for (size_t i = 0; i < group_count; i++) {
        trail_string name = trail_analysis_text(answers, groups[i]->name);
        for (size_t n = 0; n < groups[i]->wait_count; n++)
            list[at++] = (struct overview_wait){groups[i], &groups[i]->waits[n],
                                                trail_is_system_goroutine(name) ||
                                                    is_of_runtime(answers, &groups[i]->waits[n]),
                                                !idle && is_idle(&groups[i]->waits[n])};
    }
    qsort(list, *count, sizeof *list, longest_sum);
    return list;
}

const char *overview_about(const trail_histogram *spread)
{
    enum { EXACT = 128 }; /* trail_histogram keeps this many durations */
    return spread->count > EXACT ? "about " : "";
}

/* A join says no more than that another thread ran, or waited, for longer. */
static bool is_join(const trail_analysis *answers, const struct overview_wait *wait)
{
    return text_is(trail_analysis_text(answers, wait->wait->reason), "join");
}

/* The waits that are shown: `list` is sorted, with waits that may be for work last. */
struct largest {
    const struct overview_wait *most;
    int64_t longest_ns;
};

/* Waits that may be for work are shown instead of others that took less than a part of their time.
 */
#define IDLE_TIMES 20

/* Returns the first wait, of those that may be for work, or of the others, that is no join. */
static const struct overview_wait *
first_of(const trail_analysis *answers, const struct overview_wait *list, size_t count, bool idle)
{
    for (size_t i = 0; list && i < count && !list[i].system; i++)
        if (list[i].idle == idle && !is_join(answers, &list[i]))
            return &list[i];
    return NULL;
}

/* Returns the index of the first wait that is shown: those for work only if others are few. */
static size_t first_shown(const trail_analysis *answers, const struct overview_wait *list,
                          size_t count)
{
    const struct overview_wait *work = first_of(answers, list, count, true),
                               *other = first_of(answers, list, count, false);
    bool is_much =
        work && other && work->wait->spread.sum_ns / IDLE_TIMES > other->wait->spread.sum_ns;
    return is_much ? (size_t)(work - list) : 0;
}

static struct largest find_largest(const trail_analysis *answers, const struct overview_wait *list,
                                   size_t count)
{
    struct largest largest = {NULL, 0};
    for (size_t i = first_shown(answers, list, count); list && i < count && !list[i].system; i++) {
        bool first =
            !largest.most || (is_join(answers, largest.most) && !is_join(answers, &list[i]));
        if (!first && (list[i].idle != largest.most->idle || is_join(answers, &list[i])))
            continue;
        largest.most = first ? &list[i] : largest.most;
        if (first || list[i].wait->longest.ns > largest.longest_ns)
            largest.longest_ns = list[i].wait->longest.ns;
    }
    return largest;
}

const char *overview_largest(const trail_analysis *answers, const struct vocabulary *words,
                             char *buf)
{
    char sum[SHOW_SIZE], longest[DURATION_SIZE];
    trail_analysis_span span;
    const trail_gc_cycle *cycles;
    size_t count = 0, used = 0;
    struct overview_wait *waits = overview_waits(answers, false, &count);
    struct largest largest = find_largest(answers, waits, count);
    trail_analysis_get_span(answers, &span);
    *buf = '\0';
    if (largest.longest_ns > 0) {
        const trail_wait *most = largest.most->wait;
        trail_string reason = words_reason(words, trail_analysis_text(answers, most->reason)),
                     at = waits_longest_at(answers, &most->longest);
        (void)duration_text(sum, most->spread.sum_ns, DURATION_WORDS);
        (void)duration_text(longest, largest.longest_ns, DURATION_WORDS);
        used = (size_t)snprintf(
            buf, OVERVIEW_SIZE, "most waited for: %.*s (%s%s%s%.*s); longest wait: %s",
            (int)(reason.size < 100 ? reason.size : 100), reason.data, sum,
            largest.most->idle ? ", which may be for work" : "", at.size ? ", the longest at " : "",
            (int)(at.size < 160 ? at.size : 160), at.data, longest);
    } else {
        used = (size_t)snprintf(buf, OVERVIEW_SIZE, "no wait ended");
    }
    if (trail_analysis_gc_cycles(answers, &cycles) > 0)
        (void)snprintf(buf + used, OVERVIEW_SIZE - used, "; GC: %s of the time",
                       show_percent(sum, 100 * (1 - trail_analysis_mmu(
                                                        answers, 0, span.end_ns - span.begin_ns))));
    free(waits);
    return buf;
}

trail_name overview_kind(const trail_analysis *answers, trail_name name)
{
    return names_kind(&answers->names, name);
}

struct overview_group overview_group(const trail_analysis *answers, trail_name kind)
{
    const trail_group *groups;
    struct overview_group sum = {0};
    size_t count = trail_analysis_groups(answers, &groups);
    for (size_t i = 0; i < count; i++) {
        if (names_kind(&answers->names, groups[i].name) != kind)
            continue;
        sum.count += groups[i].count;
        sum.exec_ns += groups[i].times.exec_ns;
    }
    return sum;
}

/* MARK: Garbage collection */

const trail_gc_pause *overview_pauses(const trail_analysis *answers, size_t *count, int64_t *sum_ns)
{
    const trail_gc_pause *pauses, *longest = NULL;
    *count = trail_analysis_gc_pauses(answers, &pauses);
    *sum_ns = 0;
    for (size_t i = 0; i < *count; i++) {
        *sum_ns += pause_length(&pauses[i]);
        if (!longest || pause_length(&pauses[i]) > pause_length(longest))
            longest = &pauses[i];
    }
    return longest;
}

bool overview_marked(const trail_analysis_span *span, const trail_gc_cycle *cycle,
                     int64_t *begin_ns, int64_t *end_ns)
{
    *begin_ns = cycle->begin_ns > span->begin_ns ? cycle->begin_ns : span->begin_ns;
    *end_ns = cycle->has_end ? cycle->end_ns : span->end_ns;
    return cycle->has_begin || cycle->has_end || cycle->begin_ns != 0;
}

int64_t overview_marking(const trail_analysis *answers)
{
    trail_analysis_span span;
    const trail_gc_cycle *cycles;
    int64_t sum = 0;
    size_t count = trail_analysis_gc_cycles(answers, &cycles);
    trail_analysis_get_span(answers, &span);
    for (size_t i = 0; i < count; i++) {
        int64_t begin, end;
        if (overview_marked(&span, &cycles[i], &begin, &end))
            sum += end - begin;
    }
    return sum;
}
