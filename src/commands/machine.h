/*
 * What the machine, its kernel and the user's rights permit a recorder to do. Capabilities are
 * tested by trying them where possible.
 */
#ifndef TRAIL_COMMANDS_MACHINE_H
#define TRAIL_COMMANDS_MACHINE_H

#include "ui/facts.h"

void machine_facts(struct facts *facts);

/* Adds the fact whether the kernel reports context switches. */
void machine_switches_fact(struct facts *facts);

#endif
