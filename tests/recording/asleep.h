/* Waits until a thread certainly sleeps in the kernel, by polling /proc. */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/* Returns whether the thread sleeps in the kernel, according to a file in /proc. */
static inline bool sleeps_by(const char *path)
{
    char state = 0;
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
        state = 0;
    fclose(file);
    return state == 'S';
}

static inline bool is_asleep(pid_t tid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)tid);
    return sleeps_by(path);
}

/* The thread writes `tid` when it starts; until then it is 0. */
static inline void until_asleep(const pid_t *tid)
{
    while (!__atomic_load_n(tid, __ATOMIC_ACQUIRE) ||
           !is_asleep(__atomic_load_n(tid, __ATOMIC_ACQUIRE)))
        sched_yield();
}
