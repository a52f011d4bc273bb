/*
 * Gives the spare area to processes that cannot open it under /proc because they run as another
 * user or have no /proc. Such a process sends one half of the word in its environment to an
 * abstract Unix socket, and gets the area together with the other half.
 */
#pragma once

#include <sys/types.h>

#include "shm/shm.h"

/* How many of the last processes that were given the area are remembered. */
#define HANDOVER_GIVEN 64

struct handover {
    int fd; /* -1: none */
    char word[SHM_WORD_SIZE + 1];
    pid_t given[HANDOVER_GIVEN]; /* PIDs in our namespace, from the kernel's credentials */
    unsigned given_count;        /* in total: the newest is at (given_count - 1) % HANDOVER_GIVEN */
};

/* Opens the socket; `area` is the descriptor that the environment names. Everything else works
 * without the socket. */
void handover_open(struct handover *handover, int area);

/* Gives the area to all processes that have asked. */
void handover_serve(struct handover *handover, int area);

/* Returns the process that was given an area and has the PID `claimed` in its own namespace; 0:
 * none. */
pid_t handover_gave(const struct handover *handover, pid_t claimed);

/* Closes the socket: later requests fail at once. */
void handover_close(struct handover *handover);
