/* Candidates: the changes of a trace that are worth a replay, those that concern most time first. */
#ifndef TRAIL_REPLAY_CANDIDATES_H
#define TRAIL_REPLAY_CANDIDATES_H

#include "analyze/chains.h"
#include "base/arena.h"
#include "replay/change.h"

enum { CANDIDATES = 24 };

struct candidates {
    struct change items[CANDIDATES];
    size_t count;
    struct arena arena; /* of the names */
};

/* Zero-initialise. Returns false on out of memory; free it then, too. */
bool candidates_make(struct candidates *candidates, const struct chains *chains);
void candidates_free(struct candidates *candidates);

#endif
