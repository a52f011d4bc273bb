/*
 * How long the work may take. A step ends early enough that signals are handled, and the last one
 * soon after the user has asked for the end. Work is done in small pieces, and each asks whether it
 * is late.
 */
#ifndef TRAIL_COLLECT_DEADLINE_H
#define TRAIL_COLLECT_DEADLINE_H

#include <stdbool.h>
#include <stdint.h>

struct trace;

/* Owned by deadline.c. */
struct deadline {
    uint64_t until_ns; /* CLOCK_MONOTONIC; UINT64_MAX: no limit */
    uint32_t pieces;   /* of work, since the clock was read */
    bool late;         /* until_ns has passed */
    bool hurried;      /* the user wants the recording to end: until_ns is soon */
};

/* The work that begins now may take `ns`; UINT64_MAX: as long as it needs. */
void deadline_set(struct trace *t, uint64_t ns);

/* The last work begins: it has COLLECT_HURRY_NS if the user wants the recording to end. */
void deadline_set_last(struct trace *t);

/*
 * Whether the time is over. Called for each piece of work: cheap, as it reads the clock only now
 * and then. Also looks whether the user wants the recording to end.
 */
bool deadline_is_over(struct trace *t);

/* What deadline_is_over returned last. */
bool deadline_was_over(const struct trace *t);

/* Whether there is time to look for names, which takes longest: not in the last moments of a
 * hurried end. */
bool deadline_allows_names(const struct trace *t);

#endif
