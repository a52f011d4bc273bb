/*
 * TCP connections of the process to itself, on this machine: both of their ends are descriptors of it, as those of a
 * socket pair are, so that who writes to one is known to wake who reads at the other.
 *
 * The ends are told by their ports. One is seen when it is accepted, one when it is connected; whichever comes first
 * waits in a short list for the other. A program that never connects to where it listens pays for two looks at that.
 */
#ifndef TRAIL_PRELOAD_CONNECTIONS_H
#define TRAIL_PRELOAD_CONNECTIONS_H

#include "preload/descriptors.h"

/* Before connect(): whether it is to a port where this process listens. */
bool connection_is_own(const struct sockaddr *address, socklen_t size);

/* There has been such a connect(). */
extern bool connections_own __attribute__((visibility("hidden")));

/* After connect() to an own port, and after accept() if connections_own. */
void connection_made(int fd, bool accepted);

#endif
