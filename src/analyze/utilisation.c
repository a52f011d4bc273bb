#include "analyze/utilisation.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/part.h"
#include "base/grow.h"

/* Why a running goroutine takes a P from the program; bits, never 0. */
enum util_mark { MARK_ASSIST = 1, MARK_BACKGROUND = 2 };

static unsigned marks_of(const struct utilisation *u, int64_t g)
{
    return (unsigned)(uintptr_t)idmap_find(&u->marks, (uint64_t)g);
}

static bool set_marks(struct utilisation *u, int64_t g, unsigned marks)
{
    if (marks == 0) {
        (void)idmap_remove(&u->marks, (uint64_t)g);
        return true;
    }
    return idmap_put(&u->marks, (uint64_t)g, (void *)(uintptr_t)marks);
}

static bool executes(unsigned state)
{
    return state == TRAIL_GO_RUNNING || state == TRAIL_GO_SYSCALL;
}

/* MARK: Series */

static bool add_point(struct util_series *series, int64_t time_ns, double util)
{
    if (series->count > 0) {
        struct util_point *last = &series->points[series->count - 1];
        if (last->util == util)
            return true;
        if (last->time_ns == time_ns) {
            if (util < last->util)
                last->util = util;
            return true;
        }
    }
    return APPEND(series->points, series->capacity, series->count,
                  (struct util_point){time_ns, util});
}

static bool new_series(struct utilisation *u, int64_t time_ns)
{
    if (!GROW(u->series, u->series_capacity, u->series_count + 1))
        return false;
    u->series[u->series_count] = (struct util_series){0};
    return add_point(&u->series[u->series_count++], time_ns, 1);
}

/* More Ps than any machine has: a limit of memory for damaged traces. */
#define MOST_PROCS 65536

static bool set_procs(struct utilisation *u, uint64_t wanted, int64_t time_ns)
{
    size_t count = wanted < MOST_PROCS ? (size_t)wanted : MOST_PROCS;
    bool per_proc = (u->flags & TRAIL_MMU_PER_PROC) != 0;
    for (size_t i = count; per_proc && i < u->proc_count; i++)
        if (!add_point(&u->series[u->procs[i].series], time_ns, 0))
            return false;
    if (!GROW(u->procs, u->proc_capacity, count))
        return false;
    for (size_t i = count; i < u->proc_count; i++)
        u->taken -= u->procs[i].gc > 0;
    for (size_t i = u->proc_count; i < count; i++) {
        u->procs[i] = (struct util_proc){0};
        if (per_proc || u->series_count == 0) {
            u->procs[i].series = u->series_count;
            if (!new_series(u, time_ns))
                return false;
        }
    }
    u->proc_count = count;
    if (u->history_count > 0 && u->history[u->history_count - 1].count == count)
        return true;
    return APPEND(u->history, u->history_capacity, u->history_count,
                  (struct util_procs){time_ns, count});
}

static bool add_now(struct utilisation *u, int64_t time_ns)
{
    bool per_proc = (u->flags & TRAIL_MMU_PER_PROC) != 0;
    for (size_t i = 0; per_proc && i < u->proc_count; i++) {
        bool is_taken = u->stw > 0 || u->procs[i].gc > 0;
        if (!add_point(&u->series[u->procs[i].series], time_ns, is_taken ? 0.0 : 1.0))
            return false;
    }
    if (per_proc || u->proc_count == 0)
        return true;
    size_t taken = u->stw > 0 ? u->proc_count : u->taken;
    return add_point(&u->series[0], time_ns, 1 - (double)taken / (double)u->proc_count);
}

/* A range was open before its first event: one P less, from the start. */
static void take_from_start(struct utilisation *u)
{
    struct util_series *series = &u->series[0];
    size_t at = 0;
    EACH(struct util_point, point, series->points, series->count) {
        while (at + 1 < u->history_count && u->history[at + 1].time_ns < point->time_ns)
            at++;
        point->util -= 1.0 / (double)u->history[at].count;
        if (point->util < 0)
            point->util = 0;
    }
}

/* MARK: Events */

static void count(struct utilisation *u, int64_t proc, int change)
{
    if (proc < 0 || (uint64_t)proc >= u->proc_count)
        return;
    int64_t *gc = &u->procs[proc].gc;
    u->taken -= *gc > 0;
    *gc += change;
    u->taken += *gc > 0;
}

static bool is_gc_stw(const trail_reader *reader, const trail_event *event)
{
    trail_string name = trail_reader_string(reader, event->range.name);
    return event->range.range == TRAIL_RANGE_STW && memmem(name.data, name.size, "GC", 2) != NULL;
}

static bool assist(struct utilisation *u, const trail_event *event, bool begins)
{
    int64_t g = event->range.scope_id;
    unsigned marks = marks_of(u, g);
    count(u, event->proc, begins ? 1 : -1);
    return g < 0 || set_marks(u, g, begins ? marks | MARK_ASSIST : marks & ~(unsigned)MARK_ASSIST);
}

/* Returns 1 if anything changed, 0 if not, -1 if out of memory. */
static int range(struct utilisation *u, const trail_reader *reader, const trail_event *event)
{
    bool begins = event->kind != TRAIL_RANGE_END;
    bool is_assist = (u->flags & TRAIL_MMU_ASSIST) && event->range.range == TRAIL_RANGE_MARK_ASSIST;
    bool is_sweep = (u->flags & TRAIL_MMU_SWEEP) && event->range.range == TRAIL_RANGE_SWEEP;
    if (event->kind == TRAIL_RANGE_ACTIVE) {
        if (u->past_first)
            return 0;
        bool back = is_sweep || (is_assist && event->goroutine >= 0);
        if (back && !(u->flags & TRAIL_MMU_PER_PROC))
            take_from_start(u);
    }
    if (is_sweep)
        count(u, event->proc, begins ? 1 : -1);
    else if (is_assist)
        return assist(u, event, begins) ? 1 : -1;
    else if ((u->flags & TRAIL_MMU_STW) && is_gc_stw(reader, event))
        u->stw += begins ? 1 : -1;
    else
        return 0;
    return 1;
}

static int transition(struct utilisation *u, const trail_event *event)
{
    int64_t g = event->transition.id;
    unsigned marks = u->marks.count ? marks_of(u, g) : 0;
    if (marks == 0 || event->transition.resource != TRAIL_RESOURCE_GOROUTINE)
        return 0;
    bool before = executes(event->transition.from), after = executes(event->transition.to);
    if (before == after)
        return 0;
    count(u, event->proc, after ? 1 : -1);
    if (!(u->flags & TRAIL_MMU_CORRECTED))
        return 1;
    if (event->transition.to == TRAIL_GO_WAITING || event->transition.to == TRAIL_GO_NOT_EXIST)
        marks &= ~(unsigned)MARK_BACKGROUND;
    return set_marks(u, g, marks) ? 1 : -1;
}

static int label(struct utilisation *u, const trail_reader *reader, const trail_event *event)
{
    static const char prefix[] = "GC ", idle[] = "GC (idle)", dedicated[] = "GC (dedicated)";
    trail_string text = trail_reader_string(reader, event->label.text);
    if (!(u->flags & TRAIL_MMU_BACKGROUND) || text.size < sizeof prefix - 1 ||
        memcmp(text.data, prefix, sizeof prefix - 1) != 0)
        return 0;
    if (text.size == sizeof idle - 1 && memcmp(text.data, idle, text.size) == 0)
        return 0;
    if ((u->flags & TRAIL_MMU_PER_PROC) && text.size == sizeof dedicated - 1 &&
        memcmp(text.data, dedicated, text.size) == 0)
        return 0;
    unsigned marks = marks_of(u, event->goroutine);
    if (!(u->flags & TRAIL_MMU_CORRECTED) || !(marks & MARK_BACKGROUND))
        count(u, event->proc, 1);
    return set_marks(u, event->goroutine, marks | MARK_BACKGROUND) ? 1 : -1;
}

/* Takes any event, in order. Returns false if out of memory. */
static bool utilisation_event(struct utilisation *u, const trail_reader *reader,
                              const trail_event *event)
{
    int changed = 0;
    if (event->kind == TRAIL_STATE_TRANSITION && u->marks.count == 0)
        return true;
    switch (event->kind) {
    case TRAIL_SYNC:
        u->past_first = event->sync.n > 1;
        return true;
    case TRAIL_METRIC:
        if (event->metric.metric != TRAIL_METRIC_GOMAXPROCS)
            return true;
        if (!set_procs(u, event->metric.value, event->time_ns))
            return false;
        changed = 1;
        break;
    case TRAIL_RANGE_BEGIN:
    case TRAIL_RANGE_ACTIVE:
    case TRAIL_RANGE_END:
        changed = u->proc_count ? range(u, reader, event) : 0;
        break;
    case TRAIL_STATE_TRANSITION:
        changed = u->proc_count ? transition(u, event) : 0;
        break;
    case TRAIL_LABEL:
        changed = u->proc_count ? label(u, reader, event) : 0;
        break;
    default:
        return true;
    }
    return changed >= 0 && (changed == 0 || add_now(u, event->time_ns));
}

/* MARK: Window and end */

/* Starts counting at the window's start. Returns false if out of memory. */
static bool utilisation_count_from(struct utilisation *u, int64_t ns)
{
    bool per_proc = (u->flags & TRAIL_MMU_PER_PROC) != 0;
    size_t needed = per_proc ? u->proc_count : u->proc_count > 0;
    for (size_t i = 0; i < u->series_count; i++)
        u->series[i].count = 0;
    for (size_t i = 0; i < needed; i++) {
        struct util_series ours = u->series[u->procs[i].series];
        u->series[u->procs[i].series] = u->series[i];
        u->series[i] = ours;
        u->procs[i].series = i;
    }
    for (size_t i = needed; i < u->series_count; i++)
        free(u->series[i].points);
    u->series_count = needed;
    if (u->history_count > 1) {
        u->history[0] = u->history[u->history_count - 1];
        u->history_count = 1;
    }
    return add_now(u, ns);
}

/* Go ends a series with a share of 0, so that an earlier share of 0 ends it early. */
static bool end_series(struct utilisation *u, struct util_series *series, int64_t ns)
{
    if (!(u->flags & TRAIL_MMU_CORRECTED))
        return add_point(series, ns, 0);
    return APPEND(series->points, series->capacity, series->count, (struct util_point){ns, 0});
}

/* Called at the end. Returns false if out of memory. */
static bool utilisation_finish(struct utilisation *u, int64_t ns)
{
    bool per_proc = (u->flags & TRAIL_MMU_PER_PROC) != 0;
    for (size_t i = 0; i < (per_proc ? u->proc_count : u->proc_count > 0); i++)
        if (!end_series(u, &u->series[u->procs[i].series], ns))
            return false;
    return true;
}

static void utilisation_free(struct utilisation *u)
{
    for (size_t i = 0; i < u->series_count; i++)
        free(u->series[i].points);
    free(u->series);
    free(u->procs);
    free(u->history);
    idmap_free(&u->marks);
}

/* MARK: The part */

static bool init(void *part, struct trail_analysis *analysis)
{
    struct utilisations *both = part;
    both->reader = analysis->reader;
    for (int i = 0; i < 2; i++)
        both->curves[i].flags = analysis->options.mmu_flags[i];
    return true;
}

static bool take_events(void *part, const trail_event *event, const trail_event *end)
{
    struct utilisations *both = part;
    for (int i = 0; i < 2 && both->curves[i].flags; i++)
        for (const trail_event *e = event; e < end; e++)
            if (!utilisation_event(&both->curves[i], both->reader, e))
                return false;
    return true;
}

static bool window_begins(void *part, int64_t ns)
{
    struct utilisations *both = part;
    for (int i = 0; i < 2 && both->curves[i].flags; i++)
        if (!utilisation_count_from(&both->curves[i], ns))
            return false;
    return true;
}

static bool window_ends(void *part, int64_t ns)
{
    struct utilisations *both = part;
    return utilisation_finish(&both->curves[0], ns) && utilisation_finish(&both->curves[1], ns);
}

static void drop(void *part)
{
    struct utilisations *both = part;
    utilisation_free(&both->curves[0]);
    utilisation_free(&both->curves[1]);
}

const struct analysis_part utilisation_part = {
    .what = TRAIL_ANALYZE_MMU,
    .size = sizeof(struct utilisations),
    .init = init,
    .free = drop,
    .window_begins = window_begins,
    .window_ends = window_ends,
    .events = take_events,
};

/* Returns an empty one if there is none. */
static const struct utilisation *curve_of(const trail_analysis *analysis, unsigned curve)
{
    static const struct utilisation none;
    const struct utilisations *both = analysis_object(analysis, &utilisation_part);
    return both ? &both->curves[curve] : &none;
}

double trail_analysis_mmu(const trail_analysis *analysis, unsigned curve, int64_t window_ns)
{
    return curve < 2 ? utilisation_least(curve_of(analysis, curve), window_ns) : 0;
}

double trail_analysis_mmu_quantile(const trail_analysis *analysis, unsigned curve,
                                   int64_t window_ns, double quantile)
{
    if (curve >= 2)
        return 0;
    return utilisation_quantile(curve_of(analysis, curve), window_ns, quantile);
}

size_t trail_analysis_mmu_worst(const trail_analysis *analysis, unsigned curve, int64_t window_ns,
                                trail_mmu_window *worst, size_t most)
{
    if (curve >= 2)
        return 0;
    return utilisation_worst(curve_of(analysis, curve), window_ns, worst, most);
}
