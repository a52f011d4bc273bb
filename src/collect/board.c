/* Makes the board, and answers what processes ask through it: see board.h. */
#include "collect/board.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collect/area.h"
#include "collect/unix_peer.h"
#include "shm/board.h"

/* Each answer takes some microseconds. */
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
    if (!board->shared)
        return;
    uint32_t count = __atomic_load_n(&board->shared->ask_count, __ATOMIC_ACQUIRE);
    /* Older requests were overwritten. */
    if (count - board->answered > BOARD_ASKS)
        board->answered = count - BOARD_ASKS;
    for (int i = 0; i < ANSWERS_A_STEP && board->answered != count; i++)
        answer(board->shared, &board->shared->asks[board->answered++ % BOARD_ASKS]);
}

_Static_assert(BOARD_HOLDS == BOARD_LOCKS * BOARD_LOCKS_OF, "all of them");

static bool read_lock(const struct board_lock *shared, uint32_t pid, struct area_hold *hold)
{
    uint64_t object = __atomic_load_n(&shared->object, __ATOMIC_ACQUIRE);
    uint64_t first = __atomic_load_n(&shared->first, __ATOMIC_RELAXED);
    uint64_t last = __atomic_load_n(&shared->last, __ATOMIC_RELAXED);
    bool is_whole = first == 0 && last == UINT64_MAX;

    *hold =
        (struct area_hold){.object = object,
                           .serial = __atomic_load_n(&shared->serial, __ATOMIC_RELAXED),
                           .wait = SHM_FILE_LOCK,
                           .detail = (uint32_t)__atomic_load_n(&shared->by, __ATOMIC_RELAXED) + 1};
    return shm_is_file(object) && is_whole && !__atomic_load_n(&shared->given, __ATOMIC_RELAXED) &&
           __atomic_load_n(&shared->exclusive, __ATOMIC_RELAXED) &&
           __atomic_load_n(&shared->pid, __ATOMIC_RELAXED) == pid;
}

size_t board_holds(const struct board *board, pid_t pid, struct area_hold *holds)
{
    size_t count = 0;
    for (size_t i = 0; board->shared && i < BOARD_HOLDS; i++) {
        const struct board_locks *at = &board->shared->locks[i / BOARD_LOCKS_OF];
        count += read_lock(&at->of[i % BOARD_LOCKS_OF], (uint32_t)pid, &holds[count]);
    }
    return count;
}

void board_close(struct board *board)
{
    if (board->shared)
        munmap(board->shared, sizeof *board->shared);
    if (board->fd >= 0)
        close(board->fd);
    *board = (struct board){.fd = -1};
}
