/*
 * Keep: the events of some goroutines out of all, changed so far that what is left makes sense by
 * itself. Kept are the events of these goroutines, those of Ps, and what is of no goroutine, such as
 * the heap's size; a switch between a goroutine that is kept and one that is not becomes the half of
 * it that is kept.
 */
#ifndef TRAIL_WRITE_KEEP_H
#define TRAIL_WRITE_KEEP_H

#include <trail/export.h>

struct keep {
    const int64_t *goroutines; /* ascending */
    size_t count;
    bool split; /* in a switch of which one half is kept */
};

bool keep_has(const struct keep *keep, int64_t goroutine);

/* False: the event is not kept. It may be changed. */
bool keep_event(struct keep *keep, trail_event *event);

#endif
