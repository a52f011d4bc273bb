/* A profile as a tree of calls for the terminal: root first, the heaviest branch first. */
#pragma once

#include <trail/analyze.h>

/* Prints the tree without branches below the share `least` of the total. Returns false if out of
 * memory. */
bool profile_tree(const trail_analysis *analysis, const trail_profile *profile, double least);
