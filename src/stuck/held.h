/*
 * Examines a running process: stops its threads for a moment, copies their registers, stacks, and
 * what they wait for, and lets them continue (ptrace(2), process_vm_readv(2)). Nothing is written
 * into the process.
 *
 * Of many threads, HELD_GROUP at a time are stopped, so that none stands still for as long as it
 * takes to examine all of them. What was seen of threads in different groups need not have been
 * true at one instant: held_sleeps and held_sleeps_on confirm it, without a stop.
 *
 * The threads of a group have limit_ns to stop; for one that has not by then, because it got no
 * processor, what the kernel reports without a stop is used. The same goes for threads in an
 * uninterruptible sleep, and in system calls that a stop would end with EINTR (signal(7)): these
 * are not stopped at all. If this process ends in between, the kernel lets the threads continue.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <trail/error.h>

#include "shm/mapping.h"

#define HELD_LIMIT_NS   INT64_C(40000000)   /* the default */
#define HELD_STACK_SIZE ((size_t)256 << 10) /* the limit of a stack's copy */
#define HELD_AROUND     64                  /* bytes on both sides of an address */
#define HELD_GROUP      64                  /* maximum number of threads stopped together */

/* Kernel-internal error numbers in the registers of a system call that is to be restarted. */
#define ERESTARTSYS           512
#define ERESTARTNOINTR        513
#define ERESTARTNOHAND        514
#define ERESTART_RESTARTBLOCK 516

/* A copy of a part of the process's memory. */
struct held_memory {
    uint64_t at;
    size_t size; /* 0: it could not be read */
    uint8_t bytes[2 * HELD_AROUND];
};

struct held_thread {
    pid_t tid;        /* in our PID namespace */
    char name[64];    /* empty: the thread has ended */
    char state;       /* of proc(5): R, S, D, T, Z, ... */
    bool is_filtered; /* a filter may not allow restart_syscall(2) */
    bool is_copied;   /* whether pc, sp and the stack are known */
    size_t group; /* from 1: threads of one group were seen at one instant; 0: not stopped, or its
                     * registers do not show whether it still waited */
    bool in_call;
    long call; /* its number and arguments, if in_call */
    uint64_t arguments[6];
    uint64_t pc, sp, fp; /* fp is 0 for a thread that was not stopped */
    uint8_t *stack;      /* from sp on */
    size_t stack_size;
    struct held_memory object; /* around the argument that is the object's address */
};

struct held {
    pid_t pid;
    char name[64];
    bool is_nested; /* its PID namespace is below ours */
    bool has_alarm; /* it has a handler of SIGALRM, which may end any wait */
    struct held_thread *threads;
    size_t count, capacity;
    struct mapping *mappings; /* with copies of their paths */
    size_t mapping_count, mapping_capacity;
    int64_t limit_ns;   /* for the threads of a group to stop */
    int64_t stopped_ns; /* the longest time from a group's first stop to its last release */
    size_t groups;      /* 1: all threads were seen at one instant */
    size_t unstopped;   /* threads that did not stop in time */
};

/*
 * Fills in *held, which must be freed by held_free even on errors. False with *err set: there is no
 * such process, or it may not be examined; the message names the setting.
 */
bool held_take(struct held *held, pid_t pid, int64_t limit_ns, trail_error *err);

/*
 * A thread that sleeps in a call. The kernel counts how often a thread goes to sleep: if all
 * threads of a list are found asleep, and then once more with the same counts, all of them were
 * asleep at the same time in between.
 */
struct held_sleep {
    pid_t pid;
    const struct held_thread *thread; /* as it was seen before */
    long count;
};

/*
 * Waits until the thread sleeps, at most until `deadline`: a stop makes it run for a moment.
 * Returns whether it is in the same call with the same arguments and stack pointer as before.
 */
bool held_sleeps(struct held_sleep *sleep, int64_t deadline);

/* Returns how long threads have to fall asleep again; none of them is stopped during this time. */
static inline int64_t held_sleep_limit(int64_t limit_ns)
{
    return limit_ns > INT64_C(1000000000) ? limit_ns : INT64_C(1000000000);
}

/* Whether the thread still sleeps, and has not run since held_sleeps. */
bool held_sleeps_on(const struct held_sleep *sleep);

/* Copies the current memory around the object of the thread's call. */
void held_object_now(pid_t pid, const struct held_thread *thread, struct held_memory *object);

/* Whether the stack still equals its copy, from its pointer to `end`. */
bool held_has_same_stack(pid_t pid, const struct held_thread *thread, uint64_t end);

/*
 * Examines one thread again. False: its stack could not be copied. now->group is 0 if it was not
 * stopped. The caller frees now->stack.
 */
bool held_take_again(const struct held *held, const struct held_thread *before,
                     struct held_thread *now);

/*
 * Whether a seccomp filter applies to the thread: it may end the process for a system call that the
 * program does not make itself.
 */
bool held_is_filtered(pid_t tid);

/*
 * Whether a stop makes the thread's system call fail with EINTR, although no signal is delivered
 * (signal(7)), end with only a part transferred, or continue by a system call that a filter may not
 * allow (restart_syscall(2)).
 */
bool held_is_ended_by_stop(pid_t pid, const struct held_thread *thread);

/*
 * Whether a stopped thread's call, which is about to return `result`, was ended by the stop and can
 * be made anew: by the result ERESTARTNOHAND, unless a signal is delivered.
 */
bool held_was_ended_by_stop(const struct held_thread *thread, long call, int64_t result);

/* Sets *err to why the process may not be examined, after EPERM. Returns false. */
bool held_refuse(pid_t pid, trail_error *err);

void held_free(struct held *held);

/* Copies `size` bytes of a copied part of the memory; false: they were not read. */
bool held_copy(const struct held_memory *memory, uint64_t at, void *to, size_t size);

/* Whether a file is musl, which is a C library and its loader in one; on some systems its name is a
 * link to that of the loader, on others the reverse. */
bool held_is_musl(const char *path);

/* Returns the mapping that an address lies in; NULL: none. */
const struct mapping *held_mapping_of(const struct held *held, uint64_t address);
