/*
 * TCP connections of the process to itself, on this machine: both ends are its own descriptors, as those of a socket pair
 * are, so that a write to one is known to wake a thread that reads at the other.
 *
 * The ends are matched by their ports. One is registered when it is accepted, one when it is connected; the first waits in
 * a short list for the other. A program that never connects to a port where it listens pays for two checks.
 */
#ifndef TRAIL_PRELOAD_CONNECTIONS_H
#define TRAIL_PRELOAD_CONNECTIONS_H

#include "preload/descriptors.h"

/* Called before connect(): whether it is to a port where this process listens. */
bool connection_is_own(const struct sockaddr *address, socklen_t size);

/* Whether there has been such a connect(). */
extern bool connections_own __attribute__((visibility("hidden")));

/* Called after connect() to an own port, and after accept() if connections_own. */
void connection_made(int fd, bool accepted);

/* Forgets all ports and ends. No wrapper is called meanwhile. */
void connections_forget(void);

#endif
