/* Asking for an area that cannot be opened: collect/handover.h answers. */
#ifndef TRAIL_SHM_HANDOVER_H
#define TRAIL_SHM_HANDOVER_H

#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

/* Room for one descriptor. */
union handover_control {
    struct cmsghdr header;
    char space[CMSG_SPACE(sizeof(int))];
};

/* Where the process answers of which the environment's word has this descriptor: an abstract name. */
static inline socklen_t handover_address(struct sockaddr_un *address, int pid, int fd)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1) +
           (socklen_t)snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "trail-%d-%d",
                               pid, fd);
}

/* A descriptor of the area; -1: there is none. */
int handover_ask(int pid, int fd, const char *word);

#endif
