/* Names of locks and other objects, by their variable or where they were first locked, and the
 * places of their holds. */
#ifndef TRAIL_COLLECT_LOCK_NAMES_H
#define TRAIL_COLLECT_LOCK_NAMES_H

#include <stdbool.h>
#include <stdint.h>

struct collect;
struct op;

/* An object's name, "stats_mu" or "0x7f...", in a trace of several processes with its own. Lives as
 * long as the collector; of what processes share, as the trace. */
const char *lock_names_object(struct collect *c, uint64_t address);

/*
 * The same of a lock. One without a symbol is named after where it was first seen locked: "0x7f...
 * (first seen locked in Queue::push queue.cc:41)", by a hold that began at `pc` or, if that is not
 * known, by a wait with the stack `key`. The wait does not name a lock that processes share, as its
 * holder may be in another one: without `pc` that has no place, until a hold gives it one.
 */
const char *lock_names_lock(struct collect *c, uint64_t address, uint64_t pc, uint64_t key);

/*
 * Names a lock that processes share after a hold that began at `time`. Processes are not read in
 * the order of time: an earlier hold renames what a later one has named.
 */
void lock_names_shared(struct collect *c, uint64_t address, uint64_t pc, uint64_t key,
                       uint64_t time);

/* Whether the object has a name already; of a lock that processes share, whether that is final. */
bool lock_names_has(struct collect *c, uint64_t address);
bool lock_names_has_place(struct collect *c, uint64_t address);

/* A locked file's name, as the last wait for it has it; NULL: nothing has waited for it. */
const char *lock_names_file(const struct collect *c, uint64_t file);

/* A wait has this name for a locked file. */
void lock_names_file_is(struct collect *c, uint64_t file, const char *name);

/* Changes the wait of an op that begins one, its object and its name to what its stack shows
 * (words/runtimes.h). */
void lock_names_wait(struct collect *c, struct op *op);

/* Whether a stack waits for a lock of which nothing records the holder. */
bool lock_names_hides_holder(struct collect *c, uint64_t key);

/* Whether a stack waits for a condition, and has given its mutex up, whose guard is still there. */
bool lock_names_gives_up(struct collect *c, uint64_t key);

/* The object has ended: later objects at its address are different. */
void lock_names_forget(struct collect *c, uint64_t address);

/* The stack of a lock's acquisition, as the trace's ID: its PC, within what the release's stack has
 * in common with it. */
uint64_t lock_names_hold(struct collect *c, uint64_t pc, uint64_t release);

#endif
