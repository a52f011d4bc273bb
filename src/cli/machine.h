/*
 * What this machine, its kernel and the user's rights on it allow a recorder. Nothing is inferred
 * that can be tried.
 */
#ifndef TRAIL_CLI_MACHINE_H
#define TRAIL_CLI_MACHINE_H

#include "cli/facts.h"

void machine_facts(struct facts *facts);

/* Why the kernel does not tell of context switches, and what helps. */
struct machine_switches {
    char why[128];
    const char *fix;
};

/* After an attempt that failed with `reason`. */
void machine_tell_switches(int reason, struct machine_switches *told);

#endif
