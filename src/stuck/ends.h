/*
 * Which processes have which pipes, sockets and files open, by the links of their descriptors
 * (proc(5), /proc/PID/fd). /proc is read once, on first use.
 */
#ifndef TRAIL_STUCK_ENDS_H
#define TRAIL_STUCK_ENDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define ENDS_LINK_SIZE 256

struct ends_row {
    uint64_t link; /* a hash */
    pid_t tid;     /* the process's first thread that has descriptors */
    int fd;
};

/* Zero-initialized: empty; ends_free releases it. */
struct ends {
    struct ends_row *rows; /* by link and thread */
    size_t count, capacity;
    bool is_read;
    bool is_partial; /* the descriptors of some processes may not be read */
};

void ends_free(struct ends *ends);

/* Processes, any of which can end a wait. */
#define ENDS_PEERS 8
struct peers {
    pid_t pids[ENDS_PEERS];
    size_t count;
    bool is_all; /* there are no others */
};

/*
 * Fills in the processes that have a descriptor with such a link and an access mode other than
 * `not_access` (fcntl(2), O_ACCMODE; -1: any).
 */
void ends_find(struct ends *ends, const char *link, int not_access, struct peers *peers);

/* Reads a descriptor's link: a path, "pipe:[INODE]", "socket:[INODE]". */
bool ends_read_link(pid_t pid, int fd, char *text, size_t size);

/* Returns the process of a thread; `tid` if it has ended. */
pid_t ends_process(pid_t tid);

/* Returns the access mode of a descriptor; -1: not known. */
int ends_access(pid_t pid, int fd);

#endif
