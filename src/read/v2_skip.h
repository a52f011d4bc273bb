/*
 * v2 skip: where in a trace a time is, from the headers of its batches alone. Each generation stands
 * for itself, so that reading may begin with any (§6.7); what is in front is not even touched but
 * for a page a batch.
 */
#ifndef TRAIL_READ_V2_SKIP_H
#define TRAIL_READ_V2_SKIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct v2_skip {
    size_t size;      /* of what can be skipped */
    int64_t first_ns; /* when the first generation of all begins */
};

/*
 * `data` is the trace behind its header. Finds the last generation that begins so long after the
 * first that no event of those in front of it can be later. False: it is the first, or the trace is
 * damaged before that is known.
 */
bool v2_skip_find(const uint8_t *data, size_t size, int version, int64_t from_ns,
                  struct v2_skip *skip);

#endif
