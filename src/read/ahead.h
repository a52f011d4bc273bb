/*
 * Reading ahead: a thread of the reader's own decodes the next events while its caller looks at the last ones.
 *
 * Events are copied into a ring of blocks. What they refer to, tables and texts, stays the reader's: before
 * any of it changes place (another generation, a table that grows) the thread waits until all events that it
 * gave are done with, which they are when the caller asks for the next ones. So callers see what they see
 * without the thread, and need no lock.
 */
#ifndef TRAIL_READ_AHEAD_H
#define TRAIL_READ_AHEAD_H

#include <trail/read.h>

struct ahead;

/* Starts the thread and sets reader->ahead; does neither without a second processor, or memory. */
void ahead_start(trail_reader *reader);

/* Stops it, at the latest after the generation that it is in. */
void ahead_stop(struct ahead *ahead);

/* As trail_reader_next_batch, by the caller. */
long ahead_next(struct ahead *ahead, const trail_event **events);

/* Of the reader when it had delivered what ahead_next gave last. */
const trail_reader_stats *ahead_stats(const struct ahead *ahead);

/* By the thread: waits until everything that it gave is done with. False: nobody wants more. */
bool ahead_settle(struct ahead *ahead);

#endif
