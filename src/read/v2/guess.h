/*
 * v2 guess: the state of the model at the start of a generation, as far as the generation itself
 * shows it, so that it can be ordered before the previous ones are.
 *
 * Each generation has the status of every goroutine and P that it uses. An order with a guess
 * assumes that the first status of an unknown one is the state in which the previous generation
 * left it. It notes this and all its other assumptions: that a goroutine or task that it sees begin
 * did not exist before, which P and goroutine a thread had, which ranges were open. Once the
 * previous generation is ordered, v2_guess_holds compares the notes with its final state. If they
 * agree, the order with the guess has taken the same steps as one that continued from that state,
 * and v2_guess_join makes its final state the common one. If not, or if the order has failed, the
 * generation is ordered again from that state. An assumption that has no simple note makes the
 * order fail; that only costs time.
 */
#pragma once

#include "base/arena.h"
#include "read/v2/order.h"

/* A region that ended but did not begin in the generation; the name is a copy. */
struct v2_region_end {
    struct v2_region_end *next;
    uint64_t task;
    size_t size;
    char name[];
};

/* A goroutine or P that exists at the start. */
struct v2_guessed {
    uint8_t status;
    uint8_t range;                      /* the type of its open range; 0: none */
    struct v2_region_end *ends, **last; /* of a goroutine, in order */
};

/* Zero-initialized: ready to use. Used by the thread that has the order. */
struct v2_guess {
    struct arena arena;
    struct idmap gs, ps;      /* -> struct v2_guessed */
    struct idmap ms;          /* threads with events -> struct v2_guessed_m */
    struct idmap begun;       /* goroutines that were created */
    struct idmap begun_tasks; /* and tasks */
    uint64_t *ended_tasks;    /* that did not begin in the generation */
    size_t ended_count, ended_capacity;
    bool knows_gc; /* the generation has shown these: */
    enum v2_gc gc;
    uint64_t gc_seq;
};

void v2_guess_free(struct v2_guess *guess);

/*
 * Reads, from the statuses before a thread's first other event, what the thread ran and held. Call
 * once for each thread with events, before its first is offered. Returns false if out of memory.
 */
bool v2_guess_thread(struct v2_order *order, struct v2_m *m, const uint8_t *at, const uint8_t *end);

/* Return an unknown goroutine or P at its first status; NULL if it was known, or out of memory. */
struct v2_g *v2_guess_g(struct v2_order *order, int64_t id, unsigned status);
struct v2_p *v2_guess_p(struct v2_order *order, int64_t id, unsigned status);

/* Note that a goroutine or task begins. Return false if out of memory. */
bool v2_guess_begins(struct v2_guess *guess, int64_t goroutine);
bool v2_guess_task_begins(struct v2_guess *guess, uint64_t task);

/* Notes that a task ends that did not begin in the generation. Returns false if out of memory. */
bool v2_guess_task_ends(struct v2_guess *guess, uint64_t task);

/* The same for a region of a goroutine. */
bool v2_guess_region_ends(struct v2_guess *guess, int64_t goroutine, uint64_t task,
                          trail_string name);

/*
 * Returns whether the range of a goroutine or P in `of` (guess->gs or ps) may have been open
 * before, and then notes it.
 */
bool v2_guess_range(const struct idmap *of, int64_t id, struct v2_ranges *ranges, uint8_t type);

/* Sets the garbage collector's state to the one that its first event, with its number, follows. */
void v2_guess_gc(struct v2_order *order, uint8_t type, uint64_t seq);

/* Whether the state of `before` agrees with the guess. */
bool v2_guess_holds(const struct v2_guess *guess, const struct v2_order *before,
                    const struct v2_order *after);

/*
 * Applies the steps of *after to *joint, whose state agrees with the guess, and empties *after.
 * Returns false if out of memory; the states are then lost.
 */
bool v2_guess_join(const struct v2_guess *guess, struct v2_order *joint, struct v2_order *after);
