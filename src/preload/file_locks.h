/*
 * File locks: flock(2), fcntl(2) with F_SETLK and its variants, lockf(3). The locks that a process
 * holds are on the board (struct board_lock), so that every release is noticed: an unlock, a close,
 * the end of the process.
 *
 * A lock is entered after it is taken and removed before it is released. If a thread gets a lock
 * that conflicts with an entry, the holder of that entry has ended.
 */
#pragma once

#include "preload/board.h"

/* Approximate number of file locks that the process holds; 0: a close releases none. */
extern uint32_t file_locks_held __attribute__((visibility("hidden")));

/* Called before a close of the descriptor. */
void file_locks_closed(int fd, const struct unwind_start *caller);

/* Called before the process exits. */
void file_locks_exit(const struct unwind_start *caller);

/* Called before exec, which closes descriptors, and after an exec that failed. */
void file_locks_execute(const struct unwind_start *caller);
void file_locks_kept(void);

/*
 * file_locks_opened: the process opened the descriptor, so its close releases flock's locks. The
 * other two are called before one descriptor, or all of them, become shared with another process or
 * descriptor.
 */
void file_locks_opened(int fd);
void file_locks_shared(int fd);
void file_locks_inherited(void);

/* Called in a forked child, which holds no locks. */
void file_locks_forget(void);

/* Whether the command locks or unlocks; the body of fcntl's wrappers for such commands. */
typedef int fcntl_function(int fd, int command, ...);
bool file_locks_command(int command);
int file_locks_fcntl(fcntl_function *function, int fd, int command, void *argument,
                     const struct unwind_start *caller);
