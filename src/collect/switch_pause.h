/*
 * Whether the kernel's context switches are worth their cost. A record costs the program up to a
 * microsecond: next to nothing for a busy server, but as much as the work itself for two threads
 * that only wake each other. So the events are closed while a CPU switches very often, and opened
 * again after a pause, which becomes four times as long each time the rate is still high.
 *
 *     open - a window with too many records -> paused - the pause is over -> open ...
 *
 * The events are closed, not disabled: most of the cost of a switch comes from its threads having
 * events at all, and little from writing records (bench/README.md).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The default limit, in switches per second of one CPU: recording them costs about 5 % of it. */
#define SWITCH_PAUSE_RATE 25000
/* The rate is measured over at least this time. */
#define SWITCH_PAUSE_WINDOW_NS 50000000
/* After a pause the first window is short: the rate was high before. */
#define SWITCH_PAUSE_LOOK_NS 20000000
/*
 * The first pause. A shorter one would save little: the kernel continues to check for events at
 * each switch for a second after the last event was closed.
 */
#define SWITCH_PAUSE_FIRST_NS 4000000000
#define SWITCH_PAUSE_MOST_NS  16000000000
/* After this long without a pause, the next pause is short again. */
#define SWITCH_PAUSE_CALM_NS 10000000000

/* Initially all 0 except the limit. Times are CLOCK_MONOTONIC, in ns. */
struct switch_pause {
    unsigned rate; /* the limit; 0: none */
    bool paused;
    bool looks;        /* the window is the first after a pause */
    int64_t since_ns;  /* the start of the window or of the pause; 0: no window yet */
    uint64_t records;  /* from the busiest CPU in the window */
    int64_t length_ns; /* of the last pause */
    int64_t ended_ns;  /* its end */
};

enum switch_pause_step { SWITCH_PAUSE_NOTHING, SWITCH_PAUSE_BEGINS, SWITCH_PAUSE_ENDS };

/*
 * Returns what to do at `now_ns`, when the busiest CPU has made `records` since the last call: two
 * for each switch from one thread to another. While paused, there are none.
 */
enum switch_pause_step switch_pause_step(struct switch_pause *pause, int64_t now_ns,
                                         uint64_t records);

/* Called when the events could not be opened: begins another pause. */
void switch_pause_again(struct switch_pause *pause, int64_t now_ns);
