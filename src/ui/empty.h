/* What a command prints for an empty answer: what is missing, and how to record it. */
#pragma once

#include <stdio.h>
#include <trail/analyze.h>

#define EMPTY_TASKS                                                                                \
    "No user tasks. A program has them if it calls trace.NewTask (Go) or trail_task_begin (C).\n"
#define EMPTY_REGIONS                                                                              \
    "No user regions. A program has them if it calls trace.StartRegion (Go) or "                   \
    "trail_region_begin (C).\n"
#define EMPTY_LOCKS "No waits for locks. --channels includes waits for channels and select."
#define EMPTY_GC    "No garbage collection: no cycle ran, or the program is not written in Go.\n"

/* Prints that a profile has no samples. */
static inline void empty_profile(trail_profile_type type)
{
    static const char *const texts[TRAIL_PROFILES] = {
        [TRAIL_PROFILE_NET] = "No waits for the network or pipes ended.",
        [TRAIL_PROFILE_SYNC] = "No waits for locks or channels ended.",
        [TRAIL_PROFILE_SYSCALL] = "No blocking system calls.",
        [TRAIL_PROFILE_SCHED] = "Nothing was ready before it ran.",
        [TRAIL_PROFILE_CPU] = ("No CPU samples. Record with --cpu-samples=100 (C), or with "
                               "pprof.StartCPUProfile while tracing (Go 1.19 and later)."),
        [TRAIL_PROFILE_RUNNING] = "Nothing ran.",
        [TRAIL_PROFILE_OFFCPU] = "No waits ended.",
    };
    printf("%s\n", texts[type]);
}
