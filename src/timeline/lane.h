/*
 * Lanes: the spans of one row of the timeline, in chunks, each with the sums of what was before it.
 * So the time that a lane spent in each state up to any moment costs a search and a part of a chunk, and
 * a picture of any stretch costs the same however much is in it.
 *
 * A chunk is two rows of bytes, of numbers of 7 bits a byte. A span is one number in the first,
 *
 *     time since the last span's begin | state: 3 bits | has `other` | has a stack
 *
 * and in the second what of these there is: the reason of a wait, the stack, `other`. A span takes some
 * five bytes, and pictures read the first row only.
 */
#ifndef TRAIL_TIMELINE_LANE_H
#define TRAIL_TIMELINE_LANE_H

#include <trail/lanes.h>

enum { LANE_CHUNK = 64 };

struct lane_span {
    int64_t begin_ns;
    unsigned state;
    trail_name reason; /* of a wait */
    uint32_t stack;
    uint32_t other; /* lane + 1; 0: none */
};

struct lane_chunk {
    int64_t begin_ns;                      /* of its first span */
    int64_t before[TRAIL_SPAN_STATES - 1]; /* ns in each state but NONE up to there */
    uint8_t *times, *details;              /* of one allocation, but for the last chunk's */
};

/* Zero-initialised is empty and ready, but for `id`. */
struct lane {
    int64_t id;
    trail_name name;
    uint32_t chunk_count, chunk_capacity;
    struct lane_chunk *chunks;
    /* The last chunk, which grows. */
    uint16_t used; /* spans */
    uint16_t times_size, times_room;
    uint16_t details_size, details_room;
    unsigned last_state;
    int64_t last_ns;                 /* begin of the last span */
    int64_t sums[TRAIL_SPAN_STATES]; /* up to there */
    bool has_waited;
    int64_t first_wait_ns;
};

/* Bytes that the spans take are added to *bytes. The time is not less than that of the last. */
bool lane_add(struct lane *lane, const struct lane_span *span, size_t *bytes);
void lane_free(struct lane *lane);

static inline uint64_t lane_count(const struct lane *lane)
{
    return lane->chunk_count ? (uint64_t)(lane->chunk_count - 1) * LANE_CHUNK + lane->used : 0;
}

/* A place between two spans, from which they can be read one by one, also after more were added. */
struct lane_cursor {
    uint64_t next;
    int64_t begin_ns; /* of the span before, in this chunk */
    uint32_t times, details;
};

void lane_seek(const struct lane *lane, uint64_t first, struct lane_cursor *cursor);

/* *end_ns is where it ends, which is `last_ns` of the last. False: there are no more. */
bool lane_next(const struct lane *lane, struct lane_cursor *cursor, int64_t last_ns,
               struct lane_span *span, int64_t *end_ns);

/* Where a moment is. */
struct lane_position {
    uint64_t span; /* the last that begins there or before */
    int64_t begin_ns;
    int64_t next_ns; /* begin of the next span; INT64_MAX: there is none */
    unsigned state;
    int64_t sums[TRAIL_SPAN_STATES]; /* up to the moment; [NONE] has no meaning */
};

/* False: `ns` is before the first span. */
bool lane_find(const struct lane *lane, int64_t ns, struct lane_position *position);

size_t lane_cells(const struct lane *lane, int64_t end_ns, int64_t from_ns, int64_t to_ns,
                  size_t width, trail_cell *cells);

#endif
