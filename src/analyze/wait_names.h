/*
 * Names of waits: what a goroutine waits for, as a number among the other names (names.h).
 *
 * The name of a wait in a Go program is its reason. In recordings of C programs a log before the
 * wait describes it ("mutex stats_mu"): the log's text is the wait's name, and this module has its
 * parts: the kind, the object, Go's reason. Code that adds up or shows waits by name gets them by
 * object without reading logs.
 *
 * A log belongs to the goroutine's next transition, if that begins a wait. `struct announced` keeps
 * logs until then; in traces without such logs, as of Go programs, the cost is one test of `heard`.
 */
#pragma once

#include "analyze/names.h"
#include "wire/merged_ids.h"
#include "wire/waits.h"

/* A parsed log of category "wait" or "held"; `kind` is WIRE_WAIT_NONE if it is unknown. */
struct wait_text {
    enum wire_wait kind;
    trail_string object; /* within the text; empty: none */
    int64_t held_ns;     /* of "held" */
    int64_t by;          /* ..., the goroutine that held the lock, if another one released it and
                          * wrote this log: its number in the writer's block; TRAIL_NONE: the
                          * writer */
};

/* "mutex stats_mu". */
struct wait_text wait_text_of_wait(trail_string text);

/* "mutex stats_mu 110ms", or "~110ms"; or "110ms by 7". */
struct wait_text wait_text_of_hold(trail_string text);

/* Returns the goroutine that held the lock. `by` is of the log's text, which `writer` wrote. */
static inline int64_t wait_text_holder(int64_t by, int64_t writer)
{
    return by == TRAIL_NONE ? writer : id_beside(writer, (uint64_t)by);
}

/* "read 512 1.2ms". */
struct wait_count {
    enum wire_wait kind; /* WIRE_WAIT_NONE: yields */
    uint64_t count;      /* 0: the text is none of these */
    int64_t ns;
};

struct wait_count wait_text_of_count(trail_string text);

/*
 * Whether a recorder wrote the log, about waits, locks or states: these are shown as such, not as
 * logs of the program.
 */
bool log_is_recorders(trail_string category, trail_string message);

/* The parts of a wait's name. In the arena of the names. */
struct wait_facts {
    enum wire_wait kind;  /* WIRE_WAIT_NONE: no parts */
    trail_name reason;    /* Go's reason: "sync" */
    trail_name kind_name; /* the title of the kind, under which all its waits are added up */
    trail_name object;
};

/* Returns NULL if the name is a reason, or not of a wait. */
static inline const struct wait_facts *wait_facts_of(const struct names *names, trail_name wait)
{
    return __builtin_expect(names->waits.count == 0, 1) ? NULL : idmap_find(&names->waits, wait);
}

/* Returns Go's reason of a wait. */
static inline trail_name wait_reason(const struct names *names, trail_name wait)
{
    const struct wait_facts *facts = wait_facts_of(names, wait);
    return facts ? facts->reason : wait;
}

/* Returns the name for all waits of its kind; for a reason, the reason itself. */
static inline trail_name wait_kind_name(const struct names *names, trail_name wait)
{
    const struct wait_facts *facts = wait_facts_of(names, wait);
    return facts ? facts->kind_name : wait;
}

/* names_begin_batch for names of waits. */
void wait_names_begin_batch(struct names *names);

/*
 * Returns the name for all waits of a kind with this reason (0: not known yet); 0 if out of memory.
 */
trail_name wait_kind_put(struct names *names, enum wire_wait kind, trail_name reason);

/* Returns the parts for callers of the library. Inline, since the table of states asks for each
 * row. */
static inline trail_wait_for wait_for_of(const struct names *names, trail_name wait)
{
    const struct wait_facts *facts = wait_facts_of(names, wait);
    if (!facts)
        return (trail_wait_for){.reason = wait};
    const struct wire_wait_kind *kind = &wire_wait_kinds[facts->kind];
    const char *phrase = facts->object ? kind->phrase_of : kind->phrase;
    return (trail_wait_for){facts->reason, kind->word, phrase, facts->object};
}

/* Whether the log is the one after a goroutine's last wait that reports that it timed out. */
bool wait_log_timed_out(const struct names *names, const trail_event *log);

/* The same for a sleep until a point in time. */
bool wait_log_until(const struct names *names, const trail_event *log);

/* Zero-initialised is empty and ready. Not thread-safe. */
struct announced {
    struct idmap texts; /* goroutine -> the name of its log's text, as a pointer */
    trail_name text;    /* what the current transition was announced as; 0: nothing */
    bool heard;         /* either of these is not empty */
};

/* Takes a log of any category. Returns false if out of memory. */
bool announced_log(struct announced *announced, struct names *names, const trail_event *log);

/* The slow path of announced_transition. */
void announced_take(struct announced *announced, int64_t goroutine);

/* Called before each transition of a goroutine. */
static inline void announced_transition(struct announced *announced, int64_t goroutine)
{
    if (__builtin_expect(announced->heard, 0))
        announced_take(announced, goroutine);
}

/* The slow path of announced_name. */
trail_name announced_name_of(const struct announced *announced, struct names *names,
                             trail_name reason);

/* Returns the name of the wait that begins with the current transition, given its reason. */
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
