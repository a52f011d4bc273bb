/* Keeps the time limits of the collector's work: see deadline.h. */
#include "collect/deadline.h"

#include "collect/parts.h"

/* In the last moments before the end, code is left unnamed. */
#define WITHOUT_NAMES_NS 300000000

/* The clock is read once per this many pieces of work. */
#define PIECES 1024

void deadline_set(struct trace *t, uint64_t ns)
{
    struct deadline *d = &t->deadline;
    d->until_ns = ns == UINT64_MAX ? ns : clock_ns(CLOCK_MONOTONIC) + ns;
    d->late = d->hurried = false;
}

static bool wants_to_end(const struct trace *t)
{
    return t->options.is_hurried && t->options.is_hurried(t->options.is_hurried_context);
}

/* The user waits for the end. */
static void hurry(struct trace *t)
{
    deadline_set(t, COLLECT_HURRY_NS);
    t->deadline.hurried = true;
}

void deadline_set_last(struct trace *t)
{
    deadline_set(t, UINT64_MAX);
    if (wants_to_end(t))
        hurry(t);
}

bool deadline_is_over(struct trace *t)
{
    struct deadline *d = &t->deadline;
    if (d->late || ++d->pieces % PIECES != 0)
        return d->late;
    if (d->until_ns == UINT64_MAX && wants_to_end(t))
        hurry(t);
    d->late = clock_ns(CLOCK_MONOTONIC) > d->until_ns;
    return d->late;
}

bool deadline_allows_names(const struct trace *t)
{
    return !t->deadline.hurried ||
           clock_ns(CLOCK_MONOTONIC) + WITHOUT_NAMES_NS < t->deadline.until_ns;
}
