/*
 * The facts of the logs that `trail record` writes of waits: which words name which kind of wait
 * (waits.def), and how each kind is called (wait_kinds.def). The recorder writes by these, readers
 * understand by these.
 */
#ifndef TRAIL_WIRE_WAITS_H
#define TRAIL_WIRE_WAITS_H

#include <stddef.h>

/* Categories of the logs, and the text of the one behind a wait that its time limit ended. */
#define WIRE_WAIT_CATEGORY "wait" /* in front of a wait: "mutex stats_mu" */
#define WIRE_HOLDS_CATEGORY                                                                        \
    "holds" /* in front of a wait, a lock that the thread holds: "mutex a_mu" */
#define WIRE_HOLDS_INFERRED "holds, inferred" /* the same, by the variables in its stack */
#define WIRE_HOLDS_OWNER                                                                           \
    "holds, as owner" /* the same, by the lock itself: its begin is not recorded */
#define WIRE_SIGNALLED                                                                             \
    "signalled" /* in front of a wait for a condition: where it was, in vain, before */
#define WIRE_HELD_CATEGORY  "held" /* "mutex stats_mu 110ms" */
#define WIRE_WAIT_TIMED_OUT "timed out"

/*
 * How it is known whether a thread runs or is ready: by the kernel's context switches, or inferred.
 * A string "trail.readiness kernel" in each generation, as of its begin, and a log of this category
 * at each change.
 */
#define WIRE_READINESS          "trail.readiness"
#define WIRE_READINESS_KERNEL   "kernel"
#define WIRE_READINESS_INFERRED "inferred"

enum wire_wait {
    WIRE_WAIT_NONE,
#define WAIT_KIND(name, ...) WIRE_WAIT_##name,
#include "wire/wait_kinds.def"
#undef WAIT_KIND
    WIRE_WAITS
};

/* The rows of waits.def. */
enum wire_log {
    WIRE_LOG_NONE,
#define WAIT(name, ...) WIRE_LOG_##name,
#include "wire/waits.def"
#undef WAIT
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

/* By enum wire_wait; that of WIRE_WAIT_NONE has no texts. */
extern const struct wire_wait_kind wire_wait_kinds[WIRE_WAITS];

/*
 * The kind whose words a log's text begins with, followed by a space or its end; *length is that of
 * the words. WIRE_WAIT_NONE: it begins with none.
 */
enum wire_wait wire_wait_parse(const char *text, size_t size, size_t *length);

#endif
