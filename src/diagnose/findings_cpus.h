/* Delays explained by other programs that had the CPUs: for findings about CPUs and pauses. */
#pragma once

#include "diagnose/findings.h"

/* Whether they may explain delays of `ns` in all. */
bool finding_is_by_others(const struct findings *findings, int64_t ns);

/* Whether they had CPUs for long enough to distort shares of the time. */
bool finding_lacked_cpus(const struct findings *findings);
