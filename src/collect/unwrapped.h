/*
 * Waits outside of wrapped calls: locks within the C library and the loader, system calls that a
 * program makes itself, page faults. The kernel's context switches show how long they last. If a
 * thread sleeps in one for a while, the kernel also shows its system call and stack pointer
 * (/proc/PID/task/TID/syscall, proc(5)), and the stack can be copied and walked as for open calls
 * (open_stacks.h). Of a futex the address is known, and if the word is that of a lock of the C
 * library, its owner.
 *
 * The frame pointer is not known: a stack ends at the first function that needs it.
 *
 * A wrapped call that reads or writes a stream may wait for the stream's lock instead.
 */
#ifndef TRAIL_COLLECT_UNWRAPPED_H
#define TRAIL_COLLECT_UNWRAPPED_H

#include <stdint.h>

struct area_open;
struct collect;
struct op;
struct thread;

/* What is known about a thread's last such wait. */
struct unwrapped {
    int64_t off_ns; /* by the kernel's record; 0: there was none */
    uint64_t stack; /* of the area; 0: not known */
    uint8_t wait;   /* SHM_KERNEL: for no futex */
    uint64_t object;
    const char *name; /* see struct op */
    uint64_t owner;   /* the serial of the thread that has the object; 0: not known */
};

/* Called in each step, after the kernel's records have been read: looks at the threads that sleep. */
void unwrapped_step(struct collect *c);

/* Adds what is known to the op of a wait that began with the kernel's record of `off_ns`. */
void unwrapped_describe(const struct thread *thread, int64_t off_ns, struct op *op);

/* Called for each open call in each step: looks whether it waits for a lock of the C library. */
void unwrapped_look_within(struct collect *c, struct thread *thread, const struct area_open *open);

/* Makes the op of a call that began at `time` a wait for the lock that was found. */
void unwrapped_replace(const struct thread *thread, uint64_t time, struct op *op);

/* Returns the wait in which the thread still is, within the open call or in none (NULL); NULL: none is known. */
const struct unwrapped *unwrapped_now(const struct thread *thread, const struct area_open *open);

#endif
