/*
 * What every reader of a foreign recording produces and the model consumes: one stream of small
 * events about threads, CPUs and wake-ups.
 *
 *     perf, ftrace, babeltrace2: text --+
 *     Perfetto: protocol buffers -------+-> struct import_event -> window -> model -> v2_writer
 *
 * Threads are identified by TID. TID 0 is the idle task of every CPU, which is not a thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <trail/read.h>

/* Linux's limits, PID_MAX_LIMIT and the largest NR_CPUS: larger numbers are not valid TIDs or
 * CPUs. */
#define IMPORT_TID_MAX  ((1 << 22) - 1)
#define IMPORT_CPU_MAX  8191
#define IMPORT_NAME_MAX 64 /* bytes kept of a thread's name; Linux has 15 */

/* The event does not name its thread: it is the one that runs on the CPU. */
#define IMPORT_TID_OF_CPU (-1)
/* The event's CPU is not known, and not needed. */
#define IMPORT_NO_CPU (-1)

enum import_kind {
    IMPORT_SWITCH,       /* on `cpu`, `tid` stops, as `left` describes, and `other` runs */
    IMPORT_WAKING,       /* `tid` wakes `other` */
    IMPORT_WAKEUP,       /* `other` is ready; by `tid`, unless there is an IMPORT_WAKING */
    IMPORT_FORK,         /* `tid` starts `other` */
    IMPORT_STARTED,      /* `tid` has started `other`: the same, if there was no IMPORT_FORK */
    IMPORT_EXIT,         /* `tid` ends when it leaves its CPU */
    IMPORT_INTERRUPT,    /* `cpu` begins to handle an interrupt */
    IMPORT_RESUME,       /* `cpu` continues with what the interrupt had interrupted */
    IMPORT_LOST,         /* events of `cpu` are missing here */
    IMPORT_RUN,          /* `tid` runs, on any slot */
    IMPORT_PAUSE,        /* `tid` waits; `text`: for what, if known: "mutex 0x10" */
    IMPORT_REGION_BEGIN, /* `text` is its name */
    IMPORT_REGION_END,
    IMPORT_TASK_BEGIN, /* `number` is its ID, `text` its name */
    IMPORT_TASK_END,
    IMPORT_LOG,  /* `text` */
    IMPORT_HELD, /* `tid` releases a lock; `text` names it and the hold time: "mutex 0x10 110ms" */
};

/* How a thread leaves its CPU. */
enum import_left {
    IMPORT_PREEMPTED, /* ready */
    IMPORT_SLEEPING,  /* S: a signal ends it */
    IMPORT_BLOCKED,   /* D */
    IMPORT_STOPPED,   /* T, t: by a signal or a debugger */
    IMPORT_ENDED,     /* X, Z */
    IMPORT_PAUSED,    /* it waits, and the recording does not show for what */
};

/* Frames of a call stack, innermost first, or one text; allocated in one piece. */
struct import_frame {
    trail_string function, file;
};

struct import_stack {
    size_t count;
    struct import_frame frames[];
};

struct import_event {
    int64_t time_ns;
    uint64_t order; /* order of arrival: decides between equal times */
    uint8_t kind;   /* enum import_kind */
    uint8_t left;   /* enum import_left */
    bool in_interrupt;
    int32_t cpu;
    int32_t tid, other;
    uint64_t number;
    struct import_stack *stack; /* of `tid`; owned by the event; NULL: none */
    char *text;                 /* owned by the event; NULL: none */
};
