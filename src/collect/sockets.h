/* The connections of this machine: TCP from /proc/PID/net (proc(5)), Unix sockets by unix_peer.h. */
#ifndef TRAIL_COLLECT_SOCKETS_H
#define TRAIL_COLLECT_SOCKETS_H

#include <stdbool.h>
#include <sys/types.h>

/* A TCP socket: "127.0.0.1:80", "[::1]:80". */
struct tcp_connection {
    char local[64], remote[64];
    unsigned long inode;
};

/* Finds a TCP socket in the network namespace of a process. */
bool sockets_tcp(pid_t pid, unsigned long inode, struct tcp_connection *found);

/* Returns the inode of the socket at the other end of a connection; 0: none, or not known. */
unsigned long sockets_other_end(pid_t pid, unsigned long inode);

#endif
