/* Requests an area from the recorder if the process may not open it: see handover.h. */
#include "shm/handover.h"

#include <string.h>
#include <unistd.h>

#include "preload/call.h"

/* The recorder answers within a few steps. */
static const struct timeval patience = {0, 500000};

/* Returns a socket to which only the recorder can send. */
static int connect_to(int pid, int fd)
{
    const struct sockaddr_un own = {.sun_family = AF_UNIX};
    struct sockaddr_un address;
    socklen_t length = handover_address(&address, pid, fd);
    int s = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    /* Binds the socket to a name chosen by the kernel, for the answer. */
    if (s >= 0 && bind(s, (const struct sockaddr *)&own, sizeof own.sun_family) == 0 &&
        REAL(connect)(s, (const struct sockaddr *)&address, length) == 0 &&
        setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0)
        return s;
    if (s >= 0)
        close(s);
    return -1;
}

static int receive(int s, const char *word)
{
    char answer[SHM_WORD_SIZE / 2];
    struct iovec text = {answer, sizeof answer};
    union handover_control control = {0};
    struct msghdr message = {.msg_iov = &text,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    int fd = -1;
    ssize_t n;
    do
        n = REAL(recvmsg)(s, &message, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n > 0 && message.msg_controllen >= CMSG_LEN(sizeof fd) &&
        control.header.cmsg_type == SCM_RIGHTS)
        memcpy(&fd, CMSG_DATA(&control.header), sizeof fd);
    if (fd >= 0 && (n != sizeof answer || memcmp(answer, word, sizeof answer) != 0)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

int handover_ask(int pid, int fd, const char *word)
{
    int s, area = -1;
    if (strlen(word) != SHM_WORD_SIZE || (s = connect_to(pid, fd)) < 0)
        return -1;
    if (REAL(send)(s, word, SHM_WORD_SIZE / 2, MSG_NOSIGNAL) == SHM_WORD_SIZE / 2)
        area = receive(s, word + SHM_WORD_SIZE / 2);
    close(s);
    return area;
}
