/*
 * What a ring of io_uring has to do, from outside: the operations that wait for a descriptor to be ready are listed by the
 * kernel (/proc/PID/fdinfo/RING, "PollList"), without the descriptors. These are in the ring's entries, in the program's
 * memory, which is hostile: they are copied, and only used as numbers.
 *
 * Not listed are time limits, and what the kernel does in threads of its own, as reading from a disk.
 */
#ifndef TRAIL_STUCK_URING_H
#define TRAIL_STUCK_URING_H

#include <stddef.h>
#include <sys/types.h>

struct uring_operation {
    unsigned code;
    int fd; /* -1: not known */
};

/*
 * Writes up to `most` operations that wait, and returns how many there are. Their descriptors are known as long as all that was
 * ever submitted to the ring is still in its entries, and as many of a kind as wait: none has ended.
 */
size_t uring_waiting(pid_t pid, unsigned ring, struct uring_operation *operations, size_t most);

/* "read"; NULL: not known by a name. */
const char *uring_name(unsigned code);

#endif
