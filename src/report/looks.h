/*
 * Looks: the state of each goroutine as it is drawn, with a hook for each change. Follows
 * goroutines with analyze/follow.h.
 */
#ifndef TRAIL_REPORT_LOOKS_H
#define TRAIL_REPORT_LOOKS_H

#include "analyze/follow.h"

/* In the order in which they are stacked. */
enum look {
    LOOK_RUNNING,
    LOOK_SYSCALL,
    LOOK_P_RELEASED, /* in a system call, P released */
    LOOK_RUNNABLE,
    LOOK_WAITING,
    LOOKS,
    LOOK_NONE = LOOKS /* does not exist, or is unknown */
};

/* The class in the style sheet: "running", "syscall", "bare", "runnable", "waiting". */
const char *look_class(enum look look);

/* The text in legends. */
const char *look_title(enum look look);

/* A goroutine alive. */
struct looking {
    union {
        struct followed followed;
        struct {
            FOLLOWED_MEMBERS;
        };
    };
    enum look look;
    int64_t look_ns; /* since when; LOOK_NONE: since when it exists */
};

/* Called before a change: g->look, since g->look_ns, ends and `to` begins. Returns false to end the
 * pass. */
typedef bool (*look_hook)(void *context, const struct looking *g, enum look to,
                          const trail_event *event);

/* Call looks_init, then pass each batch and its events. Owned by its consumer. Not thread-safe. */
struct looks {
    look_hook hook;
    void *context;
    struct names names;
    struct follow follow;
    struct slab slab;
    bool begun;
};

void looks_init(struct looks *looks, const trail_reader *reader, look_hook hook, void *context);
void looks_batch(struct looks *looks);

/* Returns false on out of memory, or if the hook does. */
bool looks_event(struct looks *looks, const trail_event *event);
void looks_free(struct looks *looks);

#endif
