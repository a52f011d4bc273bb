#include "cli/handover.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "preload/handover.h"

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
    if (handover->fd >= 0 && bind(handover->fd, (const struct sockaddr *)&address, length) != 0)
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

void handover_serve(const struct handover *handover, int area)
{
    char asked[SHM_WORD_SIZE];
    struct sockaddr_un from;
    socklen_t length;
    ssize_t n;

    /* Anybody may ask, and is not to keep us from all else. */
    for (int i = 0; i < ASKED_A_STEP && handover->fd >= 0; i++) {
        length = sizeof from;
        n = recvfrom(handover->fd, asked, sizeof asked, MSG_TRUNC, (struct sockaddr *)&from,
                     &length);
        if (n < 0)
            return;
        if (n == SHM_WORD_SIZE / 2 && memcmp(asked, handover->word, SHM_WORD_SIZE / 2) == 0)
            give(handover, &from, length, area);
    }
}

void handover_close(struct handover *handover)
{
    if (handover->fd >= 0)
        close(handover->fd);
    handover->fd = -1;
}
