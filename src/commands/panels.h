/*
 * Answers of several commands from one pass: each like the command's --json without options that
 * select anything.
 */
#pragma once

#include "ui/analysis.h"

/* A command's part. */
struct panel {
    /* Adds what the answer needs to the options, and removes nothing. */
    void (*want)(trail_analysis_options *options);
    /* Prints the answer, one line. `limit` is for commands that print everything unless limited. */
    void (*show)(const struct analysis *analysis, size_t limit);
};

extern const struct panel panel_latency, panel_locks, panel_mmu, panel_summary;
