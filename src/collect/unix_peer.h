/* The peer of a Unix socket, from the kernel's socket diagnostics (sock_diag(7)). */
#pragma once

/* Returns the inode of the peer; 0: none, or not known, as in another network namespace. */
unsigned long unix_peer(unsigned long inode);
