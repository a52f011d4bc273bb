/*
 * The board (shm/board.h) from inside a process: whether other processes wait for what this one
 * does, and the identity of pipes and sockets.
 */
#pragma once

#include "preload/preload.h"
#include "shm/board.h"

/* NULL: no board. */
extern struct shm_board *board __attribute__((visibility("hidden")));

/*
 * Whether other recorded processes exist or existed, so that objects shared with them are tracked;
 * set just before the first is made. Queues, semaphore sets and file locks are on the board in any
 * case.
 */
extern bool board_of_several __attribute__((visibility("hidden")));

/* Maps the board that the area names from the process that `word` names (see SHM_VARIABLE). */
void board_join(const char *word, const struct shm_header *header);

/* Called before the process makes another. True if that is the first and will be recorded. */
bool board_begins_several(void);

/* MARK: Waiting */

/* Notes that the calling thread may wait for the object; `word` is the object or BOARD_POLLS. */
void board_waits(uint64_t object, uint64_t word);

/* Notes that it no longer waits. */
void board_leaves(void);

/* Records a release that is about to happen if a thread waits for the object. */
void board_release(uint64_t object, enum shm_wait kind, uint8_t flags,
                   const struct unwind_start *caller);

/* The same with the record's `object2` and the time since which it was held (0: unknown). */
void board_release_of(uint64_t object, enum shm_wait kind, uint64_t since, uint64_t object2,
                      const struct unwind_start *caller);

/* Records that a signal is about to be sent; `sent` is shm_signal_sent. */
void board_signal(uint64_t object, uint64_t sent, const struct unwind_start *caller);

/* Whether a thread of any process waits for the object. */
bool board_awaits(uint64_t object);

/* Returns the number of the object's next release, which happens now. */
uint32_t board_next_number(uint64_t object, uint64_t time);

/* Return the number of the object's last release, and whether that was at or after `time`. */
uint32_t board_number(uint64_t object);
bool board_released_since(uint64_t object, uint64_t time);

/* Reads the process's group, so that waits need no system call. */
void signals_read_group(void);

/* Returns the object of the process's signals (signals.c); 0: they are not recorded. */
uint64_t signals_object(void);

/*
 * Called when the open call failed with EINTR: records the signals that may have ended it. `mask`:
 * the signals blocked during the call; NULL: the current mask.
 */
void signals_interrupted(const sigset_t *mask);

/* Fills in the fields of a record whose object is the process's signals. */
void signals_record(struct shm_record *record);

/* MARK: Identities */

/* The identities of an end and of its peer, the reader; equal for a pipe. 0: unknown. */
struct board_ends {
    uint64_t own, peer;
    bool endless; /* a close wakes no thread, because there is no end of file */
};

/* Finds the identities for a descriptor; *settled is set if they will not change. */
struct board_ends board_identify(int fd, bool *settled);

/* The same for the two ends of a pipe or socket pair. */
void board_identify_pair(const int fds[2], struct board_ends *first, struct board_ends *second);

/* Returns the peer of a socket whose peer was unknown; 0: still unknown. */
uint64_t board_peer(uint64_t own);
