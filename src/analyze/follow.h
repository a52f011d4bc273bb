/*
 * Follow: the one place that knows which state each goroutine alive is in and since when, when one
 * begins and ends, and which lost its P in a system call (§9.1). What is made of that is up to the
 * consumers: each hands in its functions (struct follow_ops), and keeps what it wants of a goroutine in
 * an object of its own, whose first members are those of struct followed.
 *
 * A goroutine ends when it no longer exists, and when it blocks for ever, as in Go's summary: nothing
 * after that counts as waiting. A transition to the state that the goroutine is in is none, but for the first: what
 * is found in a state that was not known has been in it since the last Sync.
 *
 * The inline half is the hot path. With ops that are a static const in the consumer's file the compiler
 * calls its functions directly.
 */
#ifndef TRAIL_ANALYZE_FOLLOW_H
#define TRAIL_ANALYZE_FOLLOW_H

#include "analyze/wait_names.h"
#include "base/idmap.h"
#include "base/slab.h"

/*
 * The first members of an object of a goroutine, of struct followed itself as well. `own` are bytes of the
 * consumer's, where alignment leaves room for them.
 */
#define FOLLOWED_MEMBERS                                                                           \
    int64_t since_ns;             /* when it came into `state`; the consumer may move it */        \
    struct followed **in_syscall; /* where it is noted as the one in a system call, if it is */    \
    int64_t id;                                                                                    \
    trail_name name; /* of its start function; 0: not known yet */                                 \
    uint8_t state;   /* trail_go_state; TRAIL_GO_UNDETERMINED until it is in the first */          \
    bool bare        /* in a system call, and its P was taken away */

struct followed {
    FOLLOWED_MEMBERS;
    uint8_t own[2];
};

/*
 * What a consumer does. `context` is what it passed. All return false when memory is out or it has
 * another reason to stop; that is handed on.
 */
struct follow_ops {
    /* A zeroed object for a goroutine; NULL when memory is out. */
    struct followed *(*make)(void *context);
    /* g->name has come to be known, from the outermost frame of its first stack. NULL: of no interest. */
    bool (*named)(void *context, struct followed *g, const trail_frame *start);
    /* It is seen first in this event, and exists since `since_ns`. It is in no state yet. */
    bool (*begins)(void *context, struct followed *g, const trail_event *event, int64_t since_ns);
    /* It is about to leave g->state, where it was since g->since_ns. NULL: of no interest. */
    bool (*leaves)(void *context, struct followed *g, const trail_event *event);
    /*
     * It is in g->state from now on; `reason` is the name of a wait (wait_names.h), also of a system call that
     * a log announced as one; 0 otherwise.
     */
    bool (*enters)(void *context, struct followed *g, const trail_event *event, trail_name reason);
    /* The same when it was found in its first state: it was in it since `since_ns`, perhaps without a P. */
    bool (*found)(void *context, struct followed *g, const trail_event *event, trail_name reason,
                  int64_t since_ns);
    /* It is in a system call, and about to lose its P. NULL: of no interest. */
    bool (*loses_proc)(void *context, struct followed *g, const trail_event *event);
    /*
     * It is over; the object is the consumer's again. g->state is TRAIL_GO_NOT_EXIST if it has left its
     * last state; TRAIL_GO_UNDETERMINED if it never was in one; and the one that it is in if
     * another goroutine begins with its number.
     */
    bool (*ends)(void *context, struct followed *g, const trail_event *event);
};

/* Ps with smaller numbers are looked up at once. */
enum { FOLLOW_NEAR = 64 };

/* Begun with follow_init. Not thread-safe. */
struct follow {
    const trail_reader *reader;
    struct names *names;                /* the consumer's */
    trail_name forever;                 /* the reason of a wait that is an end */
    int64_t sync_ns;                    /* of the last Sync, or of the first event */
    struct idmap alive;                 /* goroutine -> struct followed */
    struct followed *nobody;            /* where those that are in no system call are noted */
    struct followed *near[FOLLOW_NEAR]; /* by P: which goroutine is in a system call there */
    struct idmap procs;                 /* other Ps -> struct followed *, the same */
    struct slab proc_slab;
    struct announced announced; /* what is about to be waited for */
};

/* `names` outlive it. follow_sync with the time of the first event before that is handed in. */
void follow_init(struct follow *follow, const trail_reader *reader, struct names *names);

/* The objects of goroutines are the consumer's. */
void follow_free(struct follow *follow);

/* The first event, or a Sync. */
static inline void follow_sync(struct follow *follow, int64_t now)
{
    follow->sync_ns = now;
}

/* A log. False when memory is out. */
static inline bool follow_log(struct follow *follow, const trail_event *event)
{
    return announced_log(&follow->announced, follow->names, event);
}

/* The name of the wait that a transition into waiting begins, while it is handed in. */
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

/* The first transition of a goroutine. */
bool follow_first(struct follow *follow, const struct follow_ops *ops, void *context,
                  const trail_event *event);

/* It has left the state that it was in, if it was in one, and ends. */
bool follow_over(struct follow *follow, const struct follow_ops *ops, void *context,
                 struct followed *g, const trail_event *event);

/* Finds out its start function, if the stack of the transition tells. */
bool follow_name(struct follow *follow, const struct follow_ops *ops, void *context,
                 struct followed *g, const trail_event *event);

/* Where is noted which goroutine is in a system call on a P that is not near. NULL when memory is out. */
struct followed **follow_far(struct follow *follow, int64_t proc);

/* MARK: Transitions */

#define FOLLOW_INLINE static inline __attribute__((always_inline))

/* Notes that it is in a system call on the P, if it has one. False when memory is out. */
FOLLOW_INLINE bool follow_note(struct follow *follow, struct followed *g, int64_t proc)
{
    if (__builtin_expect(proc < 0, 0))
        return true;
    bool is_near = proc < FOLLOW_NEAR;
    struct followed **place = is_near ? &follow->near[proc] : follow_far(follow, proc);
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
 * It goes into its new state, in which it was found to be since *found_ns unless that is NULL. A path for
 * each, so that what a consumer does then is all that is left of its function there.
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
    return follow_over(follow, ops, context, g, event);
}

/*
 * A transition of a goroutine. `heard` is follow->announced.heard, which only logs change: where it is tested once for
 * many transitions, waits without logs cost nothing.
 */
FOLLOW_INLINE bool follow_goroutine_heard(struct follow *follow, const struct follow_ops *ops,
                                          void *context, const trail_event *event, bool heard)
{
    unsigned from = event->transition.from;
    if (from == event->transition.to)
        return true;
    if (heard)
        announced_transition(&follow->announced, event->transition.id);
    if (__builtin_expect(from <= TRAIL_GO_NOT_EXIST, 0))
        return follow_first(follow, ops, context, event);
    struct followed *g = follow_find(follow, event->transition.id);
    if (__builtin_expect(!g, 0))
        return true; /* is over already */
    if (__builtin_expect(g->name == 0 && event->transition.stack != 0, 0) &&
        !follow_name(follow, ops, context, g, event))
        return false;
    if (ops->leaves && !ops->leaves(context, g, event))
        return false;
    *g->in_syscall = NULL; /* though another may be noted there by now: so Go's summary has it */
    g->in_syscall = &follow->nobody;
    g->bare = false;
    return follow_enter(follow, ops, context, g, event, NULL, heard);
}

FOLLOW_INLINE bool follow_goroutine(struct follow *follow, const struct follow_ops *ops,
                                    void *context, const trail_event *event)
{
    return follow_goroutine_heard(follow, ops, context, event, follow->announced.heard);
}

/* A transition of a P: when it becomes idle, the goroutine in a system call there goes on without it. */
FOLLOW_INLINE bool follow_proc(struct follow *follow, const struct follow_ops *ops, void *context,
                               const trail_event *event)
{
    uint64_t id = (uint64_t)event->transition.id;
    if (event->transition.from == event->transition.to || event->transition.to != TRAIL_PROC_IDLE)
        return true;
    bool is_near = id < FOLLOW_NEAR;
    struct followed **place = is_near ? &follow->near[id] : idmap_find(&follow->procs, id);
    struct followed *g = place ? *place : NULL;
    if (!g)
        return true;
    *place = NULL;
    bool good = !ops->loses_proc || ops->loses_proc(context, g, event);
    g->bare = true;
    return good;
}

/* A transition of anything. */
FOLLOW_INLINE bool follow_transition(struct follow *follow, const struct follow_ops *ops,
                                     void *context, const trail_event *event)
{
    if (__builtin_expect(event->transition.resource == TRAIL_RESOURCE_GOROUTINE, 1))
        return follow_goroutine(follow, ops, context, event);
    if (event->transition.resource != TRAIL_RESOURCE_PROC)
        return true;
    return follow_proc(follow, ops, context, event);
}

#endif
