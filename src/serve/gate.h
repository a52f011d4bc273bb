/*
 * Gate: which connections may stay. Anybody on the machine can open connections to a server on its
 * loopback; only the token says who its owner is. A connection that has not shown it
 *
 *   - is shut GATE_DEADLINE_NS after it began, whatever it has sent until then: a byte a second
 *     keeps none open;
 *   - has one of GATE_UNKNOWN places. When they are taken, a new one gets that of the oldest whose
 *     GATE_GRACE_NS are over and from which nothing is left to be read. The others wait for that in
 *     the queue of the kernel, the owner's among them: it has its turn soon, and then time enough
 *     for its header, which it sends at once;
 *
 * and all are at most GATE_PLACES. Shutting is shutdown(2): the server closes the descriptor.
 *
 * Threads: all functions may be called by any.
 */
#ifndef TRAIL_SERVE_GATE_H
#define TRAIL_SERVE_GATE_H

#include <stdbool.h>
#include <stdint.h>

enum { GATE_PLACES = 256, GATE_UNKNOWN = GATE_PLACES / 2 };

#define GATE_DEADLINE_NS (INT64_C(2) * 1000000000)
#define GATE_GRACE_NS    (INT64_C(100) * 1000000)

struct gate;
struct gate_place;

/* Starts its thread. NULL with errno set. */
struct gate *gate_open(void);

/* After the last gate_leave. Accepts NULL. */
void gate_close(struct gate *gate);

/* A connection began. Waits for its place, at most for GATE_DEADLINE_NS or so. NULL: there is none,
 * and it is shut. */
struct gate_place *gate_enter(struct gate *gate, int fd);

/* It has shown the token. Accepts NULL. */
void gate_know(struct gate *gate, struct gate_place *place);

/* It ends; called before its descriptor is closed. Accepts NULL. */
void gate_leave(struct gate *gate, struct gate_place *place);

#endif
