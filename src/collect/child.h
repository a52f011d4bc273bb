/*
 * The program that `trail record` runs: started with the recorder in it, in our own process group, so that
 * the terminal is its as much as ours; signals that are meant for it are passed on.
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
    bool given_up; /* `ended` because the user wants that; the program goes on */
    int status;    /* as of waitpid, once it has ended */
    /* Signals that were sent to us, and not by the terminal, and that would end us if we did not pass them on. */
    unsigned asked;
    int64_t asked_ns; /* when the last signal came that ends programs; CLOCK_MONOTONIC, 0: none */
    sigset_t waited, old;
};

struct child_variable {
    const char *name, *value;
};

/*
 * Starts argv[0] with these variables (ended by a NULL name) in its environment; `before`, if not NULL, is
 * called in the new process just before. Signals are blocked from here on. False: errno says why it could not be
 * executed.
 */
bool child_start(struct child *child, char *const *argv, const struct child_variable *variables,
                 void (*before)(void *context), void *context);

/* There is no program: SIGINT, SIGTERM and SIGHUP set `ended`. */
void child_none(struct child *child);

/* The program has ended, what it started goes on: from now on as if there were none. */
void child_let_go(struct child *child);

/*
 * Waits for a signal, `ns` at most, and passes it on, but for `ours` (0: none), which is returned. child->ended
 * when the program is gone, or when a second SIGTERM, SIGINT or SIGHUP is sent to us while it is not: then it goes on
 * without us (given_up).
 */
int child_wait(struct child *child, int64_t ns, int ours);

/* Whether the user has asked for the end a short while ago, or asks now. */
bool child_is_hurried(void *child);

/* The exit status of a shell: 128 + n for signal n; 0 of a program that goes on. */
int child_exit_code(const struct child *child);

#endif
