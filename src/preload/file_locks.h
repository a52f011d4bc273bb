/*
 * Locks of files: flock(2), fcntl(2) with F_SETLK and its variants, lockf(3). What a process holds is on the board
 * (struct board_lock), so that whatever gives a lock back is known: an unlock, a close, the end of the process.
 *
 * A lock is entered after it was taken, and removed before it is given back. A thread that gets a lock in conflict with
 * one that is entered has found what no process holds any more: its holder has ended.
 */
#ifndef TRAIL_PRELOAD_FILE_LOCKS_H
#define TRAIL_PRELOAD_FILE_LOCKS_H

#include "preload/board.h"

/* How many locks of files the process holds, about; 0: a close gives none back. */
extern uint32_t file_locks_held __attribute__((visibility("hidden")));

/* Called before a close of the descriptor. */
void file_locks_closed(int fd, const struct unwind_start *caller);

/* Called before the process exits. */
void file_locks_exit(const struct unwind_start *caller);

/* Called before the process executes a program, which closes descriptors; and if it has executed none. */
void file_locks_execute(const struct unwind_start *caller);
void file_locks_kept(void);

/*
 * The process opened the descriptor itself: a close of it gives flock's locks back, unless another process or descriptor
 * got it as well; called before that, of one descriptor or of all.
 */
void file_locks_opened(int fd);
void file_locks_shared(int fd);
void file_locks_inherited(void);

/* In a forked child, which holds none. */
void file_locks_forget(void);

/* The body of fcntl's wrappers for commands of locks; calls the function with them. */
typedef int fcntl_function(int fd, int command, ...);
bool file_locks_command(int command);
int file_locks_fcntl(fcntl_function *function, int fd, int command, void *argument,
                     const struct unwind_start *caller);

#endif
