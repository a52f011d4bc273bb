/*
 * v1: the buffers of a P, each a Batch record, with the time at which the buffer was taken, and the
 * events after it (§1.1, §2.4).
 */
#include "tracer/event.h"
#include "tracer/lock.h"

#define BATCH_RECORD (1 + 2 * UVARINT_MAX_SIZE)

bool v1_refill(struct trail_writer_ *writer, uint64_t generation, uint64_t proc, size_t room)
{
    struct trail_buffer_ *buffer = writer->buffer;
    size_t filled = buffer ? buffer->size : 0;
    uint64_t now;
    uint8_t *at;
    if (buffer && writer_room(writer) >= room)
        return true;
    writer_flush(writer);
    buffer = queue_buffer(writer, generation, filled, BATCH_RECORD + room);
    if (!buffer)
        return false;
    now = clock_v1_ticks(&tracer.clock);
    if (now < writer->last_ticks)
        now = writer->last_ticks;
    at = buffer->data;
    if (proc != V1_NO_BATCH) {
        *at++ = V1_Batch | 1 << V1_COUNT_SHIFT;
        at = put(at, proc);
        at = put(at, now);
    }
    writer->buffer = buffer;
    writer->at = at;
    writer->end = buffer_end(buffer) - EVENT_MAX;
    writer->last_ticks = now;
    return true;
}

bool v1_write_no_proc(uint64_t generation, unsigned type, unsigned n, const uint64_t *args)
{
    bool written;
    lock_mutex(&tracer.no_proc);
    written = v1_write_to(&tracer.no_proc_writer, V1_NO_PROC, generation, type, n, args);
    pthread_mutex_unlock(&tracer.no_proc);
    return written;
}
