/* Waiters that are certainly waiting: before a thread ends a wait, it sees that the waiter sleeps
 * and then waits another HOLD_MS. */
#pragma once

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <time.h>

#include "asleep.h"

enum { HOLD_MS = 50 };

/* Set by the waiter before it waits. */
static volatile pid_t waiter_tid;

static void expect(int right)
{
    if (!right)
        abort();
}

static void pass(int ms)
{
    struct timespec left = {ms / 1000, ms % 1000 * 1000000L};
    while (nanosleep(&left, &left) != 0)
        ;
}

/* Returns when the waiter sleeps. */
static void await_waiter(void)
{
    while (waiter_tid == 0 || !is_asleep(waiter_tid))
        sched_yield();
}

/* Returns HOLD_MS after the waiter was seen asleep. */
static void keep_waiting(void)
{
    await_waiter();
    pass(HOLD_MS);
}
