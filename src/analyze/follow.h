/*
 * Follow: tracks the state of each goroutine alive and since when it lasts, when goroutines begin
 * and end, and which of them lost their P in a system call (§9.1). Consumers register functions
 * (struct follow_ops) and keep their own data of a goroutine in an object whose first members are
 * those of struct followed.
 *
 * A goroutine ends when it no longer exists, and when it blocks forever, as in Go's summary:
 * nothing after that counts as waiting. A transition to the current state is ignored, except the
 * first one of a goroutine: a state that is found has lasted since the last Sync.
 *
 * The inline half is the hot path. With ops that are a static const in the consumer's file, the
 * compiler calls its functions directly.
 */
#pragma once

#include "analyze/wait_names.h"
#include "base/objects.h"

/*
 * The first members of a consumer's object of a goroutine, and all members of struct followed.
 * `own` is bytes for the consumer, placed where alignment leaves room.
 */
#define FOLLOWED_MEMBERS                                                                           \
    int64_t since_ns;             /* when it entered `state`; the consumer may change it */        \
    struct followed **in_syscall; /* the slot that points here while in a system call */           \
    int64_t id;                                                                                    \
    trail_name name; /* names_goroutine; 0: not known yet */                                       \
    uint8_t state;   /* trail_go_state; TRAIL_GO_UNDETERMINED before the first */                  \
    bool p_released  /* in a system call, P released */

struct followed {
    FOLLOWED_MEMBERS;
    uint8_t own[2];
};

/*
 * Functions of a consumer. `context` is the consumer's. All return false if out of memory, or for
 * another reason to stop; the caller passes that on.
 */
struct follow_ops {
    /* Returns a zeroed object for a goroutine, or NULL if out of memory. */
    struct followed *(*make)(void *context);
    /*
     * Called when g->name is found or has changed. `start` is the outermost frame of its first
     * stack, NULL if it has none yet or had one before. May be NULL.
     */
    bool (*named)(void *context, struct followed *g, const trail_frame *start);
    /* Called at the goroutine's first event; it exists since `since_ns`, and has no state yet. */
    bool (*begins)(void *context, struct followed *g, const trail_event *event, int64_t since_ns);
    /* Called before it leaves g->state, in which it was since g->since_ns. May be NULL. */
    bool (*leaves)(void *context, struct followed *g, const trail_event *event);
    /*
     * Called when it has entered g->state. `reason` is the name of a wait (wait_names.h), also of a
     * system call that a log announced as one; else 0.
     */
    bool (*enters)(void *context, struct followed *g, const trail_event *event, trail_name reason);
    /* As `enters`, for the first state of a goroutine that was found in it: it lasts since
     * `since_ns`, perhaps with its P released. */
    bool (*found)(void *context, struct followed *g, const trail_event *event, trail_name reason,
                  int64_t since_ns);
    /* Called before it loses its P in a system call. May be NULL. */
    bool (*loses_proc)(void *context, struct followed *g, const trail_event *event);
    /*
     * Called when its state becomes unknown, at damage: it keeps its object, with the state
     * TRAIL_GO_UNDETERMINED, until an event shows it again. NULL: it ends there.
     */
    bool (*lost)(void *context, struct followed *g, const trail_event *event);
    /*
     * Called when it has ended; the object belongs to the consumer again. g->state is
     * TRAIL_GO_NOT_EXIST if it has left its last state, TRAIL_GO_UNDETERMINED if it never had one,
     * and its current state if another goroutine begins with its ID.
     */
    bool (*ends)(void *context, struct followed *g, const trail_event *event);
};

/* Ps with smaller IDs are looked up in an array. */
enum { FOLLOW_NEAR = 64 };

/* Initialised by follow_init. Not thread-safe. */
struct follow {
    const trail_reader *reader;
    struct names *names;     /* owned by the consumer */
    trail_name forever;      /* the reason of a wait that ends the goroutine */
    int64_t sync_ns;         /* time of the last Sync, or of the first event */
    struct idmap alive;      /* goroutine -> struct followed */
    struct followed *nobody; /* target of `in_syscall` of goroutines that are in no system call */
    struct followed *near[FOLLOW_NEAR]; /* by P: the goroutine in a system call on it */
    struct objects procs;               /* the same for other Ps: struct followed * */
    struct announced announced;         /* waits that logs have announced */
};

/* `names` must outlive it. Call follow_sync with the time of the first event before the first
 * event. */
void follow_init(struct follow *follow, const trail_reader *reader, struct names *names);

/* Frees all but the objects of goroutines, which belong to the consumer. */
void follow_free(struct follow *follow);

/* Called at the first event, and at each Sync. */
static inline void follow_sync(struct follow *follow, int64_t now)
{
    follow->sync_ns = now;
}

/* Takes a log. Returns false if out of memory. */
static inline bool follow_log(struct follow *follow, const trail_event *event)
{
    return announced_log(&follow->announced, follow->names, event);
}

/* Returns the name of the wait that the current transition begins. */
static inline trail_name follow_wait(const struct follow *follow, const trail_event *event)
{
    return announced_name(&follow->announced, follow->names,
                          names_of(follow->names, event->transition.reason));
}

static inline struct followed *follow_find(const struct follow *follow, int64_t id)
{
    return idmap_find(&follow->alive, (uint64_t)id);
}

/* MARK: Out of line */

/* Takes the first transition of a goroutine. */
bool follow_first(struct follow *follow, const struct follow_ops *ops, void *context,
                  const trail_event *event);

/* Ends a goroutine that has left its state, if it had one. */
bool follow_over(struct follow *follow, const struct follow_ops *ops, void *context,
                 struct followed *g, const trail_event *event);

/*
 * Takes a status that repeats the present state, as each generation does: the goroutine may have
 * another name now.
 */
bool follow_again(struct follow *follow, const struct follow_ops *ops, void *context,
                  const trail_event *event);

/* Sets the goroutine's name, if the transition has a stack. */
bool follow_name(struct follow *follow, const struct follow_ops *ops, void *context,
                 struct followed *g, const trail_event *event);

/* MARK: Transitions */

#define FOLLOW_INLINE static inline __attribute__((always_inline))

/* Records that the goroutine is in a system call on the P, if it has one. Returns false on out of
 * memory. */
FOLLOW_INLINE bool follow_note(struct follow *follow, struct followed *g, int64_t proc)
{
    if (__builtin_expect(proc < 0, 0))
        return true;
    bool is_near = proc < FOLLOW_NEAR;
    struct followed **place =
        is_near ? &follow->near[proc] : objects_get(&follow->procs, (uint64_t)proc);
    if (__builtin_expect(!place, 0))
        return false;
    g->in_syscall = place;
    *place = g;
    return true;
}

FOLLOW_INLINE bool follow_tell(const struct follow_ops *ops, void *context, struct followed *g,
                               const trail_event *event, trail_name reason, const int64_t *found_ns)
{
    return found_ns ? ops->found(context, g, event, reason, *found_ns)
                    : ops->enters(context, g, event, reason);
}

/*
 * Enters its new state, in which it was found since *found_ns unless that is NULL. Each state has a
 * path of its own, so that inlining leaves only the part of the consumer's function that matters
 * there.
 */
FOLLOW_INLINE bool follow_enter(struct follow *follow, const struct follow_ops *ops, void *context,
                                struct followed *g, const trail_event *event,
                                const int64_t *found_ns, bool heard)
{
    unsigned to = event->transition.to;
    if (to == TRAIL_GO_RUNNABLE || to == TRAIL_GO_RUNNING) {
        g->since_ns = event->time_ns;
        g->state = (uint8_t)to;
        return follow_tell(ops, context, g, event, 0, found_ns);
    }
    if (to == TRAIL_GO_WAITING) {
        trail_name reason = names_of(follow->names, event->transition.reason);
        if (__builtin_expect(reason == follow->forever, 0))
            return follow_over(follow, ops, context, g, event);
        g->since_ns = event->time_ns;
        g->state = TRAIL_GO_WAITING;
        if (heard)
            reason = announced_name(&follow->announced, follow->names, reason);
        return follow_tell(ops, context, g, event, reason, found_ns);
    }
    if (to == TRAIL_GO_SYSCALL) {
        g->since_ns = event->time_ns;
        g->state = TRAIL_GO_SYSCALL;
        return follow_note(follow, g, event->proc) &&
               follow_tell(ops, context, g, event,
                           heard ? announced_name(&follow->announced, follow->names, 0) : 0,
                           found_ns);
    }
    if (to == TRAIL_GO_UNDETERMINED && ops->lost) {
        g->since_ns = event->time_ns;
        g->state = TRAIL_GO_UNDETERMINED;
        return ops->lost(context, g, event);
    }
    return follow_over(follow, ops, context, g, event);
}

/*
 * Takes a transition of a goroutine. `heard` is follow->announced.heard, which only logs change:
 * tested once for many transitions, it costs nothing in traces without logs.
 */
FOLLOW_INLINE bool follow_goroutine_heard(struct follow *follow, const struct follow_ops *ops,
                                          void *context, const trail_event *event, bool heard)
{
    unsigned from = event->transition.from;
    if (from == event->transition.to)
        return follow_again(follow, ops, context, event);
    if (heard)
        announced_transition(&follow->announced, event->transition.id);
    if (__builtin_expect(from <= TRAIL_GO_NOT_EXIST, 0))
        return follow_first(follow, ops, context, event);
    struct followed *g = follow_find(follow, event->transition.id);
    if (__builtin_expect(!g, 0))
        return true; /* has already ended */
    if (__builtin_expect(g->name == 0 && event->transition.stack != 0, 0) &&
        !follow_name(follow, ops, context, g, event))
        return false;
    if (ops->leaves && !ops->leaves(context, g, event))
        return false;
    *g->in_syscall = NULL; /* even if another goroutine is in the slot by now, as in Go's summary */
    g->in_syscall = &follow->nobody;
    g->p_released = false;
    return follow_enter(follow, ops, context, g, event, NULL, heard);
}

FOLLOW_INLINE bool follow_goroutine(struct follow *follow, const struct follow_ops *ops,
                                    void *context, const trail_event *event)
{
    return follow_goroutine_heard(follow, ops, context, event, follow->announced.heard);
}

/* Takes a transition of a P: when it becomes idle, the goroutine in a system call on it continues
 * without it. */
FOLLOW_INLINE bool follow_proc(struct follow *follow, const struct follow_ops *ops, void *context,
                               const trail_event *event)
{
    uint64_t id = (uint64_t)event->transition.id;
    if (event->transition.from == event->transition.to || event->transition.to != TRAIL_PROC_IDLE)
        return true;
    bool is_near = id < FOLLOW_NEAR;
    struct followed **place = is_near ? &follow->near[id] : objects_find(&follow->procs, id);
    struct followed *g = place ? *place : NULL;
    if (!g)
        return true;
    *place = NULL;
    bool good = !ops->loses_proc || ops->loses_proc(context, g, event);
    g->p_released = true;
    return good;
}

/* Takes a transition of a goroutine, a P, or anything else. */
FOLLOW_INLINE bool follow_transition(struct follow *follow, const struct follow_ops *ops,
                                     void *context, const trail_event *event)
{
    if (__builtin_expect(event->transition.resource == TRAIL_RESOURCE_GOROUTINE, 1))
        return follow_goroutine(follow, ops, context, event);
    if (event->transition.resource != TRAIL_RESOURCE_PROC)
        return true;
    return follow_proc(follow, ops, context, event);
}
