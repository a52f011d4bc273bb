/*
 * When threads or Ps ran goroutines, over the time: a line each.
 */
#ifndef TRAIL_CLI_RUNNING_H
#define TRAIL_CLI_RUNNING_H

#include "cli/analysis.h"

struct running {
    int64_t id, ns;
    const int64_t *slices;
};

/* Changes the order of the rows if they are too many for all to be shown. */
void running_show(const struct analysis *analysis, const char *letter, struct running *rows,
                  size_t count);

/* The member "running_slices_ns". */
void running_json(const struct analysis *analysis, struct json *json, const int64_t *slices);

#endif
