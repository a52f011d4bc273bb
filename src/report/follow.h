/*
 * Follow: what each goroutine is doing now, and since when, told at each change. Consumers of the
 * events of a reader that draw are hooked on here.
 */
#ifndef TRAIL_REPORT_FOLLOW_H
#define TRAIL_REPORT_FOLLOW_H

#include "analyze/names.h"
#include "base/idmap.h"
#include "base/slab.h"

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

struct followed {
    int64_t id, since_ns;
    enum look look;
    trail_name name; /* start function; 0: not known yet */
    struct followed *
        *in_syscall; /* where it is noted as the one in a system call; NULL: it is not */
};

struct follow;

/* Before the change: g->look since g->since_ns is over, and `to` begins. False ends the pass. */
typedef bool (*follow_hook)(void *context, const struct followed *g, enum look to,
                            const trail_event *event);

/* follow_init, then give each batch; owned by its consumer. Not thread-safe. */
struct follow {
    const trail_reader *reader;
    follow_hook hook;
    void *context;
    struct names names;
    struct idmap alive; /* -> struct followed */
    struct slab slab;
    struct idmap procs; /* P -> struct followed *, who is in a system call there */
    struct slab proc_slab;
    int64_t sync_ns; /* of the last Sync, or of the first event */
    bool begun;
};

void follow_init(struct follow *follow, const trail_reader *reader, follow_hook hook,
                 void *context);
void follow_batch(struct follow *follow);

/* False when memory is out, or the hook says so. */
bool follow_event(struct follow *follow, const trail_event *event);
void follow_free(struct follow *follow);

#endif
