/*
 * The spare area for those that may not open it under /proc: they have become another user, or see no /proc any more.
 * They ask for it at an abstract Unix socket by one half of a word that the program's environment has, and are
 * answered with the other.
 */
#ifndef TRAIL_COLLECT_HANDOVER_H
#define TRAIL_COLLECT_HANDOVER_H

#include <sys/types.h>

#include "shm/shm.h"

/* So many that were given the area last are remembered. */
#define HANDOVER_GIVEN 64

struct handover {
    int fd; /* -1: there is none */
    char word[SHM_WORD_SIZE + 1];
    pid_t given[HANDOVER_GIVEN]; /* by our numbers, as the kernel told them with the request */
    unsigned given_count;        /* in all: the newest is at (given_count - 1) % HANDOVER_GIVEN */
};

/* `area` is the descriptor that the environment names. Without a socket the rest works all the same. */
void handover_open(struct handover *handover, int area);

/* Gives the area to all who have asked. */
void handover_serve(struct handover *handover, int area);

/* The process that was given an area and calls itself `claimed`; 0: there is none. */
pid_t handover_gave(const struct handover *handover, pid_t claimed);

/* Who asks from now on is told at once that there is none. */
void handover_close(struct handover *handover);

#endif
