/*
 * Keep: selects the events of some goroutines, changed where necessary so that the rest is
 * consistent. Keeps the events of these goroutines, those of Ps, and those without a goroutine,
 * such as the heap's size. A switch between a selected goroutine and another becomes the selected
 * half of it.
 */
#pragma once

#include <trail/export.h>

struct keep {
    const int64_t *goroutines; /* ascending */
    size_t count;
    bool split; /* within a switch of which one half is kept */
};

/* Returns false if the event is not kept. May change it. */
bool keep_event(struct keep *keep, trail_event *event);
