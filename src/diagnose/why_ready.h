/* What kept threads that were ready from a CPU, by what a recording notes of its limits
 * (trail_recorded). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <trail/read.h>

#define WHY_READY_SIZE 320

/*
 * Writes a clause. `wanted` had work on average and `ran` ran, of `slots` CPU slots, for
 * `length_ns`. If the trace does not have the limits, the clause says what the figures leave
 * possible.
 */
enum why_ready {
    WHY_READY_OWN,     /* it has a cause, which may be partly in other programs */
    WHY_READY_OTHERS,  /* most of it is the doing of other programs */
    WHY_READY_UNKNOWN, /* the limits are known, and none of them is a cause */
};
enum why_ready why_ready(const trail_reader *reader, double wanted, double ran, uint64_t slots,
                         int64_t length_ns, char *text);

/* Whether the trace has the limits. */
bool why_ready_has_limits(const trail_reader *reader);

/* How many CPUs other programs used on average; 0: hardly any, or the trace does not have it. */
double why_ready_used_by_others(const trail_reader *reader);

/* Whether the trace shows that other programs hardly used the CPUs. */
bool why_ready_not_by_others(const trail_reader *reader);
