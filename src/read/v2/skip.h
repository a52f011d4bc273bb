/*
 * v2 skip: finds the position of a time in a trace from batch headers alone. Each generation is
 * self-contained, so that reading may begin with any (§6.7); only headers of the skipped ones are
 * read.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <trail/read.h>

struct v2_skip {
    uint64_t size;    /* bytes that can be skipped */
    int64_t first_ns; /* start of the first generation */
};

/*
 * `source` must be after the trace's header, and does not move. Finds the last generation that
 * begins so long after the first that no event of earlier generations is after from_ns. Returns
 * false if that is the first one, if the source cannot be read at an offset, or if the trace is
 * damaged before.
 */
bool v2_skip_find(const trail_source *source, int version, int64_t from_ns, struct v2_skip *skip);
