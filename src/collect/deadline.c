/* Reads the clock for the work: see deadline.h. */
#include "collect/deadline.h"

#include "collect/parts.h"

/* No names are looked for in the last moments before the end. */
#define WITHOUT_NAMES_NS 300000000

/* The clock is read once in so many pieces of work. */
#define PIECES 1024

void deadline_set(struct collect *c, uint64_t ns)
{
    struct deadline *d = &c->deadline;
    d->until_ns = ns == UINT64_MAX ? ns : clock_ns(CLOCK_MONOTONIC) + ns;
    d->late = d->hurried = false;
}

static bool wants_to_end(const struct collect *c)
{
    return c->options.is_hurried && c->options.is_hurried(c->options.is_hurried_context);
}

/* The user waits for the end. */
static void hurry(struct collect *c)
{
    deadline_set(c, COLLECT_HURRY_NS);
    c->deadline.hurried = true;
}

void deadline_set_last(struct collect *c)
{
    deadline_set(c, UINT64_MAX);
    if (wants_to_end(c))
        hurry(c);
}

bool deadline_is_over(struct collect *c)
{
    struct deadline *d = &c->deadline;
    if (d->late || ++d->pieces % PIECES != 0)
        return d->late;
    if (d->until_ns == UINT64_MAX && wants_to_end(c))
        hurry(c);
    d->late = clock_ns(CLOCK_MONOTONIC) > d->until_ns;
    return d->late;
}

bool deadline_was_over(const struct collect *c)
{
    return c->deadline.late;
}

bool deadline_allows_names(const struct collect *c)
{
    return !c->deadline.hurried ||
           clock_ns(CLOCK_MONOTONIC) + WITHOUT_NAMES_NS < c->deadline.until_ns;
}
