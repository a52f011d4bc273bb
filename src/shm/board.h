/*
 * The board: memory that all processes of a recording share, for waits of one process that another
 * ends: for pipes and sockets, locks in shared memory, queues, locks of files, signals. Each has an
 * identity that both sides can compute (SHM_SHARED and what follows it, shm.h).
 *
 *     objects[hash of the object] - waiters: which threads have waited there - waits[thread]: what it waits for now
 *
 * A thread that is about to wait writes the object into its word, and the word's number into the
 * object's list, once; a process that is about to end such a wait reads those few words, and
 * records a release only if one of them has the object. Releases are numbered by the board, so that
 * the collector finds the one that ended a wait, whichever process recorded it.
 *
 * The collector does not rely on anything here, and reads only the numbers of sockets that it is
 * asked for. A killed process leaves its words behind until other threads get them; words are given
 * out in turn. At worst a release is recorded for which no thread waits, or one is not recorded.
 */
#pragma once

#include <stdint.h>

#include "shm/shm.h"

#define BOARD_MAGIC   UINT64_C(0x6472616f626c7274) /* "trlboard" */
#define BOARD_THREADS 16384                        /* word 0 means none */
#define BOARD_WAITERS 24
#define BOARD_PAIRS   4096
#define BOARD_ASKS    1024

struct board_object {
    uint32_t release; /* the number of the last release */
    uint32_t unused;
    uint64_t released; /* ... its time, in ticks */
    uint16_t waiters[BOARD_WAITERS];
};

_Static_assert(sizeof(struct board_object) == 64, "a cache line");

/*
 * Two ends that are each other's peers, if a process with one of them cannot find the other: stored
 * by the process that made both, or by the recorder on request.
 */
struct board_pair {
    uint64_t end, peer;
};

/* A process asks for the peer of a socket. */
struct board_ask {
    uint64_t device, inode; /* the latter is stored last, with release; 0: being written */
};

/*
 * A lock of a file that a process holds (preload/file_locks.c). Entries are free if `pid` is 0, and
 * complete if `object` is not.
 */
struct board_lock {
    uint64_t object; /* SHM_LOCKED; stored last, with release */
    uint64_t first, last;
    uint64_t since;       /* in ticks */
    uint32_t pid, serial; /* the process, and the thread in it that took the lock */
    int32_t fd;           /* BOARD_BY_PROCESS, or the same as `by` */
    int32_t by;           /* the descriptor through which it was taken */
    uint8_t exclusive;
    uint8_t
        alone; /* no other process or descriptor can have it: the end of the process releases it */
    /* Atomic: the process executes a program, which releases it; the release is recorded. */
    uint8_t given;
};

#define BOARD_BY_PROCESS (-1)
#define BOARD_LOCKS      256
#define BOARD_LOCKS_OF   16

/* The locks of the files with one hash. */
struct board_locks {
    uint32_t full; /* a lock did not fit: the holders are unknown */
    struct board_lock of[BOARD_LOCKS_OF];
};

/* A word of a thread that waits for several descriptors. */
#define BOARD_POLLS 1

struct shm_board {
    uint64_t magic;
    uint32_t words;   /* number of words given out so far */
    uint32_t forks;   /* number of forks so far */
    uint32_t several; /* not 0: the program has made another process, or is about to */
    uint32_t unused;
    uint64_t waits[BOARD_THREADS];
    struct board_object objects[SHM_OBJECTS];
    struct board_pair pairs[BOARD_PAIRS];
    struct board_locks locks[BOARD_LOCKS];
    uint32_t ask_count; /* of all requests ever; the newest is at (ask_count - 1) % BOARD_ASKS */
    struct board_ask asks[BOARD_ASKS];
};

/* An identity from two numbers: 52 bits; 0 means none. */
static inline uint64_t board_mix(uint64_t a, uint64_t b)
{
    uint64_t x = (a + UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xbf58476d1ce4e5b9) ^ b;
    x = (x ^ x >> 31) * UINT64_C(0x94d049bb133111eb);
    x = (x ^ x >> 29) >> 12;
    return x ? x : 1;
}

/* The object of an address in a mapping that processes share, by the device and the inode of its
 * file, and the offset there. */
static inline uint64_t board_memory(unsigned major, unsigned minor, uint64_t inode, uint64_t offset)
{
    return SHM_MEMORY | board_mix(board_mix((uint64_t)major << 32 | minor, inode), offset) << 4;
}

static inline void board_publish(struct shm_board *board, uint64_t end, uint64_t peer)
{
    struct board_pair *pair = &board->pairs[end % BOARD_PAIRS];
    __atomic_store_n(&pair->end, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&pair->peer, peer, __ATOMIC_RELEASE);
    __atomic_store_n(&pair->end, end, __ATOMIC_RELEASE);
}
