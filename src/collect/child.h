/*
 * The program that `trail record` runs, with the preloaded library in it. It is in the recorder's
 * process group, so that both use the same terminal; signals for the program are passed on to it.
 */
#ifndef TRAIL_COLLECT_CHILD_H
#define TRAIL_COLLECT_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct child {
    pid_t pid;
    bool ended;
    bool given_up; /* `ended` as the user wants that; the program goes on */
    int status;    /* of waitpid, when it has ended */
    /* Signals to the recorder that are passed on: not from the terminal, and with a default action
     * that ends a process. */
    unsigned asked;
    int64_t asked_ns; /* when the last signal came that ends programs; CLOCK_MONOTONIC; 0: none */
    sigset_t waited, old;
};

struct child_variable {
    const char *name, *value;
};

/*
 * Starts argv[0] with these variables (ended by a NULL name) in its environment. `before`, if not
 * NULL, is called in the new process before exec. Signals are blocked from here on. False with
 * errno: it could not be executed.
 */
bool child_start(struct child *child, char *const *argv, const struct child_variable *variables,
                 void (*before)(void *context), void *context);

/* Prepares for no program: SIGINT, SIGTERM and SIGHUP set `ended`. */
void child_none(struct child *child);

/* The program has ended, but processes that it started go on: from now on as without a program. */
void child_let_go(struct child *child);

/*
 * Waits for a signal, at most `ns`, and passes it on; `ours` (0: none) is not passed on but
 * returned. Sets child->ended when the program has ended, or when a second SIGTERM, SIGINT or
 * SIGHUP is sent to the recorder while it has not: then the program goes on without the recorder
 * (given_up).
 */
int child_wait(struct child *child, int64_t ns, int ours);

/* Whether the user has asked for the end recently, or a signal that does is pending. */
bool child_is_hurried(void *child);

/* Returns the exit status as a shell has it: 128 + n for signal n; 0 for a program that goes on. */
int child_exit_code(const struct child *child);

#endif
