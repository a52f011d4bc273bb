#include "collect/board.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collect/unix_peer.h"
#include "shm/board.h"

/* Each takes some microseconds. */
#define ANSWERS_A_STEP 64

void board_open(struct board *board)
{
    struct shm_board *shared = MAP_FAILED;
    *board = (struct board){.fd = memfd_create("trail-board", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
    if (board->fd >= 0 && ftruncate(board->fd, sizeof *shared) == 0 &&
        fcntl(board->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, board->fd, 0);
    if (shared == MAP_FAILED) {
        board_close(board);
        return;
    }
    shared->magic = BOARD_MAGIC;
    board->shared = shared;
}

static void answer(struct shm_board *shared, const struct board_ask *asked)
{
    uint64_t inode = __atomic_load_n(&asked->inode, __ATOMIC_ACQUIRE), device = asked->device;
    uint64_t peer = inode ? unix_peer(inode) : 0, end, other;
    if (!peer)
        return;
    end = board_mix(device, inode);
    other = board_mix(device, peer);
    board_publish(shared, end, other);
    board_publish(shared, other, end);
}

void board_answer(struct board *board)
{
    uint32_t count;
    if (!board->shared)
        return;
    count = __atomic_load_n(&board->shared->ask_count, __ATOMIC_ACQUIRE);
    /* Those before were overwritten. */
    if (count - board->answered > BOARD_ASKS)
        board->answered = count - BOARD_ASKS;
    for (int i = 0; i < ANSWERS_A_STEP && board->answered != count; i++)
        answer(board->shared, &board->shared->asks[board->answered++ % BOARD_ASKS]);
}

void board_close(struct board *board)
{
    if (board->shared)
        munmap(board->shared, sizeof *board->shared);
    if (board->fd >= 0)
        close(board->fd);
    *board = (struct board){.fd = -1};
}
