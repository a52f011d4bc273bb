/*
 * The clocks of a Perfetto trace. Snapshots (protos/perfetto/trace/clock_snapshot.proto) say what
 * several clocks showed at one moment; a time of another clock becomes one of CLOCK_BOOTTIME, which
 * the kernel's events have, by the last snapshot before it, or the first.
 *
 * Clocks 64 to 127 are the own ones of a packet sequence: their snapshot is in the sequence, before
 * the times.
 */
#ifndef TRAIL_IMPORT_PERFETTO_CLOCKS_H
#define TRAIL_IMPORT_PERFETTO_CLOCKS_H

#include "import/proto_read.h"

enum { CLOCK_OF_TRACE = 6, CLOCK_MONOTONIC_ID = 3, CLOCKS_OF_SEQUENCE = 64, CLOCKS_END = 128 };

struct clock_point {
    int64_t ns, trace_ns;
};

/* What the clocks of the machine showed: each by its own time, in order. */
struct perfetto_clocks {
    struct clock_points {
        struct clock_point *items;
        size_t count, room;
    } of[CLOCKS_OF_SEQUENCE];
    bool failed; /* memory is out */
};

/* The clocks of a sequence: what each showed when a clock of the machine showed something. */
struct sequence_clocks {
    struct sequence_clock {
        uint32_t id, base;
        int64_t own_ns, base_ns;
        uint64_t unit_ns;
        bool incremental; /* each time is the difference to the one before */
    } * items;
    size_t count, room;
};

/* Takes a ClockSnapshot for the clocks of the machine; clocks_sort must follow, before
 * clocks_trace_ns. */
void clocks_take(struct perfetto_clocks *clocks, struct proto snapshot);
void clocks_sort(struct perfetto_clocks *clocks);
void clocks_free(struct perfetto_clocks *clocks);

/* Takes a ClockSnapshot for the clocks of a sequence. Returns false if memory is out. */
bool clocks_take_own(struct sequence_clocks *own, struct proto snapshot);

/*
 * Sets *ns to the trace's time of a time of that clock. Returns false if the clock belongs to the
 * sequence and has had no snapshot, and for times that no clock shows.
 */
bool clocks_trace_ns(const struct perfetto_clocks *clocks, struct sequence_clocks *own,
                     uint64_t clock, uint64_t time, int64_t *ns);

#endif
