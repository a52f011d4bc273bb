/*
 * The logs that `trail record` writes about waits: which words name which kind of wait (waits.def),
 * and how each kind is called (wait_kinds.def). Recorder and readers use the same tables.
 */
#pragma once

#include <stddef.h>

/* Categories of the logs, and the texts of logs after a wait that a time ended. */
#define WIRE_WAIT_CATEGORY  "wait"  /* before a wait: "mutex stats_mu" */
#define WIRE_HOLDS_CATEGORY "holds" /* before a wait, a lock that the thread holds: "mutex a_mu" */
#define WIRE_HOLDS_INFERRED                                                                        \
    "holds, inferred" /* the same, inferred from the variables in its
                                               * stack */
#define WIRE_HOLDS_OWNER                                                                           \
    "holds, as owner" /* the same, from the lock itself: its begin is not recorded */
#define WIRE_HOLDS_ENDED "holds, ended" /* a lock with which the thread ends */
#define WIRE_SIGNALLED                                                                             \
    "signalled" /* before a wait for a condition: where it was signalled earlier, in vain */
#define WIRE_HELD_CATEGORY "held" /* "mutex stats_mu 110ms" */
/*
 * Followed by the number of the goroutine that took the lock, if another one released it and wrote
 * the log: "mutex stats_mu 110ms by 7". The number is in the writer's block: see merged_ids.h.
 */
#define WIRE_HELD_BY        " by "
#define WIRE_WAIT_TIMED_OUT "timed out"
#define WIRE_WAIT_UNTIL     "until a time" /* after a sleep that was not for a length of time */
/* Before the address of the peer of a TCP connection that the process made: "read
 * server 10.0.0.1:5432". */
#define WIRE_WAIT_SERVER "server "
/*
 * Of calls without events of their own: "read 512 1.2ms", the kind of the last one, how many there
 * were since the last such log, and how long in all. They are waits too short for events, or yields
 * that followed each other at once.
 */
#define WIRE_COUNTED "counted"
#define WIRE_YIELD   "yield"

/*
 * How it is known whether a thread runs or is ready: from the kernel's context switches, or
 * inferred. A string "trail.readiness kernel" in each generation gives the state at its start, and
 * a log of this category each change.
 */
#define WIRE_READINESS          "trail.readiness"
#define WIRE_READINESS_KERNEL   "kernel"
#define WIRE_READINESS_INFERRED "inferred"

enum wire_wait {
    WIRE_WAIT_NONE,
#define WAIT_KIND(name, ...) WIRE_WAIT_##name,
#include "wire/wait_kinds.def"
    WIRE_WAITS
};

/* The rows of waits.def. */
enum wire_log {
    WIRE_LOG_NONE,
#define WAIT(name, ...) WIRE_LOG_##name,
#include "wire/waits.def"
    WIRE_LOGS
};

/* The kind of each row. */
extern const enum wire_wait wire_log_kinds[WIRE_LOGS];

/* Traits. */
#define WIRE_WAIT_LOCK    1u
#define WIRE_WAIT_IDLE    2u
#define WIRE_WAIT_HELD    4u
#define WIRE_WAIT_OUTSIDE 8u

struct wire_wait_kind {
    const char *word, *title, *phrase, *phrase_of;
    unsigned traits;
};

/* Indexed by enum wire_wait; WIRE_WAIT_NONE has no texts. */
extern const struct wire_wait_kind wire_wait_kinds[WIRE_WAITS];

/*
 * Returns the kind whose words a log's text begins with, followed by a space or its end; *length is
 * the length of the words. WIRE_WAIT_NONE: no match.
 */
enum wire_wait wire_wait_parse(const char *text, size_t size, size_t *length);
