/*
 * The parts of the feed: feed.c drains records and makes ops of them; releases.c finds what ended each wait; threads.c
 * has the threads and their ops.
 */
#ifndef TRAIL_COLLECT_FEED_H
#define TRAIL_COLLECT_FEED_H

#include "collect/state.h"

/* MARK: Threads and their ops */

/* NULL, here and below: memory is out, which has been said. */
struct thread *thread_new(struct collect *c, uint32_t slot, uint64_t serial);
struct op *op_add(struct collect *c, struct thread *thread, enum op_kind kind, uint64_t time);

/* At its time, which may be before that of others. */
struct op *op_insert(struct collect *c, struct thread *thread, enum op_kind kind, uint64_t time);

/* The number of the op that comes next; the op with a number, NULL if the model has it already. */
uint64_t op_number(const struct thread *thread);
struct op *op_at(struct thread *thread, uint64_t number);

/* MARK: Releases */

struct release *release_add(struct collect *c, struct thread *thread,
                            const struct shm_record *record);

/* Those of before that time. */
void releases_forget(struct collect *c, uint64_t before);

/* Finds what ended the waits that ended before that time. */
void match_ended(struct collect *c, uint64_t time);

#endif
