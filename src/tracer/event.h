/*
 * Writes events to a writer's buffer: the hot path of both formats.
 *
 *   v1   [ type | count << 6 ] [ length ] [ ticks since the event before ] [ arguments ] [ stack ]  §1.1
 *   v2   [ type ] [ units since the event before ] [ arguments ]                                    §5.1
 *
 * Times never decrease within a writer. Events closer together than the unit share a time, which
 * readers of all versions accept: forced steps would move a busy writer's time ahead of the
 * others'.
 *
 * A writer's `end` lies EVENT_MAX bytes before the end of its buffer, and an empty writer has at ==
 * end == NULL: one comparison detects both a full buffer and a missing one.
 */
#pragma once

#include <string.h>

#include "base/varint.h"
#include "tracer/section.h"
#include "tracer/stack.h"
#include "wire/wire.h"

/* Type, length, time and up to five arguments. */
#define EVENT_MAX 72

#define always_inline static inline __attribute__((always_inline))

/* Appends a uvarint, inline for one byte. */
static inline uint8_t *put(uint8_t *at, uint64_t value)
{
    if (likely(value < 0x80)) {
        *at = (uint8_t)value;
        return at + 1;
    }
    return at + uvarint_put(at, value);
}

/* MARK: v2 */

/* Opens a batch of `m_id` with `room` bytes free, in a new buffer if needed. False: no memory. */
bool v2_open_batch(struct trail_writer_ *writer, uint64_t generation, uint64_t m_id, size_t room);
bool v2_open_experiment(struct trail_writer_ *writer, uint64_t generation, size_t room);
/* Stores the size of the open batch. The buffer can then be handed over, or take another batch. */
void v2_close_batch(struct trail_writer_ *writer);
/* v1 too: closes the batch and hands the buffer over. Does nothing to an empty writer. */
void writer_flush(struct trail_writer_ *writer);

always_inline bool v2_write_to(struct trail_writer_ *writer, uint64_t m_id, uint64_t generation,
                               unsigned type, unsigned n, const uint64_t *args)
{
    uint64_t now = clock_units(&tracer.clock);
    uint8_t *at;
    if (unlikely(writer->at >= writer->end) && !v2_open_batch(writer, generation, m_id, EVENT_MAX))
        return false;
    if (unlikely(now < writer->last_ticks))
        now = writer->last_ticks;
    at = writer->at;
    *at++ = (uint8_t)type;
    at = put(at, now - writer->last_ticks);
    for (unsigned i = 0; i < n; i++)
        at = put(at, args[i]);
    writer->last_ticks = now;
    writer->at = at;
    return true;
}

static inline struct trail_writer_ *v2_writer(trail_m *m, uint64_t generation)
{
    return &m->writers_[generation & 1];
}

always_inline bool v2_write(trail_m *m, uint64_t generation, unsigned type, unsigned n,
                            const uint64_t *args)
{
    return v2_write_to(v2_writer(m, generation), m->id, generation, type, n, args);
}

#define V2(m, generation, type, ...)                                                               \
    v2_write((m), (generation), V2_##type, sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t),   \
             (uint64_t[]){__VA_ARGS__})
#define V2_0(m, generation, type) v2_write((m), (generation), V2_##type, 0, NULL)

/* MARK: v1 */

/*
 * In place of a P: the buffer begins without a Batch record (tables of format 7, and Frequency
 * before format 21).
 */
#define V1_NO_BATCH (UINT64_MAX - 1)

/*
 * Ensures `room` free bytes, in a new buffer that begins with a Batch record of `proc` if needed.
 * False: no memory.
 */
bool v1_refill(struct trail_writer_ *writer, uint64_t generation, uint64_t proc, size_t room);

/*
 * Whether readers order an event of this type after an event of another P (§3.3), so that its time
 * must not be earlier. Other types only follow the previous event of their buffer.
 */
static inline bool v1_follows_other_proc(unsigned type)
{
    const uint64_t types = 1ull << V1_GoStart | 1ull << V1_GoStartLabel | 1ull << V1_GoUnblock |
                           1ull << V1_GoSysExit | 1ull << V1_GoSysBlock | 1ull << V1_ProcStart |
                           1ull << V1_GCStart | 1ull << V1_GCDone | 1ull << V1_STWStart |
                           1ull << V1_STWDone;
    return types >> type & 1;
}

always_inline bool v1_write_to(struct trail_writer_ *writer, uint64_t proc, uint64_t generation,
                               unsigned type, unsigned n, const uint64_t *args)
{
    if (v1_follows_other_proc(type))
        clock_order();
    uint64_t now = clock_v1_ticks(&tracer.clock);
    uint8_t *at, *length = NULL;

    if (unlikely(writer->at >= writer->end) && !v1_refill(writer, generation, proc, EVENT_MAX))
        return false;
    if (unlikely(now < writer->last_ticks))
        now = writer->last_ticks;
    at = writer->at;
    *at++ = (uint8_t)(type | (n < V1_COUNT_LENGTH ? n : V1_COUNT_LENGTH) << V1_COUNT_SHIFT);
    if (n >= V1_COUNT_LENGTH)
        length = at++;
    at = put(at, now - writer->last_ticks);
    for (unsigned i = 0; i < n; i++)
        at = put(at, args[i]);
    if (n >= V1_COUNT_LENGTH)
        *length = (uint8_t)(at - length - 1);
    writer->last_ticks = now;
    writer->at = at;
    return true;
}

/* For a thread without a P: writes to the shared writer, under its lock. */
bool v1_write_no_proc(uint64_t generation, unsigned type, unsigned n, const uint64_t *args);

always_inline bool v1_write(trail_m *m, uint64_t generation, unsigned type, unsigned n,
                            const uint64_t *args)
{
    if (unlikely(!owns_p(m)))
        return v1_write_no_proc(generation, type, n, args);
    return v1_write_to(&m->p->writer_, (uint64_t)(int64_t)m->p->id, generation, type, n, args);
}

#define V1(m, generation, type, ...)                                                               \
    v1_write((m), (generation), V1_##type, sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t),   \
             (uint64_t[]){__VA_ARGS__})
#define V1_0(m, generation, type) v1_write((m), (generation), V1_##type, 0, NULL)

/* An event that both formats have with the same arguments, under two names. */
#define EVENT(m, generation, v2_type, v1_type, ...)                                                \
    (tracer.v2 ? V2(m, generation, v2_type, __VA_ARGS__) : V1(m, generation, v1_type, __VA_ARGS__))
#define EVENT_0(m, generation, v2_type, v1_type)                                                   \
    (tracer.v2 ? V2_0(m, generation, v2_type) : V1_0(m, generation, v1_type))

/* MARK: Strings (string.c) */

/* Returns the length to which readers of the format accept strings. */
size_t string_max(void);

/*
 * Returns the ID of a string in the generation's table, cut to what readers accept; 0 if it is
 * empty or there is no memory. In v1 a new string is written to the buffer of the thread's P at
 * once, so that it precedes the event.
 */
uint64_t string_id(trail_m *m, uint64_t generation, const char *text);
/* Returns the string's entry; NULL where string_id returns 0. */
const struct table_entry *string_intern(trail_m *m, uint64_t generation, const char *text);

/* Writes a string that no event refers to, once in a generation. `m` may be NULL. */
void string_note(trail_m *m, uint64_t generation, const char *text, size_t size);

/*
 * v2: the IDs of the most frequent strings, interned in this order at the beginning of every
 * generation: the block reasons, then the two stop reasons.
 */
enum {
    V2_ID_REASON = 1,
    V2_ID_GOSCHED = V2_ID_REASON + TRAIL_BLOCK_REASON_COUNT,
    V2_ID_PREEMPTED = V2_ID_REASON + TRAIL_BLOCK_PREEMPTED
};
void v2_intern_constants(uint64_t generation);

/* Copies up to 32 bytes inline: messages are short, and calling memcpy takes longer. */
static inline void text_copy(uint8_t *to, const char *text, size_t size)
{
    if (size > 32) {
        memcpy(to, text, size);
    } else if (size >= 16) {
        memcpy(to, text, 16);
        memcpy(to + size - 16, text + size - 16, 16);
    } else if (size >= 8) {
        memcpy(to, text, 8);
        memcpy(to + size - 8, text + size - 8, 8);
    } else {
        for (size_t i = 0; i < size; i++)
            to[i] = (uint8_t)text[i];
    }
}

/*
 * v2: writes a string that is not looked up again, such as a log's message. Returns its ID, 0 if
 * empty or lost.
 */
uint64_t string_once(trail_m *m, uint64_t generation, const char *text, size_t size);

static inline struct table *string_table(uint64_t generation)
{
    return &tracer.strings[tracer.v2 ? generation & 1 : 0];
}
