/*
 * Finds the libraries that the recorder loads into programs: libtrail-preload.so, libtrail-ompt.so
 * for OpenMP, and libtrail-heap.so.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct preload {
    char path[PATH_MAX];   /* absolute, valid in LD_PRELOAD; "": not found */
    char openmp[PATH_MAX]; /* libtrail-ompt.so next to it, for OMP_TOOL_LIBRARIES; "": none */
    char wrong[2 * PATH_MAX + 256]; /* if not found: the error, and what to do */
};

/*
 * Finds libtrail-preload.so: TRAIL_PRELOAD if that is set; otherwise relative to the running
 * command, as installed or as built, so that the tree may be moved. Returns false with `wrong` set.
 */
bool preload_path(struct preload *preload);

/* Finds LLVM's OpenMP library, which programs built with gcc can use, too. Returns false if not
 * installed. */
bool preload_libomp(char *path, size_t size);
/* Like preload_path, for libtrail-heap.so next to it, which also wraps malloc. */
bool preload_path_with_heap(struct preload *preload);
