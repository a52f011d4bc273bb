/*
 * The clocks of a Perfetto trace. Snapshots (protos/perfetto/trace/clock_snapshot.proto) hold the
 * readings of several clocks at one moment; a time of another clock is converted to CLOCK_BOOTTIME,
 * which the kernel's events use, by the last snapshot before it, or the first.
 *
 * Clocks 64 to 127 belong to a packet sequence: their snapshot is in the sequence, before the
 * times.
 */
#pragma once

#include "import/proto_read.h"

enum { CLOCK_OF_TRACE = 6, CLOCK_MONOTONIC_ID = 3, CLOCKS_OF_SEQUENCE = 64, CLOCKS_END = 128 };

struct clock_point {
    int64_t ns, trace_ns;
};

/* Readings of the machine's clocks, each sorted by its own time. */
struct perfetto_clocks {
    struct clock_points {
        struct clock_point *items;
        size_t count, room;
    } of[CLOCKS_OF_SEQUENCE];
    bool failed; /* out of memory */
};

/* The clocks of a sequence: each with its reading and that of a machine clock at the same
 * moment. */
struct sequence_clocks {
    struct sequence_clock {
        uint32_t id, base;
        int64_t own_ns, base_ns;
        uint64_t unit_ns;
        bool incremental; /* each time is the difference to the previous one */
    } * items;
    size_t count, room;
};

/* Takes a ClockSnapshot for the machine's clocks; clocks_sort must follow, before
 * clocks_trace_ns. */
void clocks_take(struct perfetto_clocks *clocks, struct proto snapshot);
void clocks_sort(struct perfetto_clocks *clocks);
void clocks_free(struct perfetto_clocks *clocks);

/* Takes a ClockSnapshot for a sequence's clocks. Returns false if out of memory. */
bool clocks_take_own(struct sequence_clocks *own, struct proto snapshot);

/*
 * Converts a time of that clock to the trace's time, *ns. Returns false if the clock belongs to the
 * sequence and has had no snapshot, or if no clock can show that time.
 */
bool clocks_trace_ns(const struct perfetto_clocks *clocks, struct sequence_clocks *own,
                     uint64_t clock, uint64_t time, int64_t *ns);
