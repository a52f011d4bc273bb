/*
 * What mending the cause of a finding gains, as a title and a figure: "saves at most", "3.2 ms". By
 * a replay if there was one; without it there is only a bound.
 */
#pragma once

#include <stdbool.h>
#include <trail/analyze.h>

/* A bound that three digits show as this share of the trace is all of it: no figure is given. */
#define GAIN_MOST_SHARE 0.995
#define GAIN_LESS_SHARE 0.994 /* just below */

struct gain_words {
    const char *title;
    char figure[128]; /* ASCII, as sentences */
};

enum { GAIN_BOUND_SIZE = 160 };

/* Writes the sentence of a bound: "At most 3.2 ms of 10 ms would be saved." */
const char *gain_bound(const char *kind, int64_t gain_ns, int64_t length_ns,
                       char text[GAIN_BOUND_SIZE]);

/*
 * Returns the remedy without the bound with which it may begin, and writes that; "": there is none.
 */
const char *gain_remedy(const trail_finding *finding, int64_t length_ns,
                        char bound[GAIN_BOUND_SIZE]);

/* Returns what a replay gained, or else the bound. */
int64_t gain_ns(const trail_finding *finding);

/* Returns false if there is no figure. */
bool gain_words(const trail_finding *finding, struct gain_words *words);
