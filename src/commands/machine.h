/*
 * What this machine, its kernel and the user's rights on it allow a recorder. Nothing is inferred
 * that can be tried.
 */
#ifndef TRAIL_COMMANDS_MACHINE_H
#define TRAIL_COMMANDS_MACHINE_H

#include "ui/facts.h"

void machine_facts(struct facts *facts);

/* Of these, whether the kernel reports context switches. */
void machine_switches_fact(struct facts *facts);

#endif
