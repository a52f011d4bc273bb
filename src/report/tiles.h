/*
 * Tiles: the figures that introduce a trace, in the viewer's first screen, in a report, and in the
 * JSON of `trail summary`. Each refers to the moment of its worst case, and to the command that
 * shows more.
 */
#pragma once

#include <trail/analyze.h>

#include "base/show.h"
#include "words/vocabulary.h"

enum { TILES = 12, TILE_NOTE_SIZE = 320 };

struct tile {
    const char *key;   /* for scripts; includes the value's unit unless it is a count */
    const char *title; /* may have terms in braces: words_text */
    int64_t value;
    char text[SHOW_SIZE]; /* the value as shown, or the share */
    char note[TILE_NOTE_SIZE];
    const char *command; /* the trail command that shows more; NULL: none */
    /* The worst case; start and end are equal for a point in time. */
    bool has_moment;
    int64_t begin_ns, end_ns;
    int64_t goroutine; /* TRAIL_NONE: no particular one */
    int64_t task;      /* TRAIL_NONE: none */
};

struct tiles {
    struct tile list[TILES];
    size_t count;
};

/* What must be analysed for all tiles. */
enum {
    TILES_ANALYSES = TRAIL_ANALYZE_GROUPS | TRAIL_ANALYZE_DISTRIBUTIONS | TRAIL_ANALYZE_MMU |
                     TRAIL_ANALYZE_GC | TRAIL_ANALYZE_ACTIVITY | TRAIL_ANALYZE_LOCKS
};

/* Fills in the tiles of an analysis; a trace without tasks or a heap has no tiles for them. Texts
 * may contain any bytes of the trace except NUL. */
void tiles_make(struct tiles *tiles, const trail_analysis *answers, const struct vocabulary *words);
