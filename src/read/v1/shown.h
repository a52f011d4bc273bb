/*
 * v1, shown: in a trace with lost events, the state of each goroutine according to the events
 * converted so far, and where it stops being known.
 *
 * If an event requires a state or sequence number other than the one shown, events of its goroutine
 * are lost. An event without a sequence number (§3.3) must come from the same P as the previous
 * one, with no hole between them. Otherwise the state after the previous event lasted for an
 * unknown time. Because this becomes known too late, the trace is converted twice: the first pass
 * collects these states, and the second ends each right after the event that begins it.
 *
 * The state after a goroutine's last event ends at the next hole, or immediately within one: it may
 * not have lasted longer. Where the trace was cut, the last batches of all Ps are missing, from a
 * different time on for each, and perhaps entire Ps: all of that is within a hole.
 */
#pragma once

#include "base/objects.h"

/* The start of a state: the event at `offset` of goroutine `g`. */
struct v1_begin {
    uint64_t offset, g;
};

struct v1_shown_g {
    uint64_t id;
    uint64_t offset; /* of the event that began its state */
    uint8_t state;   /* trail_go_state; TRAIL_GO_UNDETERMINED: unknown */
    uint32_t lane;   /* lane of that event: its order plus 1; 0: unknown */
    uint32_t losses; /* of the lane at that time */
};

struct v1_shown {
    bool collecting;
    struct objects goroutines; /* struct v1_shown_g */
    struct idmap last;         /* goroutine -> offset where its last state begins, plus 1 */
    struct v1_begin *doubted;  /* states with an unknown end; sorted in the second pass */
    size_t doubted_count, doubted_capacity;
    struct v1_shown_g **lasting; /* second pass: goroutines in their last state, outside holes */
    size_t lasting_count, lasting_capacity;
};

/* Begin the first pass, the second. The latter returns false if out of memory. */
void v1_shown_collect(struct v1_shown *shown);
bool v1_shown_replay(struct v1_shown *shown);
void v1_shown_fini(struct v1_shown *shown);

/* Returns the goroutine; NULL if out of memory. */
struct v1_shown_g *v1_shown_get(struct v1_shown *shown, uint64_t id);

/* Notes that the goroutine's state has an unknown end. Returns false if out of memory. */
bool v1_shown_doubt(struct v1_shown *shown, const struct v1_shown_g *g);

/* Second pass: whether the state that has just begun has an unknown end. */
bool v1_shown_is_doubted(const struct v1_shown *shown, const struct v1_shown_g *g);

/* Second pass: whether the state is the goroutine's last in the trace. */
bool v1_shown_is_last(const struct v1_shown *shown, const struct v1_shown_g *g);

/* Adds to `lasting`. Returns false if out of memory. */
bool v1_shown_lasts(struct v1_shown *shown, struct v1_shown_g *g);

/* Sorts `lasting` by ID. Returns the number. */
size_t v1_shown_sort_lasting(struct v1_shown *shown);
