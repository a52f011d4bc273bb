/*
 * Gains: what removing the causes of findings would gain, by a replay of the trace. The findings'
 * own figures are bounds: what waited at the same time for something else, or is not on the
 * critical path, gains nothing.
 */
#pragma once

#include <trail/analyze.h>

#include "analyze/chains.h"

/*
 * The analyses that it needs, besides the findings. With these, long traces have no chains and so
 * no gains: a replay takes far longer than the analyses.
 */
#define GAINS_ANALYSES ANALYZE_SHORT_CHAINS

/*
 * Adds to the first findings, where a change can remove their cause, the sentence with its gain and
 * the option of `trail whatif`; one that gains nothing comes after the others. Call it once per
 * analysis. It does nothing without the analyses above, or for a part of a trace. Returns false if
 * out of memory.
 */
bool gains_add(const trail_analysis *answers);
