/*
 * How often the recorder has slept between its steps. It also sleeps while its process that reads programs
 * (symbols/symbol_process.h) answers, for which that process sleeps once as well.
 */
#ifndef TESTS_RECORDING_RECORDER_STEPS_H
#define TESTS_RECORDING_RECORDER_STEPS_H

#include <stdio.h>
#include <string.h>
#include <sys/types.h>

/* Returns how often the main thread of a process has gone to sleep; 0 if it has ended. */
static inline long sleeps_of(long pid)
{
    char path[64], line[256];
    long count = 0;
    snprintf(path, sizeof path, "/proc/%ld/status", pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        (void)sscanf(line, "voluntary_ctxt_switches: %ld", &count);
    if (file)
        fclose(file);
    return count;
}

static inline int reads_programs(long pid)
{
    char path[64], name[32] = "";
    snprintf(path, sizeof path, "/proc/%ld/comm", pid);
    FILE *file = fopen(path, "re");
    int read = file && fgets(name, sizeof name, file);
    if (file)
        fclose(file);
    return read && strcmp(name, "trail-symbols\n") == 0;
}

/* Returns a number that each step of the recorder raises by one; it may fall when the other process starts. */
static inline long recorder_steps(pid_t recorder)
{
    char path[64];
    long steps = sleeps_of(recorder), child;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)recorder, (int)recorder);
    FILE *file = fopen(path, "re");
    while (file && fscanf(file, "%ld", &child) == 1)
        steps -= reads_programs(child) ? sleeps_of(child) : 0;
    if (file)
        fclose(file);
    return steps;
}

#endif
