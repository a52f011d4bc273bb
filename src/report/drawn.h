/*
 * Drawn states: the state of each goroutine as drawn, with a hook for each change. Follows
 * goroutines with analyze/follow.h.
 */
#pragma once

#include "analyze/follow.h"
#include "words/wait_classes.h"

/* In stacking order. */
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

/* The class of a wait in the style sheet: of its edge or line, "waiting e-lock"; of the area behind
 * it. */
const char *drawn_wait_class(enum wait_class class);
const char *drawn_wash_class(enum wait_class class);

/* A live goroutine. */
struct drawn {
    union {
        struct followed followed;
        struct {
            FOLLOWED_MEMBERS;
        };
    };
    enum drawn_state drawn;
    int64_t drawn_ns; /* start of the drawn state; DRAWN_NONE: of the goroutine */
    trail_name wait;  /* in drawn_states.names: what it waits for; 0: nothing */
};

/* Called before a change: g->drawn, since g->drawn_ns, ends and `to` begins. Returns false to end
 * the pass. */
typedef bool (*drawn_hook)(void *context, const struct drawn *g, enum drawn_state to,
                           const trail_event *event);

/* Call drawn_init, then pass each batch and its events. Owned by its consumer. Not thread-safe. */
struct drawn_states {
    drawn_hook hook;
    void *context;
    struct names names;
    struct follow follow;
    struct slab slab;
    struct idmap classes; /* wait -> its class + 1, as a pointer */
    trail_name last_wait; /* the last wait looked up, and its class */
    enum wait_class last_class;
    bool begun;
};

void drawn_init(struct drawn_states *all, const trail_reader *reader, drawn_hook hook,
                void *context);
void drawn_batch(struct drawn_states *all);

/* The slow path of drawn_class_of. */
enum wait_class drawn_find_class(struct drawn_states *all, trail_name wait);

/* Returns the class of a wait. */
static inline enum wait_class drawn_class_of(struct drawn_states *all, trail_name wait)
{
    return wait == all->last_wait ? all->last_class : drawn_find_class(all, wait);
}

/* Returns false if out of memory, or if the hook does. */
bool drawn_event(struct drawn_states *all, const trail_event *event);
void drawn_free(struct drawn_states *all);
