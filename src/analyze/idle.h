/*
 * Waits for work, such as those of a pool's worker for its next job: waits of a kind that can be
 * one (WIRE_WAIT_IDLE), to which a goroutine returned at least IDLE_RETURNS times at one place, and
 * which make up more than half of its life. The wait that is open at its end counts as a return;
 * its time counts neither as waiting nor as life.
 *
 * They are judged when the goroutine ends.
 */
#pragma once

#include <stdbool.h>

#include "base/idmap.h"
#include "base/intern.h"

enum { IDLE_RETURNS = 3 };

/* Waits of a goroutine of one kind at one place. */
struct idle_place {
    uint32_t user;  /* given by the owner when the place was made */
    uint64_t count; /* number and total of ended waits */
    int64_t ns;
    size_t next; /* of the same goroutine, + 1 */
    bool listed; /* in the goroutine's list; not after it was judged */
};

/* Zero-initialised is empty and ready. */
struct idle {
    struct intern keys; /* of goroutine, place and kind; the number is the index in `places`, + 1 */
    struct idle_place *places;
    size_t capacity;
    struct idmap first; /* goroutine -> its first place, + 1, as a pointer */
};

void idle_free(struct idle *idle);
void idle_clear(struct idle *idle);

/* Returns the number of a place, made if it is new; 0 if out of memory. */
size_t idle_place(struct idle *idle, int64_t goroutine, uint32_t place, uint32_t kind,
                  uint32_t user);

/* Counts a wait that has ended. */
void idle_count(struct idle *idle, size_t number, int64_t ns);

/*
 * A goroutine that ends, after `life` ns; for the last `open_ns` of it at place `open` (0: none).
 */
struct idle_end {
    int64_t goroutine, life, open_ns;
    size_t open;
};

/* Forgets the goroutine, and calls `found` with each of its places whose waits were for work.
 * Returns false if `found` does. */
bool idle_judge(struct idle *idle, const struct idle_end *end,
                bool (*found)(void *context, const struct idle_place *place), void *context);
