/*
 * Flame graphs: the stacks of a profile as a tree, the root on top, each frame as wide as its share.
 * Frames too narrow to be seen are left out; what they add up to stays in the frame above.
 */
#ifndef TRAIL_REPORT_FLAME_H
#define TRAIL_REPORT_FLAME_H

#include <trail/analyze.h>

#include "base/out.h"

struct flame_look {
    const char *name; /* of the element, unique in the document: "flame-cpu" */
    const char *title;
    /* Off-CPU profiles: the frames on top are what was waited for, and wakers are left out. */
    bool by_reason;
    bool counts; /* shares are of samples, not of time */
};

/* Writes the graph and a table of the functions with most of their own. False when memory is out. */
bool flame_write(const trail_analysis *answers, const trail_profile *profile,
                 const struct flame_look *look, struct out *out);

#endif
