/*
 * What a ring of io_uring has to do, from outside: the operations that wait for a descriptor to be
 * ready are listed by the kernel (/proc/PID/fdinfo/RING, "PollList"), without the descriptors.
 * These are in the ring's entries, in the program's memory, which is hostile: they are copied, and
 * only used as numbers.
 *
 * Not listed are time limits, and what the kernel does in threads of its own, as reading from a
 * disk.
 */
#ifndef TRAIL_COLLECT_URING_H
#define TRAIL_COLLECT_URING_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Writes what a descriptor of the process is called; empty: not known. */
struct uring_files {
    void (*name)(void *context, int fd, char *text, size_t size);
    void *context;
};

/*
 * Writes the operations that wait in a ring, the first few: "2 operations of io_uring: read pipe,
 * recv"; false: there are none, or the kernel lists none. An operation has its file as long as all
 * that was ever submitted to the ring is still in its entries, and as many of a kind as wait: none
 * has ended.
 */
bool uring_text(pid_t pid, unsigned ring, const struct uring_files *files, char *text, size_t size);

#endif
