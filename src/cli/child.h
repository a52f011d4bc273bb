/*
 * The program that `trail record` runs: started with the recorder in it, in our own process group, so that
 * the terminal is its as much as ours; signals that are meant for it are passed on.
 */
#ifndef TRAIL_CLI_CHILD_H
#define TRAIL_CLI_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct child {
    pid_t pid;
    bool ended;
    int status; /* as of waitpid, once it has ended */
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
 * when the program is gone.
 */
int child_wait(struct child *child, int64_t ns, int ours);

/* The exit status of a shell: 128 + n for signal n. */
int child_exit_code(const struct child *child);

#endif
