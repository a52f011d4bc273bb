/* Gives the area to processes that ask for it with a message: see handover.h. */
#include "collect/handover.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "collect/process.h"
#include "shm/handover.h"

#define ASKED_A_STEP 64

static bool make_word(char word[SHM_WORD_SIZE + 1])
{
    uint64_t halves[2];
    if (getrandom(halves, sizeof halves, 0) != (ssize_t)sizeof halves)
        return false;
    (void)snprintf(word, SHM_WORD_SIZE + 1, "%016" PRIx64 "%016" PRIx64, halves[0], halves[1]);
    return true;
}

void handover_open(struct handover *handover, int area)
{
    struct sockaddr_un address;
    socklen_t length = handover_address(&address, (int)getpid(), area);
    *handover = (struct handover){.fd = -1};
    if (!make_word(handover->word))
        return;
    handover->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (handover->fd >= 0 &&
        (bind(handover->fd, (const struct sockaddr *)&address, length) != 0 ||
         setsockopt(handover->fd, SOL_SOCKET, SO_PASSCRED, &(int){1}, sizeof(int)) != 0))
        handover_close(handover);
}

static void give(const struct handover *handover, struct sockaddr_un *to, socklen_t length,
                 int area)
{
    struct iovec text = {(void *)(uintptr_t)(handover->word + SHM_WORD_SIZE / 2),
                         SHM_WORD_SIZE / 2};
    union handover_control control = {0};
    struct msghdr message = {.msg_name = to,
                             .msg_namelen = length,
                             .msg_iov = &text,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    control.header = (struct cmsghdr){CMSG_LEN(sizeof area), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.header), &area, sizeof area);
    (void)sendmsg(handover->fd, &message, MSG_NOSIGNAL);
}

/* Room for the credentials that the kernel adds. */
union credentials {
    struct cmsghdr header;
    char space[CMSG_SPACE(sizeof(struct ucred))];
};

/* Reads a request: its word, and the PID of the process (0: not known). Returns the word's size;
 * -1: no request. */
static ssize_t take_request(const struct handover *handover, char asked[SHM_WORD_SIZE],
                            struct sockaddr_un *from, socklen_t *length, pid_t *pid)
{
    struct iovec text = {asked, SHM_WORD_SIZE};
    union credentials control = {0};
    struct msghdr message = {.msg_name = from,
                             .msg_namelen = sizeof *from,
                             .msg_iov = &text,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    ssize_t n = recvmsg(handover->fd, &message, MSG_TRUNC | MSG_CMSG_CLOEXEC);
    struct ucred credentials = {0};
    if (n >= 0 && message.msg_controllen >= CMSG_LEN(sizeof credentials) &&
        control.header.cmsg_level == SOL_SOCKET && control.header.cmsg_type == SCM_CREDENTIALS)
        memcpy(&credentials, CMSG_DATA(&control.header), sizeof credentials);
    *length = message.msg_namelen;
    *pid = credentials.pid;
    return n;
}

void handover_serve(struct handover *handover, int area)
{
    char asked[SHM_WORD_SIZE];
    struct sockaddr_un from;
    socklen_t length;
    pid_t pid;
    /* Any process may ask: the number of answers per step is limited. */
    for (int i = 0; i < ASKED_A_STEP && handover->fd >= 0; i++) {
        ssize_t n = take_request(handover, asked, &from, &length, &pid);
        if (n < 0)
            return;
        if (n != SHM_WORD_SIZE / 2 || memcmp(asked, handover->word, SHM_WORD_SIZE / 2) != 0)
            continue;
        handover->given[handover->given_count++ % HANDOVER_GIVEN] = pid;
        give(handover, &from, length, area);
    }
}

pid_t handover_gave(const struct handover *handover, pid_t claimed)
{
    for (unsigned i = 0; i < HANDOVER_GIVEN; i++) {
        pid_t pid = handover->given[i];
        if (pid > 0 && process_calls_itself(pid, claimed))
            return pid;
    }
    return 0;
}

void handover_close(struct handover *handover)
{
    if (handover->fd >= 0)
        close(handover->fd);
    handover->fd = -1;
}
