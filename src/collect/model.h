/*
 * The parts of the model: model.c takes ops and switches in the order of time; ops.c knows what an op means;
 * states.c what a goroutine and a P are, and writes the event of each change.
 */
#ifndef TRAIL_COLLECT_MODEL_H
#define TRAIL_COLLECT_MODEL_H

#include "collect/state.h"

/* MARK: Waits (shm/waits.def) */

struct wait_kind {
    uint32_t group; /* enum shm_group */
    const char *words, *reason;
};

extern const struct wait_kind wait_kinds[SHM_WAITS];

bool wait_is_syscall(uint8_t wait);
/* Those that are spent on a CPU, at first at least: that nobody was switched out tells nothing. */
bool wait_is_spinning(uint8_t wait);

/* MARK: Events */

/* The thread's ID as an M: its number, or another one if a thread that lives has that already. */
uint64_t state_m(struct collect *c, struct thread *thread);
void state_event(struct collect *c, struct thread *thread, int64_t ns, unsigned type,
                 unsigned count, const uint64_t *args);

#define EVENT(c, thread, ns, type, ...)                                                            \
    do {                                                                                           \
        const uint64_t args_[] = {__VA_ARGS__};                                                    \
        state_event(c, thread, ns, type, sizeof args_ / sizeof args_[0], args_);                   \
    } while (0)

/* MARK: States */

/* A wait's moments on a CPU are not shown, but counted: ends one. */
void state_end_moment(struct oncpu *o, int64_t ns);

/* Changes the state, without an event. */
void state_enter(struct collect *c, struct thread *thread, enum g_state state, int64_t ns);

void state_take_proc(struct collect *c, struct thread *thread, int64_t ns);
void state_give_proc(struct collect *c, struct thread *thread, int64_t ns);

/* `waker`, with its stack, lets in a thread that waits. */
void state_unblock(struct collect *c, struct thread *waker, struct thread *thread, int64_t ns,
                   uint64_t stack);

/* Whatever it was doing: it runs now. */
void state_run(struct collect *c, struct thread *thread, int64_t ns);

/* MARK: Ops */

/* Takes over what the op owns. */
void op_do(struct collect *c, struct thread *thread, struct op *op, int64_t ns);

/* It waits from now on, for what the op says. */
void op_block(struct collect *c, struct thread *thread, const struct op *op, int64_t ns);

/* At the end of a wait, with the op that tells of it; NULL: it has not been told yet. */
void op_go_on(struct collect *c, struct thread *thread, const struct op *wake, int64_t ns);
void op_exit(struct collect *c, struct thread *thread, int64_t ns);

#endif
