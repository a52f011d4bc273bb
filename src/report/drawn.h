/*
 * Drawn states: the state of each goroutine as it is drawn, with a hook for each change. Follows
 * goroutines with analyze/follow.h.
 */
#ifndef TRAIL_REPORT_DRAWN_H
#define TRAIL_REPORT_DRAWN_H

#include "analyze/follow.h"

/* In the order in which they are stacked. */
enum drawn_state {
    DRAWN_RUNNING,
    DRAWN_SYSCALL,
    DRAWN_P_RELEASED, /* in a system call, P released */
    DRAWN_RUNNABLE,
    DRAWN_WAITING,
    DRAWN_STATES,
    DRAWN_NONE = DRAWN_STATES /* does not exist, or is unknown */
};

/* The class in the style sheet: "running", "syscall", "p-released", "runnable", "waiting". */
const char *drawn_class(enum drawn_state state);

/* The text in legends. */
const char *drawn_title(enum drawn_state state);

/* A goroutine alive. */
struct drawn {
    union {
        struct followed followed;
        struct {
            FOLLOWED_MEMBERS;
        };
    };
    enum drawn_state drawn;
    int64_t drawn_ns; /* since when; DRAWN_NONE: since when it exists */
};

/* Called before a change: g->drawn, since g->drawn_ns, ends and `to` begins. Returns false to end the
 * pass. */
typedef bool (*drawn_hook)(void *context, const struct drawn *g, enum drawn_state to,
                           const trail_event *event);

/* Call drawn_init, then pass each batch and its events. Owned by its consumer. Not thread-safe. */
struct drawn_states {
    drawn_hook hook;
    void *context;
    struct names names;
    struct follow follow;
    struct slab slab;
    bool begun;
};

void drawn_init(struct drawn_states *all, const trail_reader *reader, drawn_hook hook,
                void *context);
void drawn_batch(struct drawn_states *all);

/* Returns false on out of memory, or if the hook does. */
bool drawn_event(struct drawn_states *all, const trail_event *event);
void drawn_free(struct drawn_states *all);

#endif
