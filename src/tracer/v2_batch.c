/*
 * v2: batches, and the buffers that hold them (§5.1, §7.3).
 *
 *   buffer   batch [ batch ... ]
 *   batch    01 generation m time size[10] data     the size is stored when the batch is closed
 */
#include <string.h>

#include "tracer/event.h"

#define SIZE_BYTES   10
#define BATCH_HEADER (1 + 1 + 3 * UVARINT_MAX_SIZE + SIZE_BYTES)

/* Stores a uvarint in exactly ten bytes, which every reader accepts. */
static void put_padded(uint8_t *at, uint64_t value)
{
    for (int i = 0; i < SIZE_BYTES - 1; i++, value >>= 7)
        at[i] = (uint8_t)(value | 0x80);
    at[SIZE_BYTES - 1] = (uint8_t)value;
}

void v2_close_batch(struct trail_writer_ *writer)
{
    struct trail_buffer_ *buffer = writer->buffer;
    size_t at;
    if (!buffer || !buffer->length_at)
        return;
    at = (size_t)(writer->at - buffer->data);
    put_padded(buffer->data + buffer->length_at, at - buffer->length_at - SIZE_BYTES);
    buffer->length_at = 0;
    writer->end = writer->at;
}

void writer_flush(struct trail_writer_ *writer)
{
    struct trail_buffer_ *buffer = writer->buffer;
    if (!buffer)
        return;
    v2_close_batch(writer);
    buffer->used = (uint32_t)(writer->at - buffer->data);
    writer->at = writer->end = NULL;
    writer->buffer = NULL;
    queue_put(buffer);
}

/* experiment 0: an ordinary batch. */
static bool open_batch(struct trail_writer_ *writer, uint64_t generation, unsigned experiment,
                       uint64_t m_id, size_t room)
{
    uint64_t now = clock_units(&tracer.clock);
    struct trail_buffer_ *buffer = writer->buffer;
    size_t need = BATCH_HEADER + room + EVENT_MAX, filled = 0;
    uint8_t *at;
    v2_close_batch(writer);
    if (buffer && writer_room(writer) < need) {
        filled = buffer->size;
        writer_flush(writer);
        buffer = NULL;
    }
    if (!buffer) {
        buffer = queue_buffer(writer, generation, filled, need);
        if (!buffer)
            return false;
        writer->buffer = buffer;
        writer->at = buffer->data;
    }
    /* Readers sort the batches of an M by time, so no two may have the same. */
    if (now <= writer->last_ticks)
        now = writer->last_ticks + 1;
    at = writer->at;
    *at++ = experiment ? V2_ExperimentalBatch : V2_EventBatch;
    if (experiment)
        *at++ = (uint8_t)experiment;
    at = put(at, generation);
    at = put(at, m_id);
    at = put(at, now);
    buffer->length_at = (uint32_t)(at - buffer->data);
    writer->at = at + SIZE_BYTES;
    writer->end = buffer_end(buffer) - EVENT_MAX;
    writer->last_ticks = now;
    return true;
}

bool v2_open_batch(struct trail_writer_ *writer, uint64_t generation, uint64_t m_id, size_t room)
{
    return open_batch(writer, generation, 0, m_id, room);
}

bool v2_open_experiment(struct trail_writer_ *writer, uint64_t generation, size_t room)
{
    return open_batch(writer, generation, V2_EXPERIMENT_ALLOC_FREE, V2_NO_THREAD, room);
}
