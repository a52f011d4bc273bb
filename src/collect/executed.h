/*
 * Programs that recorded processes have executed in others, by vfork or posix_spawn. One that loads
 * the recorder claims an area; of the rest nothing else is known: static and privileged programs,
 * and those with another environment.
 */
#ifndef TRAIL_COLLECT_EXECUTED_H
#define TRAIL_COLLECT_EXECUTED_H

#include <stdbool.h>
#include <sys/types.h>

#include "collect/area.h"
#include "collect/missed.h"

struct executed_program {
    uint32_t pid;
    enum wire_missed why;
    char name[sizeof((struct shm_executed *)0)->name]; /* as the program gave it: any bytes */
};

/* Those that have not claimed an area yet. */
struct executed_list {
    struct executed_program *items;
    size_t count, capacity;
    uint64_t unknown; /* too many at once, or no memory: whether they are recorded is not known */
};

/* Adds what a process has executed since the last call, unless it is recorded already. */
void executed_take(struct executed_list *list, struct area *area,
                   bool (*is_recorded)(const void *context, pid_t pid), const void *context);

/* One was found running without the recorder: adds it if it is not there yet, and finds out why. */
void executed_found(struct executed_list *list, pid_t pid, const char *name);

/* The process with this PID has claimed an area. */
void executed_arrived(struct executed_list *list, pid_t pid);

void executed_free(struct executed_list *list);

#endif
