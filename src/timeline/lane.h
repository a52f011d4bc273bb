/*
 * Lanes: the spans of one row of the timeline, in chunks, each with the sums of all earlier ones.
 * The time that a lane spent in each state up to any time therefore costs a search and part of a
 * chunk, and drawing a range costs the same however many spans it has.
 *
 * A chunk is two rows of bytes, of varints with 7 bits per byte. The first row begins with the ns
 * that the lane spent in each state but NONE before the chunk. Then each span is one number,
 *
 *     time since the last span's start | state: 3 bits | has `other` | has a stack
 *
 * and in the second row, where present, the reason of a wait or system call, the stack, and
 * `other`. Most system calls have no reason: one with a reason has its own code in place of the
 * state. A span takes about four bytes, and drawing reads the first row only.
 *
 * The time is in units of the lane: the clock of Go 1.22 and later ticks every 64 ns. If a time is
 * not a multiple of the unit, the remaining ns come before it, as a number with the state
 * LANE_REST.
 */
#pragma once

#include <trail/lanes.h>

#include "timeline/store.h"

enum { LANE_CHUNK = 256, LANE_TICK_SHIFT = 6 };

struct lane_span {
    int64_t begin_ns;
    unsigned state;
    trail_name reason; /* of a wait, or a system call that a log describes */
    uint32_t stack;
    uint32_t other; /* lane + 1; 0: none */
};

struct lane_chunk {
    int64_t begin_ns;         /* of its first span */
    uint8_t *times, *details; /* in the store, except for the last chunk */
};

/* Zero-initialised: empty and ready, except for `id` and `shift`. */
struct lane {
    int64_t id;
    trail_name name;
    uint8_t shift; /* times are in units of 2^shift ns: 0 or LANE_TICK_SHIFT */
    uint32_t chunk_count, chunk_capacity;
    struct lane_chunk *chunks;
    /* The last chunk, which grows. */
    uint16_t used; /* spans */
    uint16_t times_size, times_room;
    uint16_t details_size, details_room;
    unsigned last_state;
    int64_t last_ns;                 /* begin of the last span */
    int64_t sums[TRAIL_SPAN_STATES]; /* up to last_ns */
    bool has_waited;
    int64_t first_wait_ns;
};

/*
 * Appends a span that does not begin before the last one. Chunks that are complete go to the store,
 * which counts all bytes of its lanes.
 */
bool lane_add(struct lane *lane, const struct lane_span *span, struct store *store);

/* Moves the last chunk to the store, too, of a lane that probably ends here; it can still grow. */
void lane_trim(struct lane *lane, struct store *store);

/* Frees all but what is in the store. */
void lane_free(struct lane *lane);

static inline uint64_t lane_count(const struct lane *lane)
{
    return lane->chunk_count ? (uint64_t)(lane->chunk_count - 1) * LANE_CHUNK + lane->used : 0;
}

/*
 * A cursor is a position between two spans, from which spans are read one by one; it stays valid
 * when spans are added. begin_ns is the start of the previous span in the chunk. The caller sets
 * `kind` and `lane`.
 */
void lane_seek(const struct lane *lane, uint64_t first, trail_span_cursor *cursor);

/* Returns the next span; *end_ns is its end, `last_ns` for the last span. Returns false after the
 * last. */
bool lane_next(const struct lane *lane, trail_span_cursor *cursor, int64_t last_ns,
               struct lane_span *span, int64_t *end_ns);

/* The position of a point in time. */
struct lane_position {
    uint64_t span; /* the last span that begins at or before it */
    int64_t begin_ns;
    int64_t next_ns; /* begin of the next span; INT64_MAX: none */
    unsigned state;
    int64_t sums[TRAIL_SPAN_STATES]; /* up to that time; [NONE] is meaningless */
};

/* Returns false if `ns` is before the first span. */
bool lane_find(const struct lane *lane, int64_t ns, struct lane_position *position);

size_t lane_cells(const struct lane *lane, int64_t end_ns, int64_t from_ns, int64_t to_ns,
                  size_t width, trail_cell *cells);
