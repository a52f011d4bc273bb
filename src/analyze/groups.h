/*
 * Groups: rows folded into one by name: how many, the sums of their times, and how they spread.
 */
#ifndef TRAIL_ANALYZE_GROUPS_H
#define TRAIL_ANALYZE_GROUPS_H

#include <trail/analyze.h>

#include "base/idmap.h"

struct group;

/* Zero-initialised is empty and ready. Owned by its analysis. */
struct groups {
    bool distributions;
    struct idmap by_name; /* name -> struct group */
    struct group **items;
    size_t count, capacity;
    trail_group *rows; /* made by groups_finish */
};

/* False when memory is out. */
bool groups_add(struct groups *groups, trail_name name, const trail_times *times, bool alive);

/* Forgets all. */
void groups_clear(struct groups *groups);

/* Makes the rows, by total time. False when memory is out. */
bool groups_finish(struct groups *groups);

#endif
