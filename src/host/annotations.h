/*
 * How a program's annotations enter the trace that `trail record` makes of it: the library that
 * `trail record` loads into the program exports one object of this type, and libtrail-record calls
 * it while the program has no trace of its own on.
 */
#pragma once

#include <stdint.h>

#define ANNOTATIONS_SYMBOL  "trail_preload_annotations"
#define ANNOTATIONS_VERSION 1

struct annotations {
    uint32_t version;
    uint64_t (*task_begin)(uint64_t parent, const char *name); /* 0: not recorded */
    void (*task_end)(uint64_t task);
    void (*region_begin)(uint64_t task, const char *name);
    void (*region_end)(uint64_t task, const char *name);
    void (*log)(uint64_t task, const char *category, const char *message);
};

/* Set before main, if `trail record` records this process; otherwise NULL. */
extern const struct annotations *annotations __attribute__((visibility("hidden")));
