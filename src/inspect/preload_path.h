/*
 * Where libtrail-preload.so is, which the recorder has loaded into programs, and libtrail-ompt.so, which it has
 * loaded into OpenMP.
 */
#ifndef TRAIL_INSPECT_PRELOAD_PATH_H
#define TRAIL_INSPECT_PRELOAD_PATH_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct preload {
    char path[PATH_MAX];   /* absolute, fit for LD_PRELOAD; "": there is none */
    char openmp[PATH_MAX]; /* libtrail-ompt.so beside it, fit for OMP_TOOL_LIBRARIES; "": none */
    char wrong[2 * PATH_MAX + 256]; /* then: what is wrong, and what to do */
};

/*
 * TRAIL_PRELOAD if it is set; else beside the command, as it was installed or built: found from
 * the place of the running file, so that a tree may be moved. False: see `wrong`.
 */
bool preload_path(struct preload *preload);

/* LLVM's OpenMP run-time library, which serves gcc's programs, too. False: it is not installed. */
bool preload_libomp(char *path, size_t size);
/* The same, of libtrail-heap.so, which wraps malloc as well: it is beside the other. */
bool preload_path_with_heap(struct preload *preload);

#endif
