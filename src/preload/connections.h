/*
 * TCP connections of the process to itself. Both ends are descriptors of the process, as with a
 * socket pair, so a write to one is known to wake a thread that reads from the other.
 *
 * The ends are matched by their ports. One is registered on accept, the other on connect; the first
 * waits in a short list for the second. A program that never connects to its own ports pays for two
 * checks.
 */
#pragma once

#include "preload/descriptors.h"

/* Whether a connect() about to be made is to a port on which this process listens. */
bool connection_is_own(const struct sockaddr *address, socklen_t size);

/* Whether such a connect() has happened. */
extern bool connections_own __attribute__((visibility("hidden")));

/* Called after connect() to a port of the process, and after accept() if connections_own. */
void connection_made(int fd, bool accepted);

/* Forgets all ports and ends. No wrapper may be running. */
void connections_forget(void);
