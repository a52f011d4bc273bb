#include "report/series.h"

#include <string.h>

#include "analyze/goroutines.h"

/* MARK: Slots */

static void merge_slots(struct series *s)
{
    for (size_t i = 0; i < SERIES_SLOTS; i += 2) {
        struct series_slot a = s->slots[i], b = s->slots[i + 1];
        for (int state = 0; state < DRAWN_STATES; state++)
            ns_add(&a.ns[state], b.ns[state]);
        a.heap = a.heap > b.heap ? a.heap : b.heap;
        a.goal = a.goal > b.goal ? a.goal : b.goal;
        s->slots[i / 2] = a;
    }
    memset(&s->slots[SERIES_SLOTS / 2], 0, sizeof s->slots / 2);
    if (__builtin_mul_overflow(s->slot_ns, 2, &s->slot_ns))
        s->slot_ns = INT64_MAX;
}

/* Returns the slot of a time that is not before the start. */
static size_t slot_at(struct series *s, int64_t ns)
{
    uint64_t behind = (uint64_t)ns_between(s->begin_ns, ns);
    while (behind / (uint64_t)s->slot_ns >= SERIES_SLOTS)
        merge_slots(s);
    return (size_t)(behind / (uint64_t)s->slot_ns);
}

/* Adds `count` goroutines in that state during [from, to). */
static void add(struct series *s, enum drawn_state state, int64_t count, int64_t from, int64_t to)
{
    from = from < s->begin_ns ? s->begin_ns : from;
    to = s->has_to && to > s->to_ns ? s->to_ns : to;
    if (count == 0 || to <= from)
        return;
    size_t last = slot_at(s, to - 1), slot = slot_at(s, from);
    for (; slot <= last; slot++) {
        int64_t end = slot == last ? to : ns_behind(s->begin_ns, (int64_t)(slot + 1) * s->slot_ns);
        int64_t part = ns_between(from, end);
        ns_add(&s->slots[slot].ns[state], (int64_t)((uint64_t)count * (uint64_t)part));
        from = end;
    }
}

static void advance(struct series *s, int64_t now)
{
    if (now <= s->last_ns)
        return;
    for (int state = 0; state < DRAWN_STATES; state++)
        add(s, (enum drawn_state)state, s->counts[state], s->last_ns, now);
    s->last_ns = now;
}

/* MARK: Events */

/* A lasting state at a goroutine's first event began earlier: no event reports a state that
 * continues. */
static bool hook(void *context, const struct drawn *g, enum drawn_state to,
                 const trail_event *event)
{
    struct series *s = context;
    bool lasts = to == DRAWN_WAITING || to == DRAWN_SYSCALL || to == DRAWN_P_RELEASED;
    advance(s, event->time_ns);
    if (g->drawn == DRAWN_NONE && lasts && event->transition.from == TRAIL_GO_UNDETERMINED)
        add(s, to, 1, g->drawn_ns, event->time_ns);
    s->counts[g->drawn] -= g->drawn != DRAWN_NONE;
    s->counts[to]++;
    return true;
}

static void metric(struct series *s, const trail_event *event)
{
    bool heap = event->metric.metric == TRAIL_METRIC_HEAP_LIVE;
    int64_t now = event->time_ns > s->begin_ns ? event->time_ns : s->begin_ns;
    if ((!heap && event->metric.metric != TRAIL_METRIC_HEAP_GOAL) || (s->has_to && now > s->to_ns))
        return;
    struct series_slot *slot = &s->slots[slot_at(s, now)];
    uint64_t *most = heap ? &slot->heap : &slot->goal;
    s->has_heap = s->has_heap || heap;
    *most = event->metric.value > *most ? event->metric.value : *most;
}

static void begin(struct series *s, const trail_event *event)
{
    s->begun = true;
    s->begin_ns = s->has_from ? ns_behind(event->time_ns, s->from_ns) : event->time_ns;
    s->to_ns = s->has_to ? ns_behind(event->time_ns, s->to_ns) : 0;
    s->last_ns = s->begin_ns;
}

bool series_feed(struct series *s, const trail_event *events, long count)
{
    drawn_batch(&s->drawn);
    for (long i = 0; i < count; i++) {
        const trail_event *event = &events[i];
        if (!s->begun)
            begin(s, event);
        if (event->kind == TRAIL_METRIC)
            metric(s, event);
        if (event->kind == TRAIL_SYNC && !s->has_wall)
            s->has_wall = trail_reader_wall_clock(s->reader, event, &s->wall);
        if (!drawn_event(&s->drawn, event))
            return false;
    }
    return true;
}

/* MARK: Begin and end */

void series_init(struct series *s, const trail_reader *reader, const trail_analysis_options *window)
{
    *s = (struct series){
        .reader = reader,
        .slot_ns = 1000,
        .has_from = window->has_from,
        .has_to = window->has_to,
        .from_ns = window->from_ns,
        .to_ns = window->to_ns,
    };
    drawn_init(&s->drawn, reader, hook, s);
}

void series_finish(struct series *s, int64_t end_ns)
{
    advance(s, end_ns);
    s->end_ns = end_ns;
}

void series_free(struct series *s)
{
    drawn_free(&s->drawn);
}

size_t series_count(const struct series *s)
{
    int64_t length = ns_between(s->begin_ns, s->end_ns);
    int64_t count = length <= 0 ? 0 : (length - 1) / s->slot_ns + 1;
    return count > SERIES_SLOTS ? SERIES_SLOTS : (size_t)count;
}

int64_t series_length(const struct series *s, size_t slot)
{
    int64_t rest = ns_between(s->begin_ns, s->end_ns) - (int64_t)slot * s->slot_ns;
    return rest < s->slot_ns ? rest : s->slot_ns;
}
