/*
 * Looks: how what each goroutine is doing is drawn, with a hook at each change. What they do is
 * followed by analyze/follow.h.
 */
#ifndef TRAIL_REPORT_LOOKS_H
#define TRAIL_REPORT_LOOKS_H

#include "analyze/follow.h"

/* In the order in which they lie above each other. */
enum look {
    LOOK_RUNNING,
    LOOK_SYSCALL,
    LOOK_BARE, /* in a system call, and its P was taken away */
    LOOK_RUNNABLE,
    LOOK_WAITING,
    LOOKS,
    LOOK_NONE = LOOKS /* does not exist, or is not known */
};

/* "running", "syscall", "bare", "runnable", "waiting": the class in the style sheet. */
const char *look_class(enum look look);

/* The word in legends. */
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
    int64_t look_ns; /* since when; of LOOK_NONE: since when it exists */
};

/* Before the change: g->look since g->look_ns is over, and `to` begins. False ends the pass. */
typedef bool (*look_hook)(void *context, const struct looking *g, enum look to,
                          const trail_event *event);

/* looks_init, then give each batch and its events; owned by its consumer. Not thread-safe. */
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

/* False when memory is out, or the hook says so. */
bool looks_event(struct looks *looks, const trail_event *event);
void looks_free(struct looks *looks);

#endif
