/*
 * A profile as a tree of calls for the terminal: root first, the heaviest branch first.
 */
#ifndef TRAIL_UI_PROFILE_TREE_H
#define TRAIL_UI_PROFILE_TREE_H

#include <trail/analyze.h>

/* Branches under the share `least` of the whole are left out. False when memory is out. */
bool profile_tree(const trail_analysis *analysis, const trail_profile *profile, double least);

#endif
