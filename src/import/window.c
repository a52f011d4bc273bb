/* Sorts events by time: see window.h. */
#include "import/window.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/heap.h"

static bool is_before(const struct import_event *a, const struct import_event *b)
{
    return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->order < b->order;
}

HEAP(events, struct import_event, is_before)

void import_event_free(struct import_event *event)
{
    free(event->stack);
    free(event->text);
    event->stack = NULL;
    event->text = NULL;
}

bool import_window_put(struct import_window *window, const struct import_event *event)
{
    struct import_event own = *event;
    if (own.time_ns < window->delivered_ns) {
        window->late++;
        import_event_free(&own);
        return true;
    }
    if (!GROW(window->events, window->room, window->count + 1)) {
        import_event_free(&own);
        return false;
    }
    own.order = window->order++;
    if (own.time_ns > window->newest_ns)
        window->newest_ns = own.time_ns;
    events_up(window->events, window->count++, own);
    return true;
}

bool import_window_is_full(const struct import_window *window)
{
    return window->count >= window->size;
}

bool import_window_take(struct import_window *window, struct import_event *event)
{
    if (window->count == 0)
        return false;
    *event = window->events[0];
    struct import_event last = window->events[--window->count];
    if (window->count > 0)
        events_down(window->events, window->count, 0, last);
    window->delivered_ns = event->time_ns;
    return true;
}

void import_window_free(struct import_window *window)
{
    for (size_t i = 0; i < window->count; i++)
        import_event_free(&window->events[i]);
    free(window->events);
    *window = (struct import_window){0};
}
