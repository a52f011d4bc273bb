/* Whether calls on another process's socket have a time limit (socket(7)). */
#pragma once

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
