/*
 * The window: sorts events by time. Recorders write the events of each CPU in order, but those of
 * several CPUs only nearly so. The window holds a fixed number of events and delivers the earliest;
 * an event that arrives after later ones have been delivered is late, and is dropped and counted.
 */
#pragma once

#include "import/event.h"

/* Zero-initialised: empty; `size` is its capacity, SIZE_MAX: unlimited. */
struct import_window {
    struct import_event *events;
    size_t count, room, size;
    uint64_t order;
    int64_t delivered_ns, newest_ns;
    uint64_t late;
};

/* Takes an event and what it owns. Returns false if out of memory. */
bool import_window_put(struct import_window *window, const struct import_event *event);

/* Whether an event has to be taken out before the next is put in. */
bool import_window_is_full(const struct import_window *window);

/* Removes the earliest event, which the caller then owns. Returns false if there is none. */
bool import_window_take(struct import_window *window, struct import_event *event);

void import_event_free(struct import_event *event);
void import_window_free(struct import_window *window);
