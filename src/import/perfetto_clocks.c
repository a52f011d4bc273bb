/* Converts times between the clocks of a Perfetto trace by its clock snapshots. */
#include "import/perfetto_clocks.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/order.h"
#include "base/search.h"
#include "wire/perfetto.h"

/* About 146 years: the difference of two times does not overflow. */
#define MOST_NS (INT64_MAX / 2)

/* One clock in a snapshot. */
struct reading {
    uint64_t id, time, unit_ns;
    bool incremental;
};

static bool next_reading(struct proto *snapshot, struct reading *reading)
{
    struct proto_field field, part;
    while (proto_next(snapshot, &field)) {
        if (field.id != SNAPSHOT_CLOCKS || field.type != PROTO_BYTES)
            continue;
        *reading = (struct reading){.unit_ns = 1};
        while (proto_next(&field.bytes, &part)) {
            if (part.id == CLOCK_ID)
                reading->id = part.number;
            else if (part.id == CLOCK_TIMESTAMP)
                reading->time = part.number;
            else if (part.id == CLOCK_IS_INCREMENTAL)
                reading->incremental = part.number != 0;
            else if (part.id == CLOCK_UNIT_NS && part.number > 0)
                reading->unit_ns = part.number;
        }
        return true;
    }
    return false;
}

static bool to_ns(uint64_t time, uint64_t unit_ns, int64_t *ns)
{
    uint64_t product;
    if (__builtin_mul_overflow(time, unit_ns, &product) || product > MOST_NS)
        return false;
    *ns = (int64_t)product;
    return true;
}

/* MARK: Snapshots */

/* Finds a clock's reading. */
static bool find_reading(struct proto snapshot, uint64_t id, struct reading *reading)
{
    while (next_reading(&snapshot, reading))
        if (reading->id == id)
            return true;
    return false;
}

void clocks_take(struct perfetto_clocks *clocks, struct proto snapshot)
{
    struct reading trace, reading;
    struct clock_point point;
    if (!find_reading(snapshot, CLOCK_OF_TRACE, &trace) || !to_ns(trace.time, 1, &point.trace_ns))
        return;
    while (next_reading(&snapshot, &reading)) {
        if (reading.id >= CLOCKS_OF_SEQUENCE || reading.id == CLOCK_OF_TRACE ||
            !to_ns(reading.time, reading.unit_ns, &point.ns))
            continue;
        struct clock_points *of = &clocks->of[reading.id];
        if (GROW(of->items, of->room, of->count + 1))
            of->items[of->count++] = point;
        else
            clocks->failed = true;
    }
}

static int by_ns(const void *a, const void *b)
{
    const struct clock_point *x = a, *y = b;
    return ORDER(x->ns, y->ns);
}

void clocks_sort(struct perfetto_clocks *clocks)
{
    for (size_t i = 0; i < CLOCKS_OF_SEQUENCE; i++)
        if (clocks->of[i].count > 1)
            qsort(clocks->of[i].items, clocks->of[i].count, sizeof *clocks->of[i].items, by_ns);
}

void clocks_free(struct perfetto_clocks *clocks)
{
    for (size_t i = 0; i < CLOCKS_OF_SEQUENCE; i++)
        free(clocks->of[i].items);
}

/* Finds the machine's clock to which the others are related: the trace's own, if present. */
static bool find_base(struct proto snapshot, struct reading *base)
{
    struct proto rest = snapshot;
    if (find_reading(snapshot, CLOCK_OF_TRACE, base))
        return true;
    while (next_reading(&rest, base))
        if (base->id > 0 && base->id < CLOCKS_OF_SEQUENCE)
            return true;
    return false;
}

static struct sequence_clock *find_own(const struct sequence_clocks *own, uint64_t id)
{
    for (size_t i = 0; i < own->count; i++)
        if (own->items[i].id == id)
            return &own->items[i];
    return NULL;
}

static bool set_own(struct sequence_clocks *own, const struct sequence_clock *clock)
{
    struct sequence_clock *known = find_own(own, clock->id);
    if (!known && !GROW_SMALL(own->items, own->room, own->count + 1))
        return false;
    if (!known)
        known = &own->items[own->count++];
    *known = *clock;
    return true;
}

bool clocks_take_own(struct sequence_clocks *own, struct proto snapshot)
{
    struct reading base, reading;
    struct sequence_clock clock;
    if (!find_base(snapshot, &base) || !to_ns(base.time, base.unit_ns, &clock.base_ns))
        return true;
    while (next_reading(&snapshot, &reading)) {
        if (reading.id < CLOCKS_OF_SEQUENCE || reading.id >= CLOCKS_END ||
            !to_ns(reading.time, reading.unit_ns, &clock.own_ns))
            continue;
        clock.id = (uint32_t)reading.id;
        clock.base = (uint32_t)base.id;
        clock.unit_ns = reading.unit_ns;
        clock.incremental = reading.incremental;
        if (!set_own(own, &clock))
            return false;
    }
    return true;
}

/* MARK: Times */

static int64_t of_machine(const struct perfetto_clocks *clocks, uint64_t clock, int64_t ns)
{
    const struct clock_points *of = &clocks->of[clock];
    if (of->count == 0)
        return ns;
    size_t behind = SEARCH(i, 0, of->count, of->items[i].ns <= ns);
    const struct clock_point *point = &of->items[behind > 0 ? behind - 1 : 0];
    return ns - point->ns + point->trace_ns;
}

bool clocks_trace_ns(const struct perfetto_clocks *clocks, struct sequence_clocks *own,
                     uint64_t clock, uint64_t time, int64_t *ns)
{
    if (clock < CLOCKS_OF_SEQUENCE || clock >= CLOCKS_END) {
        if (!to_ns(time, 1, ns))
            return false;
        *ns = clock < CLOCKS_OF_SEQUENCE ? of_machine(clocks, clock, *ns) : *ns;
        return true;
    }
    struct sequence_clock *mine = find_own(own, clock);
    if (!mine || !to_ns(time, mine->unit_ns, ns))
        return false;
    int64_t passed = mine->incremental ? *ns : *ns - mine->own_ns;
    *ns = mine->base_ns + passed;
    if (mine->incremental)
        mine->base_ns = *ns <= MOST_NS ? *ns : MOST_NS;
    *ns = of_machine(clocks, mine->base, *ns);
    return true;
}
