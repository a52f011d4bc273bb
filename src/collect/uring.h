/*
 * The pending operations of an io_uring ring, read from outside. The kernel lists those that wait
 * for a descriptor to become ready (/proc/PID/fdinfo/RING, "PollList"), but without the
 * descriptors. These are in the ring's entries, in the program's memory, which is hostile: the
 * entries are copied, and used only as numbers.
 *
 * Time limits are not listed, nor what the kernel does in threads of its own, such as reading from
 * a disk.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Writes the name of one of the process's descriptors; empty: not known. */
struct uring_files {
    void (*name)(void *context, int fd, char *text, size_t size);
    void *context;
};

/*
 * Writes the first few operations that wait in a ring: "2 operations of io_uring: read pipe, recv";
 * false: none, or the kernel lists none. Files are named while all submissions ever made are still
 * in the ring's entries, and there are as many entries of a kind as waiting operations: none has
 * completed.
 */
bool uring_text(pid_t pid, unsigned ring, const struct uring_files *files, char *text, size_t size);
