/* The clock of OTLP's messages: Unix time, from the trace's first reading of the wall clock. */
#pragma once

#include <trail/read.h>

/* Zero-initialised: not known yet. */
struct otlp_clock {
    bool known;
    uint64_t offset; /* Unix time minus trace time, in ns */
};

/* Without a wall clock, trace times are used as Unix times, which must not be 0. */
static inline void otlp_clock_begin(struct otlp_clock *clock, int64_t origin_ns)
{
    if (!clock->known)
        clock->offset = origin_ns > 0 ? 0 : 1 - (uint64_t)origin_ns;
}

static inline void otlp_clock_take(struct otlp_clock *clock, const trail_clock_snapshot *snapshot)
{
    if (clock->known || snapshot->wall_s <= 0)
        return;
    clock->known = true;
    clock->offset =
        (uint64_t)snapshot->wall_s * 1000000000U + snapshot->wall_ns - (uint64_t)snapshot->trace_ns;
}

static inline uint64_t otlp_clock_time(const struct otlp_clock *clock, int64_t ns)
{
    return (uint64_t)ns + clock->offset;
}
