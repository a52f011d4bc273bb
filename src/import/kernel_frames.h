/* What functions of the kernel in a call stack show: what a thread waits for, and whether it is
 * handling an interrupt. */
#pragma once

#include "import/event.h"

struct import_wait {
    const char *words;  /* of the log before the wait (wire/waits.def) */
    const char *reason; /* of the event */
};

/* Returns what the stack waits for; NULL if none of its functions shows that. */
const struct import_wait *import_wait_of(const struct import_stack *stack);

/* Whether the stack contains a function by which the kernel enters an interrupt. */
bool import_is_in_interrupt(const struct import_stack *stack);
