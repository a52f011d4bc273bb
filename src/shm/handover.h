/*
 * How a process asks for an area that it cannot open under /proc. The recorder answers
 * (collect/handover.h).
 */
#pragma once

#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

/* Room for one descriptor. */
union handover_control {
    struct cmsghdr header;
    char space[CMSG_SPACE(sizeof(int))];
};

/* The abstract address at which the recorder `pid` answers for the area in its descriptor `fd`.
 * Returns its length. */
static inline socklen_t handover_address(struct sockaddr_un *address, int pid, int fd)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1) +
           (socklen_t)snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "trail-%d-%d",
                               pid, fd);
}

/* Returns a descriptor of the area, which the caller closes; -1: none. */
int handover_ask(int pid, int fd, const char *word);
