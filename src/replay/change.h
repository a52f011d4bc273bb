/* A change of the conditions under which a trace is played again. */
#ifndef TRAIL_REPLAY_CHANGE_H
#define TRAIL_REPLAY_CHANGE_H

enum change_kind {
    CHANGE_FREE,   /* the lock `name` makes no thread wait */
    CHANGE_HOLD,   /* it is held `factor` times as long */
    CHANGE_FASTER, /* `name`, a function, a region or a thread, runs `factor` times as long */
    CHANGE_CPUS,   /* `cpus` instead of those of the trace */
    CHANGE_IO,     /* waits for `name` that end from outside take `factor` times as long */
    CHANGE_NO_GC,
    CHANGE_KINDS
};

struct change {
    const char *name;
    double factor;
    enum change_kind kind;
    unsigned cpus;
};

enum { REPLAY_CHANGES = 16 };

#endif
