/*
 * What every reader of a foreign recording produces and the model consumes: one stream of small
 * events about threads, CPUs and wake-ups.
 *
 *     perf, ftrace, babeltrace2: text --+
 *     Perfetto: protocol buffers -------+-> struct import_event -> window -> model -> v2_writer
 *
 * Threads are named by TID. TID 0 is the idle task of every CPU: it is no thread.
 */
#ifndef TRAIL_IMPORT_EVENT_H
#define TRAIL_IMPORT_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <trail/read.h>

/* Linux's limits, PID_MAX_LIMIT and the largest NR_CPUS: larger numbers are no TIDs and CPUs. */
#define IMPORT_TID_MAX  ((1 << 22) - 1)
#define IMPORT_CPU_MAX  8191
#define IMPORT_NAME_MAX 64 /* bytes of a thread's name that are kept; Linux has 15 */

/* The event's thread is not in the event: it is the one that runs on the CPU. */
#define IMPORT_TID_OF_CPU (-1)
/* The event's CPU is not known, and needs none. */
#define IMPORT_NO_CPU (-1)

enum import_kind {
    IMPORT_SWITCH,       /* on `cpu`, `tid` stops as `left` says, and `other` runs */
    IMPORT_WAKING,       /* `tid` wakes `other` */
    IMPORT_WAKEUP,       /* `other` is ready; by `tid`, unless there is an IMPORT_WAKING */
    IMPORT_FORK,         /* `tid` starts `other` */
    IMPORT_STARTED,      /* `tid` has started `other`: the same, if no IMPORT_FORK said so */
    IMPORT_EXIT,         /* `tid` ends when it leaves its CPU */
    IMPORT_INTERRUPT,    /* `cpu` begins to handle an interrupt */
    IMPORT_RESUME,       /* `cpu` goes on with what the interrupt had interrupted */
    IMPORT_LOST,         /* events of `cpu` are missing here */
    IMPORT_RUN,          /* `tid` runs, on any slot */
    IMPORT_PAUSE,        /* `tid` waits; `text`, if it is known for what: "mutex 0x10" */
    IMPORT_REGION_BEGIN, /* `text` is its name */
    IMPORT_REGION_END,
    IMPORT_TASK_BEGIN, /* `number` is its ID, `text` its name */
    IMPORT_TASK_END,
    IMPORT_LOG, /* `text` */
    IMPORT_HELD, /* `tid` releases a lock; `text` is which, and for how long it had it: "mutex 0x10 110ms" */
};

/* How a thread leaves its CPU. */
enum import_left {
    IMPORT_PREEMPTED, /* ready */
    IMPORT_SLEEPING,  /* S: a signal ends it */
    IMPORT_BLOCKED,   /* D */
    IMPORT_STOPPED,   /* T, t: by a signal or a debugger */
    IMPORT_ENDED,     /* X, Z */
    IMPORT_PAUSED,    /* it waits, and the recording does not know for what */
};

/* Frames of a call stack, innermost first, or one text; allocated as one piece. */
struct import_frame {
    trail_string function, file;
};

struct import_stack {
    size_t count;
    struct import_frame frames[];
};

struct import_event {
    int64_t time_ns;
    uint64_t order; /* as it arrived: decides between equal times */
    uint8_t kind;   /* enum import_kind */
    uint8_t left;   /* enum import_left */
    bool in_interrupt;
    int32_t cpu;
    int32_t tid, other;
    uint64_t number;
    struct import_stack *stack; /* of `tid`; owned by the event; NULL if there is none */
    char *text;                 /* owned by the event; NULL if there is none */
};

#endif
