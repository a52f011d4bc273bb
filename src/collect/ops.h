/* What an op means for its thread, and for the threads that it wakes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct collect;
struct op;
struct thread;

/*
 * Whether an op is the first to wait for a shared lock and it is not known where the lock was
 * taken: the holder may have released it since its records were read.
 */
bool op_lacks_name(struct collect *c, const struct op *op);

/* Executes the op at a time of the trace. Takes ownership of what the op owns. */
void op_do(struct collect *c, struct thread *thread, struct op *op, int64_t ns);

/* The thread waits from now on, as the op describes. */
void op_block(struct collect *c, struct thread *thread, const struct op *op, int64_t ns);

/* The thread's wait ends; `wake` is the op at that end, NULL if not known yet. */
void op_go_on(struct collect *c, struct thread *thread, const struct op *wake, int64_t ns);

/* The same, but the thread is ready and not yet running. */
void op_ready(struct collect *c, struct thread *thread, const struct op *wake, int64_t ns);

/* Reports the thread's wait if it is slow: see slow.h. It may continue although it has ended, if
 * the thread was woken in vain. */
void op_look_at_wait(struct collect *c, struct thread *thread, int64_t lasted_ns, bool ended);

/* Reports the open waits that are slow at `ns`. */
void op_look_at_open_waits(struct collect *c, int64_t ns);

void op_exit(struct collect *c, struct thread *thread, int64_t ns);
