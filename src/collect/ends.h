/*
 * Which processes have which pipes, sockets and files open, by the links of their descriptors
 * (proc(5), /proc/PID/fd). /proc is read once, on first use.
 */
#pragma once

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
    bool has_own;    /* set by the caller: this process's are wanted, too */
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

/* Returns the number in a link "pipe:[7]" whose kind is "pipe:["; 0: another kind. */
unsigned long ends_inode(const char *link, const char *kind);

/* Returns the process of a thread; `tid` if it has ended. */
pid_t ends_process(pid_t tid);

/* Whether a process has descriptors: one that ends loses all of them before any is closed. */
bool ends_has_any(pid_t pid);

/* Returns the access mode of a descriptor; -1: not known. */
int ends_access(pid_t pid, int fd);

/*
 * Finds the processes with the other end of a pipe, or of a connection on this machine. False: the
 * descriptor is neither.
 */
bool ends_peers(struct ends *ends, pid_t tid, int fd, struct peers *peers);

/* Whether reading or writing there may have a time limit, so that other processes are not the only
 * ones that can end it. */
bool ends_is_limited(pid_t tid, int fd, bool is_write);
