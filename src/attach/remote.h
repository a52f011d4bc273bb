/*
 * Calls a function in a thread of another process that waits in a system call, and lets the wait
 * continue as if nothing had happened (ptrace(2)).
 *
 * The call looks to the thread like a signal handler: the kernel's frame for one (rt_sigframe) with
 * all of the thread's registers is on its stack, and the function returns to the C library's code
 * that makes the kernel restore them (sigreturn(2)). So the thread continues correctly whenever
 * this process ends: the kernel releases it, the function runs to its end, and at worst the system
 * call fails with EINTR. If this process is still alive, it restores the registers when the
 * function returns, and the kernel restarts the call with the rest of its time limit.
 *
 * Only on x86-64. All functions must be called by one thread of this process.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <trail/error.h>

#include "attach/image.h"

/* Code in the process's C library. */
struct remote_code {
    struct image_code sigreturn; /* ends a signal handler */
    struct image_code store;     /* stores rax where rbx points to, pops rbx, returns; 0: none */
};

struct remote_call {
    struct image_code function;
    /* Copied onto the thread's stack, and back when the function has returned. */
    void *data;
    size_t size;
    /* At most three. `is_offset`: an offset into the data, to whose address it is added. */
    uint64_t arguments[3];
    bool is_offset[3];
    uint64_t result; /* 0 if remote_code.store is 0 */
};

/* The system call in which the thread was found, and must still be. */
struct remote_place {
    long call;
    uint64_t sp;
};

enum remote_outcome {
    REMOTE_DONE,
    REMOTE_ELSEWHERE, /* the thread has left the system call: nothing was done */
    REMOTE_FAILED,    /* with *err: nothing was done, or the function did not return in time */
};

/* Stops the thread, calls the function and resumes the thread, within REMOTE_LIMIT_NS. */
#define REMOTE_LIMIT_NS INT64_C(10000000000)
enum remote_outcome remote_do(pid_t pid, pid_t tid, const struct remote_place *place,
                              const struct remote_code *code, struct remote_call *call,
                              trail_error *err);
