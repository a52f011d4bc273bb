/*
 * The program that `trail record` runs, with the preloaded library in it. It is in the recorder's
 * process group, so that both use the same terminal; signals for the program are passed on to it.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct child {
    pid_t pid;
    bool ended;
    bool given_up; /* `ended` because the user asked for it; the program keeps running */
    int status;    /* from waitpid, once the program has ended */
    /* Signals to the recorder that are passed on: not from the terminal, and with a default action
     * that ends a process. */
    unsigned asked;
    int64_t asked_ns; /* time of the last signal that ends programs; CLOCK_MONOTONIC; 0: none */
    sigset_t waited, old;
};

struct child_variable {
    const char *name, *value;
};

/*
 * Starts argv[0] with these variables (ended by a NULL name) in its environment. `before`, if not
 * NULL, is called in the new process before exec. Blocks signals from here on. False with errno if
 * the program cannot be executed.
 */
bool child_start(struct child *child, char *const *argv, const struct child_variable *variables,
                 void (*before)(void *context), void *context);

/* Sets up signals when there is no program: SIGINT, SIGTERM and SIGHUP set `ended`. */
void child_none(struct child *child);

/* The program has ended, but processes that it started keep running: continues as if there were no
 * program. */
void child_let_go(struct child *child);

/*
 * Waits for a signal, at most `ns`, and passes it on; `ours` (0: none) is returned instead. Sets
 * child->ended when the program has ended, or when the recorder gets a second SIGTERM, SIGINT or
 * SIGHUP before that, which does not end it: the program then continues without the recorder
 * (given_up).
 */
int child_wait(struct child *child, int64_t ns, int ours);

/* Whether the user has asked for the end recently, or a signal asking for it is pending. */
bool child_is_hurried(void *child);

/* Returns the exit status as a shell reports it: 128 + n for signal n; 0 for a program that is
 * still running. */
int child_exit_code(const struct child *child);
