/*
 * Answers of several commands from one pass: each as the command's --json has it, without options that select anything.
 */
#ifndef TRAIL_COMMANDS_PANELS_H
#define TRAIL_COMMANDS_PANELS_H

#include "ui/analysis.h"

/* The part of a command. */
struct panel {
    /* Adds to the options what the answer needs, without taking anything away. */
    void (*want)(trail_analysis_options *options);
    /* Prints the answer, a line. `limit` is for those whose command has all without one. */
    void (*show)(const struct analysis *analysis, size_t limit);
};

extern const struct panel panel_latency, panel_locks, panel_mmu, panel_summary;

#endif
