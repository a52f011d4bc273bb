/* The flight recorder's memory: see flight.h. */
#include "tracer/flight.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "tracer/output.h"
#include "tracer/read.h"
#include "wire/wire.h"

#define DEFAULT_MIN_AGE_NS ((int64_t)10 * 1000000000)
#define DEFAULT_MAX_BYTES  ((size_t)10 << 20)
#define MAX_KEPT           1024

/* A generation; its buffers are in the order in which they were read. */
struct kept {
    uint64_t generation;
    uint64_t began_ns;
    struct trail_buffer_ *first, *last;
    size_t bytes;
};

static struct {
    bool on;
    int64_t min_age_ns;
    size_t max_bytes;
    uint64_t from;
    struct kept building;
    struct kept kept[MAX_KEPT]; /* oldest first */
    size_t count;
    bool pinned; /* a snapshot is being written: nothing may be dropped */
} flight;

static void free_kept(struct kept *kept)
{
    struct trail_buffer_ *buffer = kept->first, *next;
    /* Keeping them removed their bytes from tracer.queued. */
    for (; buffer; buffer = next) {
        next = buffer->next;
        buffer_unmap(buffer);
    }
    memset(kept, 0, sizeof *kept);
}

void flight_begin(const trail_flight_options *options, uint64_t first)
{
    flight.on = true;
    flight.min_age_ns =
        options && options->min_age_ns > 0 ? options->min_age_ns : DEFAULT_MIN_AGE_NS;
    flight.max_bytes = options && options->max_bytes ? options->max_bytes : DEFAULT_MAX_BYTES;
    flight.from = first;
    flight.count = 0;
    flight.pinned = false;
}

void flight_lost(void)
{
    free_kept(&flight.building);
    if (flight.pinned)
        return;
    for (size_t i = 0; i < flight.count; i++)
        free_kept(&flight.kept[i]);
    flight.count = 0;
}

void flight_end(void)
{
    while (flight.pinned)
        pthread_cond_wait(&tracer.changed, &tracer.lock);
    flight_lost();
    flight.on = false;
}

bool flight_on(void)
{
    return flight.on;
}

bool flight_keep(struct trail_buffer_ *buffer)
{
    struct kept *kept = &flight.building;
    if (!flight.on || buffer->generation < flight.from)
        return false;
    if (kept->generation != buffer->generation)
        free_kept(kept);
    kept->generation = buffer->generation;
    buffer->next = NULL;
    if (kept->last)
        kept->last->next = buffer;
    else
        kept->first = buffer;
    kept->last = buffer;
    kept->bytes += buffer->used;
    tracer.queued -= buffer->size;
    pthread_cond_broadcast(&tracer.room);
    return true;
}

/* Drops the oldest generations. The shortest run that reaches either limit remains (§7.9). */
static void trim(uint64_t now)
{
    size_t first = flight.count, bytes = 0;
    if (flight.pinned)
        return;
    while (first > 0) {
        const struct kept *oldest = &flight.kept[first];
        if (first < flight.count &&
            (bytes > flight.max_bytes || (int64_t)(now - oldest->began_ns) > flight.min_age_ns))
            break;
        bytes += flight.kept[--first].bytes;
    }
    for (size_t i = 0; i < first; i++)
        free_kept(&flight.kept[i]);
    memmove(flight.kept, flight.kept + first, (flight.count - first) * sizeof *flight.kept);
    flight.count -= first;
}

void flight_complete(uint64_t generation, uint64_t began_ns)
{
    if (!flight.on || flight.building.generation != generation)
        return;
    if (flight.count == MAX_KEPT) {
        if (flight.pinned) {
            free_kept(&flight.building);
            return;
        }
        free_kept(&flight.kept[0]);
        memmove(flight.kept, flight.kept + 1, --flight.count * sizeof *flight.kept);
    }
    flight.building.began_ns = began_ns;
    flight.kept[flight.count++] = flight.building;
    memset(&flight.building, 0, sizeof flight.building);
    trim(clock_ns(CLOCK_MONOTONIC));
    pthread_cond_broadcast(&tracer.changed);
}

uint64_t flight_newest(void)
{
    return flight.count ? flight.kept[flight.count - 1].generation : 0;
}

static bool write_kept(int fd, const struct kept *kept, uint64_t *bytes)
{
    static const uint8_t end = V2_EndOfGeneration;
    for (const struct trail_buffer_ *buffer = kept->first; buffer; buffer = buffer->next) {
        if (!output_write(fd, buffer->data, buffer->used))
            return false;
        *bytes += buffer->used;
    }
    if (tracer.format < 26)
        return true;
    *bytes += 1;
    return output_write(fd, &end, 1);
}

bool flight_write(int fd, uint64_t *bytes, trail_error *err)
{
    uint64_t written = WIRE_HEADER_SIZE;
    size_t count;
    bool ok;
    pthread_mutex_lock(&tracer.lock);
    if (flight.pinned) {
        pthread_mutex_unlock(&tracer.lock);
        return record_fail(err, TRAIL_USAGE,
                           "a snapshot of the flight recorder is being written already");
    }
    flight.pinned = true;
    count = flight.count;
    pthread_mutex_unlock(&tracer.lock);

    ok = output_write(fd, wire_header(tracer.format), WIRE_HEADER_SIZE);
    for (size_t i = 0; ok && i < count; i++)
        ok = write_kept(fd, &flight.kept[i], &written);
    if (!ok)
        (void)record_fail(err, TRAIL_IO, "cannot write the snapshot: %s", strerror(errno));

    pthread_mutex_lock(&tracer.lock);
    flight.pinned = false;
    trim(clock_ns(CLOCK_MONOTONIC));
    pthread_cond_broadcast(&tracer.changed);
    pthread_mutex_unlock(&tracer.lock);
    if (bytes)
        *bytes = written;
    return ok;
}

void flight_after_fork(void)
{
    memset(&flight, 0, sizeof flight);
}
