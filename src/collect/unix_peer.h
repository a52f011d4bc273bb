/* The other end of a Unix socket, which the kernel's socket diagnostics know (sock_diag(7)). */
#ifndef TRAIL_COLLECT_UNIX_PEER_H
#define TRAIL_COLLECT_UNIX_PEER_H

/* Returns the inode of the other end; 0: none, or not known, as in another network namespace. */
unsigned long unix_peer(unsigned long inode);

#endif
