/*
 * Tasks, regions and waits that last longer than a limit. The model knows when each begins and
 * ends, so the recorded program does nothing for this.
 *
 * Each is reported when it ends, and before that if it has lasted for SLOW_OPEN times its limit:
 * what never ends is then reported, too.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum slow_what { SLOW_TASK, SLOW_REGION, SLOW_WAIT };

/* What lasts this many times its limit is reported before it ends. */
enum { SLOW_OPEN = 2 };

struct slow_limit {
    enum slow_what what;
    const char *name; /* of the task or region; NULL: any */
    uint64_t waits;   /* bits of enum shm_wait */
    int64_t ns;
};

enum { SLOW_TEXT = 400 };

struct slow_event {
    uint64_t number; /* the same in both reports of something, from 1 on */
    bool again;      /* the second report */
    bool ended;
    int64_t limit_ns;
    int64_t begin_ns, lasted_ns; /* lasted: so far, if it has not ended */
    uint64_t goroutine;          /* of a wait; 0: it is none */
    char text[SLOW_TEXT];        /* "task request" */
};

/* The caller's; outlives the trace. */
struct slow_limits {
    const struct slow_limit *at;
    size_t count;
    void (*found)(void *context, const struct slow_event *event);
    void *context;
};

/* Of a trace. Set `limits`, and zero-initialise the rest. */
struct slow {
    struct slow_limits limits;
    uint64_t reports;
    int64_t looked_ns; /* when what is open was last looked at */
};

/* A task, region or wait that has begun. */
struct slow_span {
    int64_t begin_ns;
    uint64_t number; /* of its report; 0: none yet */
};

struct slow_candidate {
    enum slow_what what;
    struct slow_span *span;
    const char *name; /* of a task or region */
    uint8_t wait;     /* enum shm_wait */
    bool ended;
    uint64_t goroutine; /* of a wait */
    int64_t lasted_ns;
};

/* Returns the limit that it exceeds, unless that has been reported; NULL: none. */
const struct slow_limit *slow_find(const struct slow *slow, const struct slow_candidate *candidate);

/* Writes "task request took 312 ms (> 200 ms)" to `text`. */
enum { SLOW_LINE = SLOW_TEXT + 100 };
void slow_line(const struct slow_event *event, char text[SLOW_LINE]);

void slow_report(struct slow *slow, const struct slow_candidate *candidate,
                 const struct slow_limit *limit, const char *text);

/* Reports the task or region if it is slow at `ns`. */
void slow_look_at(struct slow *slow, const struct slow_candidate *candidate);

/* Whether open tasks, regions and waits are due for a check. */
bool slow_is_due(struct slow *slow, int64_t ns);
