/*
 * The spare area for those that may not open it under /proc: they have become another user, or see no /proc any more.
 * They ask for it at an abstract Unix socket by one half of a word that the program's environment has, and are
 * answered with the other.
 */
#ifndef TRAIL_CLI_HANDOVER_H
#define TRAIL_CLI_HANDOVER_H

#include "preload/shm.h"

struct handover {
    int fd; /* -1: there is none */
    char word[SHM_WORD_SIZE + 1];
};

/* `area` is the descriptor that the environment names. Without a socket the rest works all the same. */
void handover_open(struct handover *handover, int area);

/* Gives the area to all who have asked. */
void handover_serve(const struct handover *handover, int area);

/* Who asks from now on is told at once that there is none. */
void handover_close(struct handover *handover);

#endif
