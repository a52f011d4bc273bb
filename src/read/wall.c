/* The line with the wall clock, in formats that have no clock readings. */
#include "read/wall.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "read/string_record.h"
#include "wire/wire.h"

#define SECOND_NS 1000000000

/* Parses a line into *clocks. Returns false unless the text is such a line. */
static bool wall_parse(trail_string text, trail_clock_snapshot *clocks)
{
    char line[WALL_LINE];
    unsigned long long mono;
    long long seconds;
    unsigned nanoseconds;
    if (!text_take(&text, WALL_PREFIX) || text.size >= sizeof line)
        return false;
    memcpy(line, text.data, text.size);
    line[text.size] = '\0';
    /* NOLINTNEXTLINE(cert-err34-c): the widths keep every number in its range. */
    if (sscanf(line, "mono=%18llu wall=%18lld.%9u", &mono, &seconds, &nanoseconds) != 3)
        return false;
    *clocks = (trail_clock_snapshot){
        .trace_ns = (int64_t)mono, /* times in these traces are from the monotonic clock */
        .mono_ns = mono,
        .wall_s = seconds,
        .wall_ns = nanoseconds,
    };
    return true;
}

trail_string wall_line(const trail_clock_snapshot *clocks, char *room)
{
    int size = 0;
    if (clocks->trace_ns >= 0 && clocks->wall_s >= 0)
        size = snprintf(room, WALL_LINE, WALL_PREFIX "mono=%" PRId64 " wall=%" PRId64 ".%09" PRIu32,
                        clocks->trace_ns, clocks->wall_s, clocks->wall_ns);
    return (trail_string){room, size > 0 && size < WALL_LINE ? (size_t)size : 0};
}

bool wall_in_batch(const trail_batch *batch, const uint8_t *data, trail_clock_snapshot *clocks)
{
    const uint8_t *at = data + 1, *end = data + batch->size;
    trail_string text;
    if (batch->kind != TRAIL_BATCH_STRINGS || batch->size == 0)
        return false;
    while (at < end && *at++ == V2_String && string_take(&at, end, &text))
        if (wall_parse(text, clocks))
            return true;
    return false;
}

bool wall_at(const trail_clock_snapshot *clocks, int64_t time_ns, int64_t *wall_ns)
{
    int64_t since;
    return !__builtin_mul_overflow(clocks->wall_s, SECOND_NS, wall_ns) &&
           !__builtin_add_overflow(*wall_ns, (int64_t)clocks->wall_ns, wall_ns) &&
           !__builtin_sub_overflow(time_ns, clocks->trace_ns, &since) &&
           !__builtin_add_overflow(*wall_ns, since, wall_ns);
}

/* Traces converted from old ones have a fake wall clock, equal to the trace's time. */
static bool is_real(const trail_clock_snapshot *clocks)
{
    int64_t wall_ns;
    return wall_at(clocks, clocks->trace_ns, &wall_ns) && wall_ns != clocks->trace_ns;
}

static bool find_line(const trail_reader *reader, trail_clock_snapshot *clocks)
{
    size_t count = trail_reader_string_count(reader);
    if (!trail_version_is_v2(trail_reader_version(reader)))
        return false;
    for (size_t i = 1; i < count; i++)
        if (wall_parse(trail_reader_string(reader, (trail_string_handle)i), clocks))
            return true;
    return false;
}

bool trail_reader_wall_clock(const trail_reader *reader, const trail_event *sync,
                             trail_clock_snapshot *clocks)
{
    trail_clock_snapshot found;
    if (sync->kind != TRAIL_SYNC || sync->sync.final)
        return false;
    if (sync->sync.snapshot)
        found = *sync->sync.snapshot;
    else if (!find_line(reader, &found))
        return false;
    if (!is_real(&found))
        return false;
    *clocks = found;
    return true;
}
