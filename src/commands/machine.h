/*
 * What the machine, its kernel and the user's rights permit a recorder to do. Capabilities are
 * tested by trying them where possible.
 */
#pragma once

#include "ui/facts.h"

void machine_facts(struct facts *facts);

/* Adds the fact whether the kernel reports context switches. */
void machine_switches_fact(struct facts *facts);
