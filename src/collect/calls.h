/* System calls: what a thread waits for in each, and what its first argument means (calls.def). */
#pragma once

#include <stdint.h>

/* The meaning of the first argument. From FD on it is a descriptor that the thread waits for. */
enum call_argument {
    ARGUMENT_NONE,
    ARGUMENT_LOCKED,
    ARGUMENT_CHILD,
    ARGUMENT_POLLED,
    ARGUMENT_SELECTED,
    ARGUMENT_ID,
    ARGUMENT_FUTEX,
    ARGUMENT_FD,
    ARGUMENT_EPOLL,
    ARGUMENT_URING
};

struct call {
    long number;
    uint8_t wait; /* enum shm_wait */
    enum call_argument argument;
};

/* Returns the row of a system call; NULL: none, it waits for nothing that is known. */
const struct call *calls_find(long number);
