/* See sockets.h. */
#include "collect/sockets.h"

#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/small_file.h"
#include "collect/unix_peer.h"

/* Writes "127.0.0.1:80" for the kernel's "0100007F:0050", whose words have the machine's byte
 * order. */
static void address_text(const char *words, char *text, size_t size)
{
    uint32_t address[4] = {0};
    char digits[9] = "", plain[INET6_ADDRSTRLEN] = "?";
    unsigned port = 0;
    size_t length = strcspn(words, ":"), count = length / 8;
    for (size_t i = 0; i < count && i < 4; i++) {
        memcpy(digits, words + 8 * i, 8);
        address[i] = (uint32_t)strtoul(digits, NULL, 16);
    }
    (void)sscanf(words + length, ":%x", &port);
    (void)inet_ntop(count == 4 ? AF_INET6 : AF_INET, address, plain, sizeof plain);
    (void)snprintf(text, size, count == 4 ? "[%s]:%u" : "%s:%u", plain, port);
}

/* Calls `is_it` for each connection of a kind until it returns true. Returns whether it did. */
static bool find_connection(pid_t pid, const char *kind, struct tcp_connection *found,
                            bool (*is_it)(const struct tcp_connection *one, const void *context),
                            const void *context)
{
    char local[64], remote[64];
    SMALL_FILE_LINES(lines, "/proc/%d/net/%s", pid, kind) {
        if (sscanf(lines.text, " %*d: %63s %63s %*s %*s %*s %*s %*s %*s %lu", local, remote,
                   &found->inode) != 3)
            continue;
        address_text(local, found->local, sizeof found->local);
        address_text(remote, found->remote, sizeof found->remote);
        if (is_it(found, context))
            return true;
    }
    return false;
}

static bool has_inode(const struct tcp_connection *one, const void *inode)
{
    return one->inode == *(const unsigned long *)inode;
}

/* The other end has the same addresses, swapped. */
static bool is_other_end(const struct tcp_connection *one, const void *context)
{
    const struct tcp_connection *end = context;
    return strcmp(one->local, end->remote) == 0 && strcmp(one->remote, end->local) == 0;
}

bool sockets_tcp(pid_t pid, unsigned long inode, struct tcp_connection *found)
{
    return find_connection(pid, "tcp", found, has_inode, &inode) ||
           find_connection(pid, "tcp6", found, has_inode, &inode);
}

unsigned long sockets_other_end(pid_t pid, unsigned long inode)
{
    struct tcp_connection tcp, far;
    unsigned long peer = unix_peer(inode);
    if (!peer && sockets_tcp(pid, inode, &tcp) &&
        (find_connection(pid, "tcp", &far, is_other_end, &tcp) ||
         find_connection(pid, "tcp6", &far, is_other_end, &tcp)))
        peer = far.inode;
    return peer;
}
