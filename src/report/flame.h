/*
 * Flame graphs: the stacks of a profile as a tree with the root on top, each frame as wide as its
 * share. Frames too narrow to see are omitted; their share remains in the frame above.
 */
#pragma once

#include <trail/analyze.h>

#include "base/out.h"

struct flame_form {
    const char *name; /* ID of the element, unique in the document: "flame-cpu" */
    const char *title;
    /* Off-CPU profiles: the top frames are the reasons of waits, and wakers are left out. */
    bool by_reason;
    bool counts; /* count samples, not time */
};

/* Writes the graph, and a table of the functions with the largest own share. Returns false on out
 * of memory. */
bool flame_write(const trail_analysis *answers, const trail_profile *profile,
                 const struct flame_form *form, struct out *out);
