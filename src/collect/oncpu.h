/*
 * When a thread was on a CPU, beside its ops: the kernel's switches in the order of its time.
 *
 * The program's clock and the kernel's differ by a microsecond or so, in either direction. So an op and a switch
 * are not paired by a distance, but by what cannot be: a thread that is off its CPU does nothing. An op between
 * a switch out and the next switch in is moved to that one of them that is nearer: in front of the one, as the
 * begin of the wait for which it was switched out; behind the other, as its end. Only the wait for a condition's
 * mutex, whose begin is the time at which somebody else gave the signal, may begin while the thread is off.
 */
#ifndef TRAIL_COLLECT_ONCPU_H
#define TRAIL_COLLECT_ONCPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collect/switches.h"

/* Those that wait for a thread: they may be earlier than its first record is read. */
struct switch_list {
    struct switch_record *at;
    size_t count, room;
};

struct cpu_switch {
    uint64_t time; /* ticks */
    enum switch_kind kind;
};

/* Of a thread. */
struct oncpu {
    struct cpu_switch *at; /* which the model has not taken yet: [first, first + count) */
    size_t first, count, room;
    bool off; /* off its CPU, since */
    uint64_t off_time;
    /* What is not shown. Times in ns, -1: not now. */
    int64_t on_since;  /* on a CPU within a wait */
    int64_t on_ns;     /* ... in all of this wait */
    int64_t off_since; /* off it for a moment */
    bool preempted;    /* ... because others ran */
};

/* When records were lost, the newest last. Ticks. */
#define LOST_SPANS 64
struct lost_spans {
    struct lost_span {
        uint64_t begin, end;
    } at[LOST_SPANS];
    size_t count;
};

#endif
