/* Makes the memory that all processes of a recording share: see shm/board.h. */
#ifndef TRAIL_COLLECT_BOARD_H
#define TRAIL_COLLECT_BOARD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct area_hold;
struct shm_board;

struct board {
    int fd;                   /* -1: there is none */
    struct shm_board *shared; /* NULL: there is none */
    uint32_t answered;        /* how many requests for peers were */
};

/* Without a board, releases do not reach other processes. */
void board_open(struct board *board);

/* Answers which sockets are the peers of those that processes asked for; called in each step. */
void board_answer(struct board *board);

/*
 * Copies the locks of whole files that a process has for itself, by the PID that it knows itself,
 * into holds[BOARD_HOLDS]. Returns how many.
 */
#define BOARD_HOLDS 4096
size_t board_holds(const struct board *board, pid_t pid, struct area_hold *holds);

void board_close(struct board *board);

#endif
