/*
 * Reading ahead: a thread of the reader decodes the next events while the caller processes the
 * previous ones.
 *
 * Events are put into a ring of blocks. The tables and texts they refer to stay in the reader:
 * before any of these change (a new generation, a table that grows), the thread waits until the
 * caller is done with all events delivered so far, that is, until it asks for the next ones.
 * Handles therefore keep their meaning, and callers need no lock.
 */
#pragma once

#include <trail/read.h>

struct ahead;

/*
 * Starts the thread and sets reader->ahead. Does nothing if out of memory.
 */
void ahead_start(trail_reader *reader);

/* Stops and joins the thread, at the latest at the end of its current generation. Frees `ahead`. */
void ahead_stop(struct ahead *ahead);

/* Like trail_reader_next_batch; called by the caller's thread. */
long ahead_next(struct ahead *ahead, const trail_event **events);

/* See trail_reader_lend and trail_reader_has_work. */
void ahead_lend(struct ahead *ahead, bool (*work)(void *context), void *context);
void ahead_has_work(struct ahead *ahead);

/* Returns the reader's stats at the end of the events that ahead_next returned last. */
const trail_reader_stats *ahead_stats(const struct ahead *ahead);

/*
 * Called by the thread: waits until the caller is done with all delivered events. Returns false if
 * the reader is being closed.
 */
bool ahead_settle(struct ahead *ahead);
