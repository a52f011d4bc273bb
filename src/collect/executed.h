/*
 * Programs that recorded processes have executed in child processes, by vfork or posix_spawn. Those
 * that load the recorder claim an area; nothing else is known about the rest: static or privileged
 * programs, and programs started with another environment.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "collect/area.h"
#include "collect/missed.h"

struct executed_program {
    uint32_t pid;
    enum wire_missed why;
    char name[sizeof((struct shm_executed *)0)->name]; /* as given by the program: any bytes */
};

/* Those that have not claimed an area yet. */
struct executed_list {
    struct executed_program *items;
    size_t count, capacity;
    uint64_t unknown; /* too many at once, or out of memory: not known whether they are recorded */
};

/* Adds what a process has executed since the last call, except programs that are already
 * recorded. */
void executed_take(struct executed_list *list, struct area *area,
                   bool (*is_recorded)(const void *context, pid_t pid), const void *context);

/* Adds a program that was found running without the recorder, unless it is listed, and finds out
 * why it has none. */
void executed_found(struct executed_list *list, pid_t pid, const char *name);

/* The process with this PID has claimed an area. */
void executed_arrived(struct executed_list *list, pid_t pid);

void executed_free(struct executed_list *list);
