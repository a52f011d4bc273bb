/* Makes the memory that all processes of a recording share: see shm/board.h. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct area_hold;
struct shm_board;

struct board {
    int fd;                   /* -1: none */
    struct shm_board *shared; /* NULL: none */
    uint32_t answered;        /* requests for peers answered so far */
};

/* Without a board, releases do not reach other processes. */
void board_open(struct board *board);

/* Reports to processes which sockets are the peers of those that they asked about; called in each
 * step. */
void board_answer(struct board *board);

/*
 * Copies to holds[BOARD_HOLDS] the locks of whole files that a process holds exclusively; the PID
 * is the one in the process's own namespace. Returns their number.
 */
#define BOARD_HOLDS 4096
size_t board_holds(const struct board *board, pid_t pid, struct area_hold *holds);

void board_close(struct board *board);
