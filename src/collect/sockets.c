/* See sockets.h. */
#include "collect/sockets.h"

#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/small_file.h"
#include "collect/unix_peer.h"

/* Reads "0100007F", or 32 digits: words in network byte order, printed as native integers. */
static bool read_address(const char *hex, struct socket_address *address)
{
    size_t count = strlen(hex) / 8;
    if (count != 1 && count != 4)
        return false;
    for (size_t i = 0; i < count; i++) {
        char word[9] = "";
        memcpy(word, hex + 8 * i, 8);
        address->words[i] = (uint32_t)strtoul(word, NULL, 16);
    }
    address->six = count == 4;
    if (address->six && address->words[0] == 0 && address->words[1] == 0 &&
        address->words[2] == htonl(0xffff)) {
        address->words[0] = address->words[3];
        address->words[2] = address->words[3] = 0;
        address->six = false;
    }
    return true;
}

bool sockets_read(const char *line, struct inet_socket *read)
{
    char local[33], remote[33];
    *read = (struct inet_socket){0};
    return sscanf(line, " %*d: %32[0-9A-F]:%x %32[0-9A-F]:%x %*x %*x:%*x %*x:%*x %*x %*d %*d %lu",
                  local, &read->local.port, remote, &read->remote.port, &read->inode) == 5 &&
           read_address(local, &read->local) && read_address(remote, &read->remote);
}

void sockets_text(const struct socket_address *address, char text[SOCKET_ADDRESS_TEXT])
{
    char host[INET6_ADDRSTRLEN] = "?";
    (void)inet_ntop(address->six ? AF_INET6 : AF_INET, address->words, host, sizeof host);
    (void)snprintf(text, SOCKET_ADDRESS_TEXT, address->six ? "[%s]:%u" : "%s:%u", host,
                   address->port);
}

/* Finds the first TCP socket for which `is_it` returns true. */
static bool find_tcp(pid_t pid, struct inet_socket *found,
                     bool (*is_it)(const struct inet_socket *one, const void *context),
                     const void *context)
{
    static const char *const tables[] = {"tcp", "tcp6"};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        SMALL_FILE_LINES(lines, "/proc/%d/net/%s", pid, tables[i])
            if (sockets_read(lines.text, found) && is_it(found, context))
                return true;
    }
    return false;
}

static bool has_inode(const struct inet_socket *one, const void *inode)
{
    return one->inode == *(const unsigned long *)inode;
}

static bool is_same(const struct socket_address *a, const struct socket_address *b)
{
    return a->six == b->six && a->port == b->port &&
           memcmp(a->words, b->words, sizeof a->words) == 0;
}

/* The other end has the same addresses, swapped. */
static bool is_other_end(const struct inet_socket *one, const void *context)
{
    const struct inet_socket *end = context;
    return is_same(&one->local, &end->remote) && is_same(&one->remote, &end->local);
}

bool sockets_tcp(pid_t pid, unsigned long inode, struct inet_socket *found)
{
    return find_tcp(pid, found, has_inode, &inode);
}

unsigned long sockets_other_end(pid_t pid, unsigned long inode)
{
    struct inet_socket own, other;
    unsigned long peer = unix_peer(inode);
    if (!peer && sockets_tcp(pid, inode, &own) && find_tcp(pid, &other, is_other_end, &own))
        peer = other.inode;
    return peer;
}
