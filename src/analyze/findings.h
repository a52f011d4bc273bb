/*
 * Findings: what looks wrong in a trace, in plain words, with numbers and the place. One function a
 * finding; each has a threshold below which it says nothing, because a list of what is normal is
 * read once.
 */
#ifndef TRAIL_ANALYZE_FINDINGS_H
#define TRAIL_ANALYZE_FINDINGS_H

#include <trail/analyze.h>

#include "base/arena.h"

struct trail_analysis;

/* Zero-initialised is empty and ready. */
struct findings {
    trail_finding *rows;
    size_t count, capacity;
    struct arena texts;
    bool failed; /* memory was out */
};

/* After all other answers are made. False when memory is out. */
bool findings_finish(struct trail_analysis *analysis);
void findings_free(struct findings *findings);

#endif
