/*
 * What the machine, its kernel and the user's rights permit a recorder to do. Everything that can
 * be tried is tried, not inferred.
 */
#ifndef TRAIL_COMMANDS_MACHINE_H
#define TRAIL_COMMANDS_MACHINE_H

#include "ui/facts.h"

void machine_facts(struct facts *facts);

/* Adds the fact whether the kernel reports context switches. */
void machine_switches_fact(struct facts *facts);

#endif
