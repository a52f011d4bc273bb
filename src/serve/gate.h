/*
 * Gate: limits connections that have not authenticated. Any user of the machine can connect to a
 * server on loopback; only the token proves that a connection is the owner's. A connection that has
 * not presented it
 *
 *   - is shut GATE_DEADLINE_NS after it began, whatever it has sent: sending one byte per second does
 *     not keep it open;
 *   - occupies one of GATE_UNKNOWN places. When all are taken, a new connection replaces the oldest
 *     one that has had GATE_GRACE_NS and has no unread data. Until there is one, new connections,
 *     the owner's among them, wait in the kernel's accept queue; the owner's turn comes soon, and
 *     then leaves it enough time for its header, which it sends at once.
 *
 * All connections together are limited to GATE_PLACES. Shutting is shutdown(2): the server closes
 * the descriptor.
 *
 * All functions may be called from any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { GATE_PLACES = 256, GATE_UNKNOWN = GATE_PLACES / 2 };

#define GATE_DEADLINE_NS (INT64_C(2) * 1000000000)
#define GATE_GRACE_NS    (INT64_C(100) * 1000000)

struct gate;
struct gate_place;

/* Starts the timer thread. Returns NULL with errno set on error. */
struct gate *gate_open(void);

/* Called after the last gate_leave. Accepts NULL. */
void gate_close(struct gate *gate);

/*
 * Called when a connection begins. Waits for a place, at most about GATE_DEADLINE_NS. Returns NULL
 * if there is none; the connection has then been shut.
 */
struct gate_place *gate_enter(struct gate *gate, int fd);

/* Called when the connection has presented the token. Accepts NULL. */
void gate_know(struct gate *gate, struct gate_place *place);

/* Called when the connection ends, before its descriptor is closed. Accepts NULL. */
void gate_leave(struct gate *gate, struct gate_place *place);
