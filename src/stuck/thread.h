/* An examined thread: what it waits for, and which thread has that. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <trail/read.h>

#include "collect/ends.h"
#include "stuck/held.h"
#include "wire/waits.h"

struct stuck_process;

/* A frame; inlined calls have frames of their own. Texts are "" if not known. */
struct stuck_frame {
    char *function, *file;
    unsigned long line;
    char *module;         /* file name of the program or library; "": code is not known */
    uint64_t pc, address; /* as in the process, and as in the module's file */
};

enum stuck_state {
    STUCK_WAITS,   /* for what `kind` shows */
    STUCK_RUNS,    /* runs, or is ready to run */
    STUCK_STOPPED, /* by a signal or a debugger */
    STUCK_ENDED,   /* is ending */
    STUCK_UNKNOWN,
};

/* A thread that another one waits for. */
struct stuck_holder {
    pid_t tid;                   /* 0: none, or not known */
    pid_t own;                   /* the same in the waiting process's PID namespace */
    struct stuck_thread *thread; /* NULL: not in an examined process */
    bool is_inferred;            /* from the variables in its stack */
    bool is_guess; /* from a word that looks like a TID: valid only if there is such a thread */
};

struct stuck_thread {
    const struct held_thread *held;
    const struct stuck_process *process;
    enum stuck_state state;
    enum wire_wait kind;
    char object[192]; /* its name; "": not known */
    char note[192];   /* more about it: "for 3 readers"; "": nothing */
    uint64_t lock;    /* a lock that does not record its holder; 0: none */
    struct stuck_holder holder;
    uint64_t guards_end;        /* end of the part of its stack that shows which locks it has */
    struct peers peers;         /* processes that it waits for, if not for a thread */
    struct stuck_frame *frames; /* innermost first */
    size_t frame_count, frame_capacity;
    bool is_cut;    /* the stack continues, but is not known further */
    unsigned cycle; /* number of the cycle that it is part of, from 1; 0: none */
    /* For the search for cycles. */
    struct stuck_thread *next;      /* one that it waits for; NULL: none, or that one can
                                     * continue */
    struct stuck_thread *waiter;    /* the first that waits for this one; others follow it */
    struct stuck_thread *co_waiter; /* the next that waits for the same thread */
    struct stuck_thread *to_do;     /* the next in a list */
    bool can_go;                    /* without any other thread of a cycle */
    size_t walk, checked;           /* the walks that have reached it, from 1 */
    unsigned waiters;               /* threads that wait for this one */
};

/* A runtime_frame_fn (words/runtimes.h) of a stuck_thread. */
trail_string stuck_frame_of(const void *thread, size_t frame, trail_string *file);
