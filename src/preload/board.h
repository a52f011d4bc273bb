/*
 * The board (shm/board.h) from inside a process: whether other processes wait for what this one does, and the identity of
 * pipes and sockets.
 */
#ifndef TRAIL_PRELOAD_BOARD_H
#define TRAIL_PRELOAD_BOARD_H

#include "preload/preload.h"
#include "shm/board.h"

/* NULL: there is none. */
extern struct shm_board *board __attribute__((visibility("hidden")));

/*
 * Whether other processes are recorded as well, so that what this one shares with them is looked for. Queues, semaphore
 * sets and locks of files are on the board in any case.
 */
extern bool board_of_several __attribute__((visibility("hidden")));

/* Maps the board, which is a descriptor of the process that the word names (see SHM_VARIABLE). */
void board_join(const char *word, uint32_t fd, bool several);

/* MARK: Waiting */

/* The calling thread may wait for the object; `word` is that, or BOARD_POLLS. */
void board_waits(uint64_t object, uint64_t word);

/* It does not any more. */
void board_leaves(void);

/* Records a release that is about to happen if a thread waits for the object. */
void board_release(uint64_t object, enum shm_wait kind, uint8_t flags,
                   const struct unwind_start *caller);

/* The same with the record's `object2`, and since when it was held (0: not known). */
void board_release_of(uint64_t object, enum shm_wait kind, uint64_t since, uint64_t object2,
                      const struct unwind_start *caller);

/* Records that a signal is about to be sent; `sent` is shm_signal_sent. */
void board_signal(uint64_t object, uint64_t sent, const struct unwind_start *caller);

/* Whether a thread waits for the object, of this process or another. */
bool board_awaits(uint64_t object);

/* The number of the object's next release, which happens now. */
uint32_t board_next_number(uint64_t object, uint64_t time);

/* The number of the object's last release; whether that was since `time`. */
uint32_t board_number(uint64_t object);
bool board_released_since(uint64_t object, uint64_t time);

/* The object of the process's signals (signals.c); 0: they are not recorded. */
uint64_t signals_object(void);

/* The open call has failed with EINTR: records the signals that may have ended it, if there are any. `mask`: those that were
 * blocked meanwhile; NULL: as they are now. */
void signals_interrupted(const sigset_t *mask);

/* Sets what the record of a wait for `object`, the process's signals, has of them. */
void signals_record(struct shm_record *record);

/* MARK: Identities */

/* Of an end, and of the end where what is written there can be read: the same of a pipe. 0: not known. */
struct board_ends {
    uint64_t own, peer;
    bool endless; /* a close wakes no thread: there is no end of the data */
};

/* Finds them for a descriptor; *settled: they will not change. */
struct board_ends board_identify(int fd, bool *settled);

/* The two ends of a pipe or socket pair. */
void board_identify_pair(const int fds[2], struct board_ends *first, struct board_ends *second);

/* The peer of a socket whose peer was not known; 0: it is not known yet. */
uint64_t board_peer(uint64_t own);

#endif
