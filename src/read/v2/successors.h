/*
 * v2 successors: the numbered events of a generation with lost events.
 *
 * A goroutine leaves the states waiting and ready, and a P leaves idle and a system call, by an
 * event with its next sequence number; a GC cycle ends likewise. If that event is in the file, no
 * earlier event of the goroutine or P is lost, so the state lasts until then. If not, the state may
 * have ended at any time.
 */
#pragma once

#include "read/v2/generation.h"

enum v2_numbered_kind {
    V2_NUMBERED_G,
    V2_NUMBERED_P,
    V2_NUMBERED_CALL, /* end of a system call on its P, which has had number n since its start */
    V2_NUMBERED_GC    /* its ID is 0 */
};

struct v2_numbered {
    uint64_t id, n; /* of goroutines and Ps 0: a status, a creation */
    enum v2_numbered_kind kind;
    uint8_t type; /* of the event */
};

/* Zero-initialized: none. Sorted. */
struct v2_successors {
    struct v2_numbered *items;
    size_t count, capacity;
};

/* Replaces them with those of the generation. Returns false if out of memory. */
bool v2_successors_find(struct v2_successors *successors, const struct v2_generation *generation);

/* Returns the type of the event with number `n`; 0 if it is not in the file. */
uint8_t v2_successors_type(const struct v2_successors *successors, enum v2_numbered_kind kind,
                           uint64_t id, uint64_t n);

/* Whether several events have numbers of the goroutine or P. */
bool v2_successors_several(const struct v2_successors *successors, enum v2_numbered_kind kind,
                           uint64_t id);

void v2_successors_free(struct v2_successors *successors);
