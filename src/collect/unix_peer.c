/* Finds the peer of a Unix socket by the kernel's socket diagnostics. */
#include "collect/unix_peer.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct request {
    struct nlmsghdr header;
    struct unix_diag_req unix_request;
};

static bool ask(int fd, unsigned long inode)
{
    struct request request = {
        .header = {.nlmsg_len = sizeof request,
                   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                   .nlmsg_flags = NLM_F_REQUEST},
        .unix_request = {.sdiag_family = AF_UNIX,
                         .udiag_states = UINT32_MAX,
                         .udiag_ino = (uint32_t)inode,
                         .udiag_show = UDIAG_SHOW_PEER,
                         .udiag_cookie = {UINT32_MAX, UINT32_MAX}},
    };
    return send(fd, &request, sizeof request, 0) == (ssize_t)sizeof request;
}

/* Finds the attribute with the peer in an answer of `size` bytes. */
static unsigned long find_peer(const struct nlmsghdr *header, size_t size)
{
    if (!NLMSG_OK(header, size) || header->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
        header->nlmsg_len < NLMSG_LENGTH(sizeof(struct unix_diag_msg)))
        return 0;
    const struct rtattr *at = (const void *)((const struct unix_diag_msg *)NLMSG_DATA(header) + 1);
    size_t left = header->nlmsg_len - NLMSG_LENGTH(sizeof(struct unix_diag_msg));
    for (; RTA_OK(at, left); at = RTA_NEXT(at, left)) {
        uint32_t inode;
        if (at->rta_type != UNIX_DIAG_PEER || RTA_PAYLOAD(at) < sizeof inode)
            continue;
        memcpy(&inode, RTA_DATA(at), sizeof inode);
        return inode;
    }
    return 0;
}

unsigned long unix_peer(unsigned long inode)
{
    union {
        struct nlmsghdr header;
        char bytes[1024];
    } answer;
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    unsigned long peer = 0;
    if (fd < 0)
        return 0;
    if (ask(fd, inode)) {
        ssize_t size = recv(fd, &answer, sizeof answer, 0);
        peer = size > 0 ? find_peer(&answer.header, (size_t)size) : 0;
    }
    (void)close(fd);
    return peer;
}
