/* A lane's spans in chunks of bytes: adding, reading, searching, drawing. */
#include "timeline/lane.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/varint.h"

#define MOST_NS ((INT64_C(1) << 48) - 1)

enum { HAS_STACK = 1, HAS_OTHER = 2, STATE_SHIFT = 2, TIME_SHIFT = 5 };

/* Codes in addition to the states: a system call with a reason, and a number that is not a span. */
enum { LANE_DESCRIBED_CALL = 6, LANE_REST = 7 };

/* Maximum bytes of a 48-bit time with flags and rest, and of three 32-bit numbers; the same of five
 * sums and a zero, of which the first sums are zeros. */
enum { MOST_TIME = 10, MOST_DETAILS = 15, MOST_SUMS = 36, FIRST_SUMS = 6, ROOM_AT_FIRST = 16 };

/* MARK: Numbers */

static uint8_t *put(uint8_t *to, uint64_t value)
{
    return to + uvarint_put(to, value);
}

/* The bytes were written by this file: complete, and at most 64 bits. */
static inline const uint8_t *get(const uint8_t *at, uint64_t *value)
{
    /* Only written bytes are read: a time says which details follow it. */
    /* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign): `put` has written it. */
    uint64_t byte = *at++, all = byte & 0x7f;
    for (unsigned shift = 7; byte & 0x80; shift += 7) {
        byte = *at++;
        all |= (byte & 0x7f) << shift;
    }
    *value = all;
    return at;
}

static inline unsigned code_of(uint64_t time)
{
    return (unsigned)(time >> STATE_SHIFT) & 7;
}

static inline unsigned state_of(uint64_t time)
{
    unsigned code = code_of(time);
    return code == LANE_DESCRIBED_CALL ? TRAIL_SPAN_SYSCALL : code;
}

static uint8_t *put_time(uint8_t *to, uint64_t delta_ns, unsigned shift, unsigned flags)
{
    uint64_t rest = delta_ns & ((UINT64_C(1) << shift) - 1);
    if (rest > 0)
        to = put(to, rest << TIME_SHIFT | LANE_REST << STATE_SHIFT);
    return put(to, delta_ns >> shift << TIME_SHIFT | flags);
}

/* Reads a span's number; *delta_ns replaces its time. */
static inline const uint8_t *get_time(const uint8_t *at, unsigned shift, uint64_t *flags,
                                      int64_t *delta_ns)
{
    uint64_t number, rest = 0;
    at = get(at, &number);
    if (__builtin_expect(code_of(number) == LANE_REST, 0)) {
        rest = number >> TIME_SHIFT;
        at = get(at, &number);
    }
    *flags = number;
    *delta_ns = (int64_t)((number >> TIME_SHIFT << shift) + rest);
    return at;
}

/* Sums before a chunk: they take at most 7 bytes each. */
static uint8_t *put_sums(uint8_t *to, const int64_t sums[TRAIL_SPAN_STATES])
{
    for (unsigned s = TRAIL_SPAN_NONE + 1; s < TRAIL_SPAN_STATES; s++)
        to = put(to, (uint64_t)sums[s]);
    return to;
}

static const uint8_t *get_sums(const uint8_t *at, int64_t sums[TRAIL_SPAN_STATES])
{
    uint64_t sum;
    sums[TRAIL_SPAN_NONE] = 0;
    for (unsigned s = TRAIL_SPAN_NONE + 1; s < TRAIL_SPAN_STATES; s++) {
        at = get(at, &sum);
        sums[s] = (int64_t)sum;
    }
    return at;
}

/* MARK: Adding */

static struct lane_chunk *last_chunk(const struct lane *lane)
{
    return &lane->chunks[lane->chunk_count - 1];
}

/* Makes room for `more` bytes in a row of the last chunk. One in the store has no room. */
static bool make_room(uint8_t **row, uint16_t size, uint16_t *room, uint16_t more, size_t *bytes)
{
    uint16_t wanted = *room ? *room : ROOM_AT_FIRST;
    if (*row && *room >= size + more)
        return true;
    while (wanted < size + more)
        wanted = (uint16_t)(wanted * 2);
    uint8_t *grown = realloc(*room ? *row : NULL, wanted);
    if (!grown)
        return false;
    if (*room == 0 && *row)
        memcpy(grown, *row, size);
    *bytes += (size_t)(wanted - *room);
    *row = grown;
    *room = wanted;
    return true;
}

/* Copies the rows of the last chunk to the store. */
static bool move_rows(struct lane *lane, struct store *store)
{
    struct lane_chunk *chunk = last_chunk(lane);
    size_t size = (size_t)lane->times_size + lane->details_size;
    uint8_t *whole = store_alloc(store, size);
    if (!whole)
        return false;
    memcpy(whole, chunk->times, lane->times_size);
    if (lane->details_size > 0)
        memcpy(whole + lane->times_size, chunk->details, lane->details_size);
    chunk->times = whole;
    chunk->details = whole + lane->times_size;
    return true;
}

/* Closes the last chunk: it goes to the store, and the next chunk takes over its rows. */
static bool seal(struct lane *lane, struct lane_chunk *next, struct store *store)
{
    uint8_t *times = lane->times_room ? last_chunk(lane)->times : NULL;
    uint8_t *details = lane->details_room ? last_chunk(lane)->details : NULL;
    if (times && !move_rows(lane, store))
        return false;
    lane->times_size = lane->details_size = 0;
    next->times = times;
    next->details = details;
    return true;
}

static bool grow_list(struct lane *lane, size_t *bytes)
{
    uint32_t capacity = lane->chunk_capacity + lane->chunk_capacity / 2 + 1;
    if (lane->chunk_capacity > UINT32_MAX / 2)
        return false;
    struct lane_chunk *grown = reallocarray(lane->chunks, capacity, sizeof *grown);
    if (!grown)
        return false;
    *bytes += (capacity - lane->chunk_capacity) * sizeof *grown;
    lane->chunks = grown;
    lane->chunk_capacity = capacity;
    return true;
}

static bool add_chunk(struct lane *lane, int64_t begin_ns, struct store *store)
{
    struct lane_chunk chunk = {.begin_ns = begin_ns};
    if (lane->chunk_count == lane->chunk_capacity && !grow_list(lane, &store->bytes))
        return false;
    bool first = lane->chunk_count == 0;
    if (!first && !seal(lane, &chunk, store))
        return false;
    if (!make_room(&chunk.times, 0, &lane->times_room, first ? FIRST_SUMS : MOST_SUMS,
                   &store->bytes)) {
        free(chunk.times);
        free(chunk.details);
        lane->times_room = lane->details_room = 0;
        return false;
    }
    /* A chunk can be read before it has spans. */
    uint8_t *end = put_sums(chunk.times, lane->sums);
    *end = 0;
    lane->times_size = (uint16_t)(end - chunk.times);
    lane->chunks[lane->chunk_count++] = chunk;
    lane->used = 0;
    return true;
}

/* Most system calls have no reason, so they need no byte for one. */
static unsigned code_for(const struct lane_span *span)
{
    return span->state == TRAIL_SPAN_SYSCALL && span->reason ? LANE_DESCRIBED_CALL : span->state;
}

/* Whether a span with this code has a reason in the second row. */
static bool has_reason(unsigned code)
{
    return code == TRAIL_SPAN_WAITING || code == TRAIL_SPAN_BLOCKED || code == LANE_DESCRIBED_CALL;
}

static void add_details(struct lane *lane, const struct lane_span *span)
{
    uint8_t *begin = last_chunk(lane)->details + lane->details_size, *at = begin;
    if (has_reason(code_for(span)))
        at = put(at, span->reason);
    if (span->stack != 0)
        at = put(at, span->stack);
    if (span->other != 0)
        at = put(at, span->other);
    lane->details_size = (uint16_t)(lane->details_size + (at - begin));
}

static bool has_details(const struct lane_span *span)
{
    return has_reason(code_for(span)) || span->stack != 0 || span->other != 0;
}

bool lane_add(struct lane *lane, const struct lane_span *span, struct store *store)
{
    int64_t begin = span->begin_ns < lane->last_ns ? lane->last_ns : span->begin_ns;
    if (begin > MOST_NS)
        begin = MOST_NS;
    int64_t sum = lane->sums[lane->last_state];
    if (lane->chunk_count > 0)
        lane->sums[lane->last_state] += begin - lane->last_ns;
    bool first = lane->chunk_count == 0 || lane->used == LANE_CHUNK;
    if (first && !add_chunk(lane, begin, store)) {
        lane->sums[lane->last_state] = sum;
        return false;
    }
    struct lane_chunk *chunk = last_chunk(lane);
    if (!make_room(&chunk->times, lane->times_size, &lane->times_room, MOST_TIME, &store->bytes) ||
        (has_details(span) && !make_room(&chunk->details, lane->details_size, &lane->details_room,
                                         MOST_DETAILS, &store->bytes)))
        return false;
    uint64_t delta = first ? 0 : (uint64_t)(begin - lane->last_ns);
    uint8_t *at = chunk->times + lane->times_size;
    unsigned flags = code_for(span) << STATE_SHIFT | (span->other ? HAS_OTHER : 0) |
                     (span->stack ? HAS_STACK : 0);
    lane->times_size =
        (uint16_t)(lane->times_size + (put_time(at, delta, lane->shift, flags) - at));
    if (has_details(span))
        add_details(lane, span);
    lane->used++;
    if (span->state == TRAIL_SPAN_WAITING && !lane->has_waited) {
        lane->has_waited = true;
        lane->first_wait_ns = begin;
    }
    lane->last_ns = begin;
    lane->last_state = span->state;
    return true;
}

/* Frees the rows of the last chunk, but for those in the store. */
static void free_rows(const struct lane *lane, const struct lane_chunk *rows)
{
    if (lane->times_room)
        free(rows->times);
    if (lane->details_room)
        free(rows->details);
}

void lane_trim(struct lane *lane, struct store *store)
{
    if (lane->chunk_count == 0 || lane->times_room == 0)
        return;
    struct lane_chunk rows = *last_chunk(lane);
    if (!move_rows(lane, store))
        return;
    free_rows(lane, &rows);
    store->bytes -= (size_t)lane->times_room + lane->details_room;
    lane->times_room = lane->details_room = 0;
    size_t spare = lane->chunk_capacity - lane->chunk_count;
    struct lane_chunk *chunks = reallocarray(lane->chunks, lane->chunk_count, sizeof *chunks);
    if (!chunks)
        return;
    store->bytes -= spare * sizeof *chunks;
    lane->chunks = chunks;
    lane->chunk_capacity = lane->chunk_count;
}

void lane_free(struct lane *lane)
{
    if (lane->chunk_count > 0)
        free_rows(lane, last_chunk(lane));
    free(lane->chunks);
}

/* MARK: One by one */

/* Reads the details of the span whose number is `flags`. */
static const uint8_t *get_details(const uint8_t *at, uint64_t flags, struct lane_span *span)
{
    uint64_t reason = 0, stack = 0, other = 0;
    span->state = state_of(flags);
    if (has_reason(code_of(flags)))
        at = get(at, &reason);
    if (flags & HAS_STACK)
        at = get(at, &stack);
    if (flags & HAS_OTHER)
        at = get(at, &other);
    span->reason = (trail_name)reason;
    span->stack = (uint32_t)stack;
    span->other = (uint32_t)other;
    return at;
}

/* Moves to the next span of the same chunk. */
static void step(const struct lane_chunk *chunk, unsigned shift, trail_span_cursor *cursor,
                 struct lane_span *span)
{
    static const uint8_t nothing[1] = {0};
    uint64_t flags;
    int64_t delta;
    const uint8_t *times = get_time(chunk->times + cursor->times, shift, &flags, &delta);
    const uint8_t *details = chunk->details ? chunk->details + cursor->details : nothing;
    cursor->begin_ns += delta;
    span->begin_ns = cursor->begin_ns;
    const uint8_t *after = get_details(details, flags, span);
    cursor->times = (uint32_t)(times - chunk->times);
    cursor->details += (uint32_t)(after - details);
    cursor->next++;
}

static const struct lane_chunk *enter_chunk(const struct lane *lane, trail_span_cursor *cursor)
{
    const struct lane_chunk *chunk = &lane->chunks[cursor->next / LANE_CHUNK];
    if (cursor->next % LANE_CHUNK == 0) {
        int64_t sums[TRAIL_SPAN_STATES];
        cursor->times = (uint32_t)(get_sums(chunk->times, sums) - chunk->times);
        cursor->details = 0;
        cursor->begin_ns = chunk->begin_ns;
    }
    return chunk;
}

void lane_seek(const struct lane *lane, uint64_t first, trail_span_cursor *cursor)
{
    struct lane_span span;
    uint64_t count = lane_count(lane);
    if (first > count)
        first = count;
    cursor->next = first / LANE_CHUNK * LANE_CHUNK;
    while (cursor->next < first)
        step(enter_chunk(lane, cursor), lane->shift, cursor, &span);
}

bool lane_next(const struct lane *lane, trail_span_cursor *cursor, int64_t last_ns,
               struct lane_span *span, int64_t *end_ns)
{
    uint64_t count = lane_count(lane), flags;
    int64_t delta;
    if (cursor->next >= count)
        return false;
    const struct lane_chunk *chunk = enter_chunk(lane, cursor);
    step(chunk, lane->shift, cursor, span);
    if (cursor->next == count) {
        *end_ns = last_ns;
    } else if (cursor->next % LANE_CHUNK == 0) {
        *end_ns = chunk[1].begin_ns;
    } else {
        (void)get_time(chunk->times + cursor->times, lane->shift, &flags, &delta);
        *end_ns = cursor->begin_ns + delta;
    }
    return true;
}

/* MARK: Searching */

/* Returns the last chunk in [low, high) that begins at `ns` or before; at least the one at `low`
 * does. */
static uint32_t find_chunk(const struct lane *lane, uint32_t low, uint32_t high, int64_t ns)
{
    return (uint32_t)SEARCH(i, low + 1, high, lane->chunks[i].begin_ns <= ns) - 1;
}

/* Finds the last position in a chunk that is at `ns` or before. */
static void find_in_chunk(const struct lane *lane, uint32_t chunk, int64_t ns,
                          struct lane_position *position)
{
    const struct lane_chunk *of = &lane->chunks[chunk];
    bool last = chunk + 1 == lane->chunk_count;
    unsigned count = last ? lane->used : LANE_CHUNK, shift = lane->shift, i = 1;
    uint64_t flags;
    int64_t begin = of->begin_ns, delta;
    const uint8_t *at = get_sums(of->times, position->sums);
    at = get_time(at, shift, &flags, &delta);
    unsigned state = state_of(flags);
    position->next_ns = last ? INT64_MAX : of[1].begin_ns;
    for (; i < count; i++) {
        at = get_time(at, shift, &flags, &delta);
        if (begin + delta > ns) {
            position->next_ns = begin + delta;
            break;
        }
        position->sums[state] += delta;
        begin += delta;
        state = state_of(flags);
    }
    position->span = (uint64_t)chunk * LANE_CHUNK + i - 1;
    position->begin_ns = begin;
    position->state = state;
    position->sums[state] += ns - begin;
}

bool lane_find(const struct lane *lane, int64_t ns, struct lane_position *position)
{
    if (lane->chunk_count == 0 || lane->chunks[0].begin_ns > ns)
        return false;
    find_in_chunk(lane, find_chunk(lane, 0, lane->chunk_count, ns), ns, position);
    return true;
}

/* The same for a time at or after `position`, and probably close to it. */
static void find_from(const struct lane *lane, int64_t ns, struct lane_position *position)
{
    uint32_t low = (uint32_t)(position->span / LANE_CHUNK), step_size = 1, high = low + 1;
    while (high < lane->chunk_count && lane->chunks[high].begin_ns <= ns) {
        low = high;
        high = lane->chunk_count - high > step_size ? high + step_size : lane->chunk_count;
        step_size *= 2;
    }
    find_in_chunk(lane, find_chunk(lane, low, high, ns), ns, position);
}

/* MARK: Drawing */

/* A row being drawn. */
struct drawing {
    const struct lane *lane;
    int64_t from_ns, to_ns;
    uint64_t length;
    size_t width;
    int64_t lane_begin_ns;
    int64_t end_ns; /* end of the last span */
    trail_cell *cells;
    size_t count;
    /* The position of the left edge of pixel `at`; in the lane's first pixel, of its first span. */
    size_t at;
    struct lane_position left;
};

/* Returns the start of pixel `i`. */
static int64_t edge(const struct drawing *d, size_t i)
{
    return d->from_ns + (int64_t)((__uint128_t)d->length * i / d->width);
}

/* Returns the first pixel that does not begin before `ns`. */
static size_t pixel_from(const struct drawing *d, int64_t ns)
{
    if (ns >= d->to_ns)
        return d->width;
    uint64_t offset = (uint64_t)(ns - d->from_ns);
    size_t i = (size_t)((__uint128_t)offset * d->width / d->length);
    while (i < d->width && edge(d, i) < ns)
        i++;
    return i;
}

static void add_whole(struct drawing *d, int64_t begin_ns, int64_t end_ns)
{
    unsigned state = d->left.state;
    if (state == TRAIL_SPAN_NONE)
        return;
    trail_cell *cell = &d->cells[d->count++];
    *cell = (trail_cell){
        .begin_ns = begin_ns, .end_ns = end_ns, .first = d->left.span, .count = 1, .state = state};
    cell->ns[state] = end_ns - begin_ns;
}

/* Draws pixel `at` as a mixture of the spans in it; `left` becomes its right edge. */
static void add_mixture(struct drawing *d)
{
    int64_t begin = edge(d, d->at), end = edge(d, d->at + 1), until = end;
    if (until > d->end_ns)
        until = d->end_ns;
    struct lane_position right = d->left;
    find_from(d->lane, until, &right);
    /* A span that begins at the end of the pixel is not in it. */
    uint64_t inside = right.span - (right.span > d->left.span && right.begin_ns == until);
    trail_cell *cell = &d->cells[d->count];
    *cell = (trail_cell){.begin_ns = begin,
                         .end_ns = end,
                         .first = d->left.span,
                         .count = inside - d->left.span + 1};
    for (unsigned s = 1; s < TRAIL_SPAN_STATES; s++) {
        cell->ns[s] = right.sums[s] - d->left.sums[s];
        if (cell->ns[s] > cell->ns[cell->state])
            cell->state = s;
    }
    d->count += cell->state != TRAIL_SPAN_NONE;
    d->left = right;
    d->at++;
}

/* Moves to pixel `i`, which does not begin before the lane. */
static void move_to(struct drawing *d, size_t i)
{
    d->at = i;
    if (i < d->width && edge(d, i) < d->end_ns)
        find_from(d->lane, edge(d, i), &d->left);
}

/* Moves to the first nonempty pixel. */
static void begin_drawing(struct drawing *d)
{
    size_t i = d->lane_begin_ns > d->from_ns ? pixel_from(d, d->lane_begin_ns) : 0;
    (void)lane_find(d->lane, d->lane_begin_ns, &d->left);
    if (i > 0 && i <= d->width && edge(d, i) > d->lane_begin_ns) {
        d->at = i - 1; /* it begins within this pixel: spans of no length count from the first */
        d->left.span = 0;
        return;
    }
    move_to(d, i);
}

static void draw(struct drawing *d)
{
    begin_drawing(d);
    while (d->at < d->width && edge(d, d->at) < d->end_ns) {
        int64_t begin = edge(d, d->at);
        int64_t end = d->left.next_ns == INT64_MAX ? d->end_ns : d->left.next_ns;
        if (end < edge(d, d->at + 1) || begin < d->lane_begin_ns) {
            add_mixture(d);
            continue;
        }
        size_t next = end >= d->to_ns ? d->width : pixel_from(d, end + 1) - 1;
        add_whole(d, begin, next == d->width ? d->to_ns : edge(d, next));
        move_to(d, next);
    }
}

size_t lane_cells(const struct lane *lane, int64_t end_ns, int64_t from_ns, int64_t to_ns,
                  size_t width, trail_cell *cells)
{
    if (lane->chunk_count == 0 || from_ns < 0 || to_ns <= from_ns || to_ns > MOST_NS || width == 0)
        return 0;
    struct drawing d = {.lane = lane,
                        .from_ns = from_ns,
                        .to_ns = to_ns,
                        .length = (uint64_t)(to_ns - from_ns),
                        .width = width,
                        .lane_begin_ns = lane->chunks[0].begin_ns,
                        .end_ns = end_ns,
                        .cells = cells};
    draw(&d);
    return d.count;
}
