/*
 * Processes that are not recorded although a recorded one has started them: which they are, and why
 * they did not load the recorder. All of it is read from /proc (proc(5)) while they run.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "wire/missed.h"

enum wire_missed missed_why(pid_t pid);

/*
 * Calls `found` for each child of a process's first thread that executed a program of its own and
 * started a while ago. A child that has not executed one is replaced by its children: nothing else
 * is known about what clone(2) made without the C library. Skips those that `is_recorded`.
 */
struct missed_search {
    bool (*is_recorded)(const void *context, pid_t pid);
    void (*found)(void *context, pid_t pid, const char *name);
    void *context;
};
void missed_children(pid_t pid, const struct missed_search *search);
