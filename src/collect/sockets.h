/* The machine's connections: TCP from /proc/PID/net (proc(5)), Unix sockets by unix_peer.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* IPv4 addresses that are mapped to IPv6 are IPv4 addresses here. */
struct socket_address {
    uint32_t words[4]; /* in network byte order */
    bool six;
    unsigned port;
};

/* A TCP or UDP socket. */
struct inet_socket {
    struct socket_address local, remote;
    unsigned long inode;
};

/*
 * Reads a line of /proc/PID/net/tcp, tcp6, udp or udp6. False: it describes no socket, like the
 * first line.
 */
bool sockets_read(const char *line, struct inet_socket *read);

#define SOCKET_ADDRESS_TEXT 64

/* Writes "127.0.0.1:80" or "[::1]:80". */
void sockets_text(const struct socket_address *address, char text[SOCKET_ADDRESS_TEXT]);

/* Finds a TCP socket in the network namespace of a process. */
bool sockets_tcp(pid_t pid, unsigned long inode, struct inet_socket *found);

/* Returns the inode of the socket at the other end of a connection; 0: none, or not known. */
unsigned long sockets_other_end(pid_t pid, unsigned long inode);
