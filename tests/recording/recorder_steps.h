/* How often the recorder has slept between its steps. */
#pragma once

#include <stdio.h>
#include <sys/types.h>

/* Returns how often it has gone to sleep, once a step; 0 if it has ended. */
static inline long recorder_steps(pid_t recorder)
{
    char path[64], line[256];
    long count = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)recorder);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        (void)sscanf(line, "voluntary_ctxt_switches: %ld", &count);
    if (file)
        fclose(file);
    return count;
}
