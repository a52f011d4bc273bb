/*
 * Stacks of calls that have not returned. The program takes a stack before a call only where calls
 * nearly always block, or where the last one did; for others its slot has the frame that they were
 * made from. While the call lasts, that frame and all outer ones stay as they are: they can be
 * copied from outside and walked as samples are.
 *
 * The kernel lets a program's parent do that (process_vm_readv(2)), unless the program has other
 * credentials than the recorder, or a security module refuses; such a call has only its place.
 *
 * Waits outside of wrapped calls: locks within the C library and the loader, system calls that a
 * program makes itself, page faults. The kernel's context switches show how long they last. Of a
 * thread that sleeps in one, the kernel also shows the system call and the stack pointer
 * (/proc/PID/task/TID/syscall, proc(5)), so the stack can be copied and walked as for open calls.
 * The address of a futex is known, and its owner if it is a lock of the C library.
 *
 *     switched out                                     switched in
 *     |------------------ one wait ---------------------|
 *               | place, stack, place again |                        describes it
 *                                          | place, stack, place |   describes nothing
 *
 * A look describes the wait during which it began and ended, and no other: the next one may be in
 * another call. So a wait is described if it lasted until a look came. Looks are limited to a share
 * of a CPU.
 *
 * The frame pointer is not known: a stack ends at the first function that needs it.
 *
 * A wrapped call that reads or writes a stream may wait for the stream's lock instead.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct area_open;
struct collect;
struct op;
struct thread;

/* Owned by open_stacks.c. */
struct open_stacks {
    unsigned read;      /* stacks read in this step */
    bool guards_matter; /* a thread waits for a lock that does not record its holder */
    size_t next;        /* the thread to look at next, for threads_next */
    int64_t due_ns;     /* no look before this */
    int64_t before_ns;  /* looks before this were followed by a reading of the kernel's records */
    unsigned looks;     /* in the last step */
};

/*
 * Returns the number of an open call's stack; 0: none. A stack that the program has not taken is
 * read from outside once the call has lasted for a while; the number per step is limited.
 */
uint32_t open_stack(struct collect *c, struct thread *thread, const struct area_open *open);

/* Finds the locks that a thread holds from its stack, once per open call, if some thread waits for
 * a lock that does not record its holder. */
void open_guards(struct collect *c, struct thread *thread, const struct area_open *open);

/* Whether the call has lasted long enough to read its stack and object from outside. */
bool open_is_long(const struct collect *c, const struct area_open *open);

/* Copies memory of the thread's process. Returns the number of bytes; 0: none. */
size_t open_copy_memory(const struct collect *c, const struct thread *thread, uint64_t from,
                        void *to, size_t size);

/*
 * Copies memory of the program that does not change while the thread is in the call. Returns the
 * number of bytes; 0: none, or the call has returned in the meantime.
 */
size_t open_copy(struct collect *c, const struct thread *thread, const struct area_open *open,
                 uint64_t from, void *to, size_t size);

/* Called when a step begins. */
void open_stacks_step(struct collect *c);

/* MARK: Waits outside of wrapped calls */

/* What a look has shown. */
struct unwrapped {
    uint64_t stack;  /* of the area; 0: not known */
    uint8_t wait;    /* SHM_KERNEL: not known */
    uint32_t detail; /* this, the object and the name: see struct op */
    uint64_t object;
    const char *name;
    uint64_t owner; /* the serial of the thread that has the object; 0: not known */
};

struct glance {
    int64_t began_ns, ended_ns;
    struct unwrapped found;
};

/* A thread's last looks: enough for what the model has not written yet. */
#define GLANCES 32
struct glances {
    struct glance at[GLANCES];
    unsigned count; /* of all so far; the newest is at[(count - 1) % GLANCES] */
};

/*
 * Called in each step, after the kernel's records have been read: looks at the threads that sleep.
 */
void open_look_at_sleepers(struct collect *c);

/* Adds what is known to the op of a wait that began with the kernel's record of `off_ns`. */
void open_describe(const struct collect *c, const struct thread *thread, int64_t off_ns,
                   struct op *op);

/* Called for each open call in each step: looks whether it waits for a lock of the C library. */
void open_look_within(struct collect *c, struct thread *thread, const struct area_open *open);

/* Names the lock of a stream, by its descriptor. */
void open_name_stream(struct collect *c, uint64_t lock, uint32_t detail, uint32_t generation);

/* Makes the op of a call that began at `time` a wait for the lock that was found. */
void open_replace(const struct thread *thread, uint64_t time, struct op *op);

/* Returns the wait in which the thread still is, within the open call or in none (NULL); NULL: none
 * is known. */
const struct unwrapped *open_wait_now(const struct thread *thread, const struct area_open *open);
