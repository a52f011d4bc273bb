/*
 * Names of waits: what a goroutine waits for, as a number among the other names (names.h).
 *
 * The name of a wait of a Go program is that of its reason. In recordings of C programs a log in front of
 * the wait says what it is for ("mutex stats_mu"): then the log's text is the wait's name, and the facts
 * behind it are found here: the kind, the object, Go's reason. So whatever adds up or shows waits by name
 * has them by object without knowing of logs.
 *
 * A log belongs to the wait whose transition is the goroutine's next. `struct announced` keeps logs until
 * then; where there are none, as in traces of Go programs, it costs the test of `heard`.
 */
#ifndef TRAIL_ANALYZE_WAIT_NAMES_H
#define TRAIL_ANALYZE_WAIT_NAMES_H

#include "analyze/names.h"
#include "wire/waits.h"

/* What a log of category "wait" or "held" says; `kind` is WIRE_WAIT_NONE if it is none that is known. */
struct wait_text {
    enum wire_wait kind;
    trail_string object; /* within the text; empty: none */
    int64_t held_ns;     /* of "held" */
};

/* "mutex stats_mu". */
struct wait_text wait_text_of_wait(trail_string text);

/* "mutex stats_mu 110ms", or "~110ms". */
struct wait_text wait_text_of_hold(trail_string text);

/* Behind the name of a wait. In the arena of the names. */
struct wait_facts {
    enum wire_wait kind;  /* WIRE_WAIT_NONE: it has no facts */
    trail_name reason;    /* Go's word: "sync" */
    trail_name kind_name; /* the kind's title: what all waits of the kind are added up under */
    trail_name object;
};

/* NULL: the name is a reason, or not of a wait. */
static inline const struct wait_facts *wait_facts_of(const struct names *names, trail_name wait)
{
    return __builtin_expect(names->waits.count == 0, 1) ? NULL : idmap_find(&names->waits, wait);
}

/* Go's reason of a wait. */
static inline trail_name wait_reason(const struct names *names, trail_name wait)
{
    const struct wait_facts *facts = wait_facts_of(names, wait);
    return facts ? facts->reason : wait;
}

/* What stands for all waits of its kind; of a reason, that itself. */
static inline trail_name wait_kind_name(const struct names *names, trail_name wait)
{
    const struct wait_facts *facts = wait_facts_of(names, wait);
    return facts ? facts->kind_name : wait;
}

/* What stands for all waits of a kind, for this reason; 0: not known yet. 0 when memory is out. */
trail_name wait_kind_put(struct names *names, enum wire_wait kind, trail_name reason);

/* The same for callers of the library. */
trail_wait_for wait_for_of(const struct names *names, trail_name wait);

/* Whether a log is the one behind a goroutine's last wait that says that its time limit ended it. */
bool wait_log_timed_out(const struct names *names, const trail_event *log);

/* Zero-initialised is empty and ready. Not thread-safe. */
struct announced {
    struct idmap texts; /* goroutine -> the name of its log's text, as a pointer */
    trail_name text;    /* what the transition at hand was announced with; 0: with nothing */
    bool heard;         /* there is something in one of these */
};

/* A log, of any category. False when memory is out. */
bool announced_log(struct announced *announced, struct names *names, const trail_event *log);

/* The slow path of announced_transition. */
void announced_take(struct announced *announced, int64_t goroutine);

/* To be called before each transition of a goroutine. */
static inline void announced_transition(struct announced *announced, int64_t goroutine)
{
    if (__builtin_expect(announced->heard, 0))
        announced_take(announced, goroutine);
}

/* The slow path of announced_name. */
trail_name announced_name_of(const struct announced *announced, struct names *names,
                             trail_name reason);

/* The name of the wait that begins with the transition at hand, for the reason that it gives. */
static inline trail_name announced_name(const struct announced *announced, struct names *names,
                                        trail_name reason)
{
    return __builtin_expect(announced->heard, 0) ? announced_name_of(announced, names, reason)
                                                 : reason;
}

static inline void announced_free(struct announced *announced)
{
    idmap_free(&announced->texts);
}

#endif
