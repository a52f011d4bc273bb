/* Whether calls on another process's socket have a time limit (socket(7)). */
#ifndef TRAIL_COLLECT_SOCKET_LIMIT_H
#define TRAIL_COLLECT_SOCKET_LIMIT_H

#include <stdbool.h>
#include <sys/types.h>

enum socket_limit {
    SOCKET_UNLIMITED,
    SOCKET_LIMITED,
    SOCKET_NONE, /* the descriptor is not a socket */
    SOCKET_NOT_KNOWN,
};

/* Reads SO_SNDTIMEO or SO_RCVTIMEO through a copy of the descriptor (Linux 5.6). */
enum socket_limit socket_limit(pid_t pid, int fd, bool is_write);

#endif
