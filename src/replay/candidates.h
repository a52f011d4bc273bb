/* Candidates: the changes to a trace that are worth a replay, largest time first. */
#pragma once

#include "analyze/chains.h"
#include "base/arena.h"
#include "replay/change.h"

enum { CANDIDATES = 24 };

struct candidates {
    struct change items[CANDIDATES];
    size_t count;
    struct arena arena; /* holds the names */
};

/* Zero-initialise. Returns false if out of memory; free it even then. */
bool candidates_make(struct candidates *candidates, const struct chains *chains);
void candidates_free(struct candidates *candidates);
