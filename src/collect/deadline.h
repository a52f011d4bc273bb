/*
 * How long the work may take. A step ends early enough for signals to be handled, and the last one
 * soon after the user has asked for the end. Work is done in small pieces, each of which checks the
 * deadline.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct trace;

/* Owned by deadline.c. */
struct deadline {
    uint64_t until_ns; /* CLOCK_MONOTONIC; UINT64_MAX: no limit */
    uint32_t pieces;   /* of work, since the clock was last read */
    bool late;         /* until_ns has passed */
    bool hurried;      /* the user wants the recording to end: until_ns is soon */
};

/* Lets the work that begins now take `ns`; UINT64_MAX: no limit. */
void deadline_set(struct trace *t, uint64_t ns);

/* Begins the last work: it gets COLLECT_HURRY_NS if the user wants the recording to end. */
void deadline_set_last(struct trace *t);

/*
 * Whether the time is up. Called for each piece of work: cheap, because it reads the clock only now
 * and then. Also checks whether the user wants the recording to end.
 */
bool deadline_is_over(struct trace *t);

/* Whether there is time to look up names, which takes longest: not in the last moments of a hurried
 * end. */
bool deadline_allows_names(const struct trace *t);
