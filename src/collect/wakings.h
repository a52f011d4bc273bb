/*
 * The kernel's tracepoint sched_waking: a waiting thread is woken, and is ready from then on. The
 * event belongs to whatever runs on the CPU at that moment, since for example the timer of a sleep
 * interrupts any program; so all CPUs are watched, and wake-ups of other programs dropped. This
 * requires root or CAP_PERFMON, and tracefs to be mounted.
 */
#pragma once

#include <stdint.h>

struct wakings;

enum waking_kind {
    WAKING,        /* the thread was woken */
    WAKINGS_LOST,  /* wake-ups of any thread are lost from here ... */
    WAKINGS_FOUND, /* ... to here */
};

/* `tid` is 0 for a loss. */
typedef void wakings_take_fn(void *context, int64_t ns, uint32_t tid, enum waking_kind kind);

/* `clock` is the clock ID for the records' times. NULL: they cannot be read. */
struct wakings *wakings_open(int32_t clock);

/* Calls `take` for each new record before `before_ns`. */
void wakings_read(struct wakings *wakings, int64_t before_ns, wakings_take_fn *take, void *context);

/* Returns how many wake-ups the kernel had no room for, of all programs. */
uint64_t wakings_lost(const struct wakings *wakings);

void wakings_close(struct wakings *wakings);
