/*
 * Which thread waits for which in processes that run: stacks with names, what each waits for, which
 * thread has that, and cycles of such waits. held.h copies what is needed while the threads are stopped;
 * everything else happens after they go on.
 */
#ifndef TRAIL_STUCK_STUCK_H
#define TRAIL_STUCK_STUCK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <trail/error.h>

#include "stuck/held.h"
#include "wire/waits.h"

/* A frame; inlined calls have frames of their own. Texts are "" if not known. */
struct stuck_frame {
    char *function, *file;
    unsigned long line;
    char *module;         /* file name of the program or library; "": not known code */
    uint64_t pc, address; /* as in the process, and as in the module's file */
};

enum stuck_state {
    STUCK_WAITS,   /* for what `kind` says */
    STUCK_RUNS,    /* or is ready to run */
    STUCK_STOPPED, /* by a signal or a debugger */
    STUCK_ENDED,   /* or ends */
    STUCK_UNKNOWN,
};

/* A thread that another one waits for. */
struct stuck_holder {
    pid_t tid;                   /* 0: none, or not known */
    struct stuck_thread *thread; /* NULL: not of the processes that are looked at */
    bool is_guess; /* a word that looks like one: true only if there is such a thread */
};

struct stuck_thread {
    const struct held_thread *held;
    const struct stuck_process *process;
    enum stuck_state state;
    enum wire_wait kind;
    char object[192]; /* its name; "": not known */
    char note[128];   /* more about it: "for 3 readers"; "": nothing */
    struct stuck_holder holder;
    struct stuck_frame *frames; /* innermost first */
    size_t frame_count, frame_capacity;
    bool is_cut;      /* the stack goes on, but is not known further */
    unsigned cycle;   /* number of the cycle that it is part of, from 1; 0: none */
    unsigned waiters; /* threads that wait for this one */
};

struct stuck_process {
    struct held held;
    struct stuck_thread *threads; /* as in held */
};

struct stuck {
    struct stuck_process *processes;
    size_t count, capacity;
    unsigned cycles;
    int64_t limit_ns; /* for the threads of a process to stop: HELD_LIMIT_NS, say */
};

/* Adds a process as it is now. False with *err set. stuck_free releases all. */
bool stuck_add(struct stuck *stuck, pid_t pid, trail_error *err);

/* Finds holders among all threads, and cycles. Called once, after all processes were added. */
void stuck_connect(struct stuck *stuck);

void stuck_free(struct stuck *stuck);

#endif
