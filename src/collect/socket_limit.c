/* See socket_limit.h. */
#include "collect/socket_limit.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

static int copy_descriptor(pid_t pid, int fd)
{
    int process = (int)syscall(SYS_pidfd_open, pid, 0);
    int copy = process >= 0 ? (int)syscall(SYS_pidfd_getfd, process, fd, 0) : -1;
    if (process >= 0)
        (void)close(process);
    return copy;
}

enum socket_limit socket_limit(pid_t pid, int fd, bool is_write)
{
    struct timeval limit = {0};
    socklen_t size = sizeof limit;
    int copy = copy_descriptor(pid, fd), failed = 0;
    if (copy < 0)
        return SOCKET_NOT_KNOWN;
    if (getsockopt(copy, SOL_SOCKET, is_write ? SO_SNDTIMEO : SO_RCVTIMEO, &limit, &size) != 0)
        failed = errno;
    (void)close(copy);
    if (failed)
        return failed == ENOTSOCK ? SOCKET_NONE : SOCKET_NOT_KNOWN;
    return limit.tv_sec || limit.tv_usec ? SOCKET_LIMITED : SOCKET_UNLIMITED;
}
