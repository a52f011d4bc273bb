/*
 * Calls a function in a thread of another process, in the middle of a system call in which the thread waits, and has it
 * wait on as if nothing had happened (ptrace(2)).
 *
 * The call looks to the thread like a signal handler: the kernel's frame for one (rt_sigframe) with all of the thread's
 * registers is on its stack, and the function returns to the C library's code that has the kernel restore them
 * (sigreturn(2)). So the thread goes on rightly whenever this process ends: the kernel lets it go, the function runs to
 * its end, and only the system call may then fail with EINTR. If this process is still there, it restores the registers
 * itself when the function returns, and the kernel restarts the call, with what is left of its time limit.
 *
 * Only on x86-64. All functions are called by one thread of this process.
 */
#ifndef TRAIL_ATTACH_REMOTE_H
#define TRAIL_ATTACH_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <trail/error.h>

#include "attach/image.h"

/* In the process's C library. */
struct remote_code {
    struct image_code sigreturn; /* ends a signal handler */
    struct image_code
        store; /* stores rax where rbx points to, pops rbx, returns; 0: there is none */
};

struct remote_call {
    struct image_code function;
    /* Copied onto the thread's stack, and back when the function has returned. */
    void *data;
    size_t size;
    /* Up to three; `is_offset`: of the data, whose address there is added. */
    uint64_t arguments[3];
    bool is_offset[3];
    uint64_t result; /* 0 if there is no remote_code.store */
};

/* What the thread must still be doing: it is in the call that it was in when it was looked at. */
struct remote_place {
    long call;
    uint64_t sp;
};

enum remote_outcome {
    REMOTE_DONE,
    REMOTE_ELSEWHERE, /* the thread is no longer there: nothing was done */
    REMOTE_FAILED,    /* *err says why: nothing was done, or the call has not come back in time */
};

/* Stops the thread, calls the function, and lets the thread go on, within REMOTE_LIMIT_NS. */
#define REMOTE_LIMIT_NS INT64_C(10000000000)
enum remote_outcome remote_do(pid_t pid, pid_t tid, const struct remote_place *place,
                              const struct remote_code *code, struct remote_call *call,
                              trail_error *err);

#endif
