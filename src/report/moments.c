#include "report/moments.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyze/goroutines.h"
#include "base/grow.h"
#include "base/order.h"
#include "base/text.h"
#include "base/whole.h"
#include "report/overview.h"

/* Margin on either side of a moment: a share of it, and a minimum. */
#define PAD_SHARE    12
#define PAD_LEAST_NS 5000

/* Number of findings and of waits to draw. */
enum { FINDING_MOMENTS = 5, WAIT_MOMENTS = 3 };

/* MARK: Choosing */

const struct moment *moments_showing(const struct moments *all, int64_t goroutine, int64_t begin_ns,
                                     int64_t end_ns)
{
    for (size_t i = 0; i < all->count; i++) {
        const struct moment *moment = &all->list[i];
        if (moment->goroutine == goroutine && moment->from_ns <= begin_ns &&
            end_ns <= moment->to_ns &&
            ns_between(begin_ns, end_ns) >= ns_between(moment->begin_ns, moment->end_ns) / 2)
            return moment;
    }
    return NULL;
}

/* Adds a moment, unless there is no room or one shows it. */
static struct moment *put(struct moments *all, const trail_analysis *answers, int64_t goroutine,
                          int64_t begin_ns, int64_t end_ns)
{
    trail_analysis_span span;
    trail_analysis_get_span(answers, &span);
    if (all->count == MOMENTS || end_ns <= begin_ns ||
        moments_showing(all, goroutine, begin_ns, end_ns))
        return NULL;
    struct moment *moment = &all->list[all->count++];
    int64_t pad = ns_between(begin_ns, end_ns) / PAD_SHARE;
    if (pad < PAD_LEAST_NS)
        pad = PAD_LEAST_NS;
    *moment = (struct moment){
        .goroutine = goroutine, .ended_by = TRAIL_NONE, .begin_ns = begin_ns, .end_ns = end_ns};
    moment->from_ns =
        ns_between(span.begin_ns, begin_ns) < pad ? span.begin_ns : ns_between(pad, begin_ns);
    moment->to_ns = ns_between(end_ns, span.end_ns) < pad ? span.end_ns : ns_behind(end_ns, pad);
    moment->label_ns = ns_between(moment->from_ns, moment->to_ns) / (LANE_LABELS + 1);
    return moment;
}

static struct moment *put_longest(struct moments *all, const trail_analysis *answers,
                                  const trail_longest *longest)
{
    return put(all, answers, longest->goroutine, longest->begin_ns,
               ns_behind(longest->begin_ns, longest->ns));
}

static void pick_findings(struct moments *all, const trail_analysis *answers)
{
    const trail_finding *findings;
    size_t count = trail_analysis_findings(answers, &findings);
    for (size_t i = 0; i < count && all->count < FINDING_MOMENTS; i++) {
        const trail_finding *f = &findings[i];
        struct moment *moment =
            f->has_moment ? put(all, answers, f->goroutine, f->begin_ns, f->end_ns) : NULL;
        if (!moment)
            continue;
        moment->finding = i + 1;
        (void)snprintf(moment->title, sizeof moment->title, "%s", f->heading);
    }
}

static int shown_size(trail_string text)
{
    return (int)(text.size < 160 ? text.size : 160);
}

static void pick_waits(struct moments *all, const trail_analysis *answers,
                       const struct vocabulary *words)
{
    size_t count, picked = 0;
    trail_name reasons[WAIT_MOMENTS]; /* one for each reason */
    struct overview_wait *waits = overview_waits(answers, false, &count);
    for (size_t i = 0; waits && i < count && picked < WAIT_MOMENTS && !waits[i].system; i++) {
        const trail_longest *longest = &waits[i].wait->longest;
        trail_string reason =
            words_reason(words, trail_analysis_text(answers, waits[i].wait->reason));
        trail_string name = trail_analysis_text(answers, waits[i].group->name);
        size_t known = 0;
        while (known < picked && reasons[known] != waits[i].wait->reason)
            known++;
        struct moment *moment = known == picked ? put_longest(all, answers, longest) : NULL;
        if (!moment)
            continue;
        reasons[picked++] = waits[i].wait->reason;
        (void)snprintf(moment->title, sizeof moment->title, "The longest wait (%.*s) of %s%s%.*s",
                       shown_size(reason), reason.data, term(words, TERM_tasks),
                       name.size > 0 ? " of " : "", shown_size(name), name.data);
    }
    free(waits);
}

static void pick_ready(struct moments *all, const trail_analysis *answers,
                       const struct vocabulary *words)
{
    const trail_wait_group *const *groups, *worst = NULL;
    size_t count = trail_analysis_waits(answers, &groups);
    for (size_t i = 0; i < count; i++)
        if (!worst || groups[i]->ready_longest.ns > worst->ready_longest.ns)
            worst = groups[i];
    struct moment *moment = worst ? put_longest(all, answers, &worst->ready_longest) : NULL;
    if (moment)
        (void)snprintf(moment->title, sizeof moment->title,
                       "The longest time that a %s was ready and did not run",
                       term(words, TERM_task));
}

static void pick_lock(struct moments *all, const trail_analysis *answers)
{
    const trail_lock *const *locks;
    size_t count = trail_analysis_locks(answers, &locks);
    struct moment *moment = count > 0 ? put_longest(all, answers, &locks[0]->longest) : NULL;
    if (!moment)
        return;
    trail_string kind = trail_analysis_text(answers, locks[0]->kind);
    trail_string name = trail_analysis_text(answers, locks[0]->name);
    (void)snprintf(moment->title, sizeof moment->title,
                   "The longest wait for the lock that is waited for most: %.*s%s%.*s",
                   shown_size(kind), kind.data, name.size > 0 ? " " : "", shown_size(name),
                   name.data);
}

static void pick_pause(struct moments *all, const trail_analysis *answers)
{
    size_t count;
    int64_t sum_ns;
    const trail_gc_pause *pause = overview_pauses(answers, &count, &sum_ns);
    struct moment *moment =
        pause ? put(all, answers, pause->goroutine, pause->begin_ns, pause->end_ns) : NULL;
    if (moment)
        (void)snprintf(moment->title, sizeof moment->title,
                       "The longest stop-the-world pause: %.*s",
                       shown_size(trail_analysis_text(answers, pause->name)),
                       trail_analysis_text(answers, pause->name).data);
}

void moments_pick(struct moments *all, const trail_analysis *answers,
                  const struct vocabulary *words)
{
    pick_findings(all, answers);
    pick_ready(all, answers, words);
    pick_lock(all, answers);
    pick_waits(all, answers, words);
    pick_pause(all, answers);
}

/* MARK: Lanes */

/* Returns the goroutine's lane; NULL if there is no room, or if out of memory. */
static struct lane *lane_get(struct moments *all, struct moment *moment, int64_t id)
{
    struct lane *lane = idmap_find(&moment->by_id, (uint64_t)id);
    if (lane)
        return lane;
    /* One lane is reserved for the moment's goroutine. */
    if (moment->lane_count + (id != moment->goroutine) >= MOMENT_LANES) {
        moment->left_out++;
        return NULL;
    }
    bool room = GROW(moment->lanes, moment->lane_capacity, moment->lane_count + 1);
    lane = room ? calloc(1, sizeof *lane) : NULL;
    if (!lane || !idmap_put(&moment->by_id, (uint64_t)id, lane)) {
        free(lane);
        all->no_memory = true;
        return NULL;
    }
    lane->id = id;
    moment->lanes[moment->lane_count++] = lane;
    return lane;
}

static double bin_length(const struct moment *moment)
{
    return (double)ns_between(moment->from_ns, moment->to_ns) / LANE_BINS;
}

static void add_label(const struct moment *moment, struct lane *lane, trail_name wait, int64_t from,
                      int64_t to)
{
    if (ns_between(from, to) > moment->label_ns && lane->label_count < LANE_LABELS)
        lane->labels[lane->label_count++] = (struct lane_label){from, to, wait};
}

/* Adds the part of [from, to) within the moment to the goroutine's time in that state. */
static void lane_add(struct moments *all, const struct moment *moment, struct lane *lane,
                     enum drawn_state drawn, trail_name wait, int64_t from, int64_t to)
{
    from = from < moment->from_ns ? moment->from_ns : from;
    to = to > moment->to_ns ? moment->to_ns : to;
    if (drawn == DRAWN_NONE || to <= from)
        return;
    size_t state = drawn;
    if (drawn == DRAWN_WAITING) {
        enum wait_class class = drawn_class_of(&all->drawn, wait);
        state += class;
        if (class != WAIT_CLASS_IDLE)
            add_label(moment, lane, wait, from, to);
    }
    double length = bin_length(moment), at = (double)ns_between(moment->from_ns, from);
    double end = (double)ns_between(moment->from_ns, to);
    lane->run_ns += drawn == DRAWN_RUNNING ? end - at : 0;
    for (size_t bin = (size_t)whole_within(at / length, 0, LANE_BINS); bin < LANE_BINS && at < end;
         bin++) {
        double edge = (double)(bin + 1) * length, stop = edge < end ? edge : end;
        lane->ns[bin][state] += (float)(stop > at ? stop - at : 0);
        at = stop > at ? stop : at;
    }
}

static void note_wake(struct moments *all, struct moment *moment, const struct drawn *g,
                      const trail_event *event)
{
    if (event->goroutine == g->id || event->goroutine == TRAIL_NONE)
        return;
    if (g->id == moment->goroutine) {
        struct lane *waker = lane_get(all, moment, event->goroutine);
        if (waker)
            waker->wakes++;
        if (event->time_ns > moment->begin_ns && event->time_ns <= moment->end_ns)
            moment->ended_by = event->goroutine;
        if (moment->wake_count < MOMENT_WAKES)
            moment->wakes[moment->wake_count++] =
                (struct moment_wake){event->time_ns, event->goroutine};
    } else if (event->goroutine == moment->goroutine) {
        struct lane *woken = lane_get(all, moment, g->id);
        if (woken)
            woken->woken++;
    }
}

static bool hook(void *context, const struct drawn *g, enum drawn_state to,
                 const trail_event *event)
{
    struct moments *all = context;
    for (size_t i = 0; i < all->count; i++) {
        struct moment *moment = &all->list[i];
        if (moment->closed || event->time_ns <= moment->from_ns)
            continue;
        struct lane *lane = lane_get(all, moment, g->id);
        if (lane) {
            /* Before its first event, a goroutine was in that event's previous state, unless it was
             * created. */
            bool known = g->drawn != DRAWN_NONE;
            bool was = known || event->transition.from == TRAIL_GO_UNDETERMINED;
            lane->name = g->name;
            if (was)
                lane_add(all, moment, lane, known ? g->drawn : to, known ? g->wait : 0, g->drawn_ns,
                         event->time_ns);
        }
        if (g->drawn == DRAWN_WAITING && to == DRAWN_RUNNABLE && event->time_ns <= moment->to_ns)
            note_wake(all, moment, g, event);
    }
    return !all->no_memory;
}

/* MARK: The end of a moment */

/* Orders lanes: the moment's goroutine, the one that ended its wait (such as the holder of a lock),
 * then by waits for the same lock, wake-ups of it, wake-ups by it, and running time. */
static int by_interest(const void *a, const void *b, void *context)
{
    const struct lane *x = *(struct lane *const *)a, *y = *(struct lane *const *)b;
    const struct moment *moment = context;
    return ORDER(y->id == moment->goroutine, x->id == moment->goroutine) ?:
           ORDER(y->id == moment->ended_by, x->id == moment->ended_by) ?:
           ORDER(x->is_aside, y->is_aside) ?: ORDER(y->shared_ns, x->shared_ns) ?:
           ORDER(y->wakes, x->wakes) ?: ORDER(y->woken > 0, x->woken > 0) ?:
           ORDER(y->run_ns, x->run_ns) ?: ORDER(x->id, y->id);
}

/*
 * Returns the lock for which the moment's goroutine has its longest labelled wait in the case; 0:
 * none, or it is not known which one, as in a trace of Go.
 */
static trail_name lock_of(struct moments *all, const struct moment *moment)
{
    const struct lane *lane = idmap_find(&moment->by_id, (uint64_t)moment->goroutine);
    const struct lane_label *longest = NULL;
    for (size_t i = 0; lane && i < lane->label_count; i++) {
        const struct lane_label *label = &lane->labels[i];
        if (!longest ||
            ns_between(label->from_ns, label->to_ns) > ns_between(longest->from_ns, longest->to_ns))
            longest = label;
    }
    if (!longest || drawn_class_of(&all->drawn, longest->wait) != WAIT_CLASS_LOCK)
        return 0;
    return wait_for_of(&all->drawn.names, longest->wait).object ? longest->wait : 0;
}

static void note_shared(struct moments *all, struct moment *moment)
{
    trail_name lock = lock_of(all, moment);
    for (size_t i = 0; lock && i < moment->lane_count; i++) {
        struct lane *lane = moment->lanes[i];
        for (size_t n = 0; n < lane->label_count; n++)
            if (lane->labels[n].wait == lock)
                lane->shared_ns += ns_between(lane->labels[n].from_ns, lane->labels[n].to_ns);
    }
}

/* Above this share of the moment, what the runtime ran kept others from it. */
#define RAN_MUCH 0.1

static void note_aside(struct moments *all, struct moment *moment)
{
    for (size_t i = 0; i < moment->lane_count; i++) {
        struct lane *lane = moment->lanes[i];
        trail_string name = names_text(&all->drawn.names, lane->name);
        lane->is_aside =
            name.size > 0 && (trail_is_system_goroutine(name) || text_begins(name, "runtime/")) &&
            lane->id != moment->goroutine && lane->id != moment->ended_by &&
            lane->wakes + lane->woken == 0 &&
            lane->run_ns < RAN_MUCH * (double)ns_between(moment->from_ns, moment->to_ns);
    }
}

/* Ends open states, and gives a lane to goroutines that did not only wait. */
static void close_moment(struct moments *all, struct moment *moment)
{
    const struct idmap *alive = &all->drawn.follow.alive;
    IDMAP_EACH(slot, alive) {
        const struct drawn *g = slot->value;
        if (g->drawn == DRAWN_WAITING && g->id != moment->goroutine &&
            !idmap_find(&moment->by_id, (uint64_t)g->id))
            continue;
        struct lane *lane = lane_get(all, moment, g->id);
        if (!lane)
            continue;
        lane->name = g->name ? g->name : lane->name;
        lane_add(all, moment, lane, g->drawn, g->wait, g->drawn_ns, moment->to_ns);
    }
    note_shared(all, moment);
    note_aside(all, moment);
    if (moment->lane_count > 1)
        qsort_r(moment->lanes, moment->lane_count, sizeof(void *), by_interest, moment);
    moment->closed = true;
    all->open--;
}

void moments_open(struct moments *all, const trail_reader *reader)
{
    all->open = all->count;
    drawn_init(&all->drawn, reader, hook, all);
}

int moments_feed(struct moments *all, const trail_event *events, long count)
{
    drawn_batch(&all->drawn);
    for (long i = 0; i < count && all->open > 0; i++) {
        for (size_t n = 0; n < all->count; n++)
            if (!all->list[n].closed && events[i].time_ns > all->list[n].to_ns)
                close_moment(all, &all->list[n]);
        if (!drawn_event(&all->drawn, &events[i]))
            return -1;
    }
    return all->no_memory ? -1 : all->open > 0;
}

void moments_finish(struct moments *all)
{
    for (size_t n = 0; n < all->count; n++)
        if (!all->list[n].closed)
            close_moment(all, &all->list[n]);
}

void moments_free(struct moments *all)
{
    for (size_t i = 0; i < all->count; i++) {
        struct moment *moment = &all->list[i];
        for (size_t n = 0; n < moment->lane_count; n++)
            free(moment->lanes[n]);
        free(moment->lanes);
        idmap_free(&moment->by_id);
    }
    drawn_free(&all->drawn);
}
