/* Compares how long something lasts with its limit: see slow.h. */
#include "collect/slow.h"

#include <stdio.h>
#include <string.h>

#include "base/duration.h"

/* Open tasks, regions and waits are checked this often. */
#define LOOK_NS 50000000

static bool is_about(const struct slow_limit *limit, const struct slow_candidate *candidate)
{
    if (limit->what != candidate->what)
        return false;
    if (limit->what == SLOW_WAIT)
        return limit->waits >> candidate->wait & 1;
    return !limit->name || strcmp(limit->name, candidate->name) == 0;
}

const struct slow_limit *slow_find(const struct slow *slow, const struct slow_candidate *candidate)
{
    int64_t lasted_ns = candidate->lasted_ns / (candidate->ended ? 1 : SLOW_OPEN);
    if (candidate->span->number && !candidate->ended)
        return NULL;
    for (size_t i = 0; i < slow->limits.count; i++) {
        if (lasted_ns > slow->limits.at[i].ns && is_about(&slow->limits.at[i], candidate))
            return &slow->limits.at[i];
    }
    return NULL;
}

void slow_report(struct slow *slow, const struct slow_candidate *candidate,
                 const struct slow_limit *limit, const char *text)
{
    struct slow_span *span = candidate->span;
    struct slow_event event = {.again = span->number != 0,
                               .ended = candidate->ended,
                               .limit_ns = limit->ns,
                               .begin_ns = span->begin_ns,
                               .goroutine = candidate->goroutine,
                               .lasted_ns = candidate->lasted_ns};
    if (!event.again)
        span->number = ++slow->reports;
    event.number = span->number;
    (void)snprintf(event.text, sizeof event.text, "%s", text);
    slow->limits.found(slow->limits.context, &event);
}

void slow_line(const struct slow_event *event, char text[SLOW_LINE])
{
    char lasted[DURATION_SIZE], limit[DURATION_SIZE];
    (void)snprintf(text, SLOW_LINE, "%s %s %s (> %s)%s", event->text,
                   event->ended ? "took" : "has taken",
                   duration_text(lasted, event->lasted_ns, DURATION_WORDS),
                   duration_text(limit, event->limit_ns, DURATION_WORDS),
                   event->ended ? "" : " and has not ended");
}

void slow_look_at(struct slow *slow, const struct slow_candidate *candidate)
{
    const struct slow_limit *limit = slow_find(slow, candidate);
    char text[SLOW_TEXT];
    if (!limit)
        return;
    (void)snprintf(text, sizeof text, "%s %s", candidate->what == SLOW_TASK ? "task" : "region",
                   candidate->name);
    slow_report(slow, candidate, limit, text);
}

bool slow_is_due(struct slow *slow, int64_t ns)
{
    if (!slow->limits.count || ns < slow->looked_ns + LOOK_NS)
        return false;
    slow->looked_ns = ns;
    return true;
}
