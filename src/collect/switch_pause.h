/*
 * Whether the kernel's context switches are worth what they cost. A record costs the program up to
 * a microsecond: next to nothing for a busy server, but as much as the work itself for two threads
 * that only wake each other. So the events are closed while a CPU switches very often, and opened
 * again after a pause, which is four times as long each time that the rate is still high.
 *
 *     open - a window with too many records -> paused - the pause is over -> open ...
 *
 * Closed, not disabled: what makes a switch dear is that its threads have events at all, and only
 * in small part that records are written (bench/README.md).
 */
#ifndef TRAIL_COLLECT_SWITCH_PAUSE_H
#define TRAIL_COLLECT_SWITCH_PAUSE_H

#include <stdbool.h>
#include <stdint.h>

/* The limit by default, in switches a second of one CPU: recording them costs about 5 % of it. */
#define SWITCH_PAUSE_RATE 25000
/* The rate is measured over at least this time. */
#define SWITCH_PAUSE_WINDOW_NS 50000000
/* Behind a pause the first look is a short one: the rate was high before. */
#define SWITCH_PAUSE_LOOK_NS 20000000
/*
 * The first pause. A shorter one would save little: the kernel goes on looking for events at each
 * switch for a second after the last one was closed.
 */
#define SWITCH_PAUSE_FIRST_NS 4000000000
#define SWITCH_PAUSE_MOST_NS  16000000000
/* After this time without a pause the next one is short again. */
#define SWITCH_PAUSE_CALM_NS 10000000000

/* All 0 at first but the limit. Times are CLOCK_MONOTONIC's, in ns. */
struct switch_pause {
    unsigned rate; /* the limit; 0: none */
    bool paused;
    bool looks;        /* the window is the first behind a pause */
    int64_t since_ns;  /* the begin of the window or of the pause; 0: no window yet */
    uint64_t records;  /* of the busiest CPU in the window */
    int64_t length_ns; /* of the last pause */
    int64_t ended_ns;  /* its end */
};

enum switch_pause_step { SWITCH_PAUSE_NOTHING, SWITCH_PAUSE_BEGINS, SWITCH_PAUSE_ENDS };

/*
 * Returns what is to happen at `now_ns`, if the busiest CPU has made `records` since the last call:
 * two for each switch from one thread to another. While paused, none are made.
 */
enum switch_pause_step switch_pause_step(struct switch_pause *pause, int64_t now_ns,
                                         uint64_t records);

/* The events could not be opened: another pause begins. */
void switch_pause_again(struct switch_pause *pause, int64_t now_ns);

#endif
