/*
 * v2 skip: where in a trace a time is, from the headers of its batches alone. Each generation stands
 * for itself, so that reading may begin with any (§6.7); of what is in front only the headers are
 * read.
 */
#ifndef TRAIL_READ_V2_SKIP_H
#define TRAIL_READ_V2_SKIP_H

#include <stdbool.h>
#include <stdint.h>
#include <trail/read.h>

struct v2_skip {
    uint64_t size;    /* of what can be skipped */
    int64_t first_ns; /* when the first generation of all begins */
};

/*
 * `source` stands behind the header of the trace, and stays there. Finds the last generation that
 * begins so long after the first that no event of those in front of it can be later. False: it is the
 * first, or the source cannot be looked at, or the trace is damaged before that is known.
 */
bool v2_skip_find(const trail_source *source, int version, int64_t from_ns, struct v2_skip *skip);

#endif
