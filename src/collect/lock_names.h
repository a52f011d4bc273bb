/* Names of locks and other objects, by their variable or where they were first locked, and the
 * places of their holds. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct collect;
struct op;

/* An object's name, "stats_mu" or "0x7f...", with the process's if the trace has several. Lives as
 * long as the collector; the name of a shared object, as long as the trace. */
const char *lock_names_object(struct collect *c, uint64_t address);

/*
 * The same for a lock. A lock without a symbol is named after where it was first seen locked:
 * "0x7f... (first seen locked in Queue::push queue.cc:41)", by a hold that began at `pc` or, if
 * that is not known, by a wait with the stack `key`. A wait does not give a place to a lock that
 * processes share, because the holder may be another process: without `pc` such a lock has no place
 * until a hold gives it one.
 */
const char *lock_names_lock(struct collect *c, uint64_t address, uint64_t pc, uint64_t key);

/*
 * Names a shared lock after a hold that began at `time`. Processes are not read in order of time:
 * an earlier hold replaces the name given by a later one.
 */
void lock_names_shared(struct collect *c, uint64_t address, uint64_t pc, uint64_t key,
                       uint64_t time);

/* Whether the object has a name already; for a shared lock, whether that name is final. */
bool lock_names_has(struct collect *c, uint64_t address);
bool lock_names_has_place(struct collect *c, uint64_t address);

/* Returns a locked file's name from the last wait for it; NULL: nothing has waited for it. */
const char *lock_names_file(const struct collect *c, uint64_t file);

/* Sets a locked file's name, taken from a wait for it. */
void lock_names_file_is(struct collect *c, uint64_t file, const char *name);

/* Changes the wait, object and name of an op that begins a wait to what its stack shows
 * (words/runtimes.h). */
void lock_names_wait(struct collect *c, struct op *op);

/* Adds to the name of a lock within a library: "0x7f3a10 (stream /var/log/x)". */
void lock_names_within(struct collect *c, uint64_t object, const char *where);

/* The same for a wait outside of wrapped calls, by the function that the program has called:
 * "0x7f3a10 (in fputs)". */
void lock_names_unwrapped(struct collect *c, const struct op *op);

/* Whether a stack waits for a lock whose holder is not recorded anywhere. */
bool lock_names_hides_holder(struct collect *c, uint64_t key);

/* Whether a stack waits for a condition: it has released its mutex, whose guard is still there. */
bool lock_names_gives_up(struct collect *c, uint64_t key);

/* The object has ended: later objects at its address are different. */
void lock_names_forget(struct collect *c, uint64_t address);

/* Returns the trace's ID for the stack of a lock's acquisition: its PC, below the frames that it
 * shares with the release's stack. */
uint64_t lock_names_hold(struct collect *c, uint64_t pc, uint64_t release);
