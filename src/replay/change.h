/* A change of the conditions under which a trace is replayed. */
#pragma once

#include <stddef.h>

enum change_kind {
    CHANGE_FREE,   /* no thread waits for lock `name` */
    CHANGE_HOLD,   /* it is held `factor` times as long */
    CHANGE_FASTER, /* `name`, a function, a region or a thread, runs `factor` times as long */
    CHANGE_CPUS,   /* `cpus` CPUs instead of the trace's */
    CHANGE_IO,     /* waits for `name` that end from outside take `factor` times as long */
    CHANGE_NO_GC,
    CHANGE_POOL, /* `threads` threads with the start function `name` do their work */
    CHANGE_KINDS
};

struct change {
    const char *name;
    double factor;
    enum change_kind kind;
    unsigned cpus, threads;
};

enum { REPLAY_CHANGES = 16 };

/* Writes the option of trail whatif, "--hold=stats_mu=0.5x", and returns it. */
const char *change_option(const struct change *change, char *buf, size_t size);
