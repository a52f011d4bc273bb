/*
 * Groups: rows folded into one by name: their number, sums of their times, and distributions.
 */
#pragma once

#include <trail/analyze.h>

#include "base/idmap.h"

struct group;

/* Zero-initialised is empty and ready. Owned by its analysis. */
struct groups {
    bool distributions;
    struct idmap by_name; /* name -> struct group */
    struct group **items;
    size_t count, capacity;
    trail_group *rows; /* computed by groups_finish */
};

/* Returns false if out of memory. */
bool groups_add(struct groups *groups, trail_name name, const trail_times *times, bool alive);

/* Drops all groups. */
void groups_clear(struct groups *groups);

/* Computes the rows, by total time, greatest first. Returns false if out of memory. */
bool groups_finish(struct groups *groups);
