/* What a thread waits for and which thread has it, from its system call and its innermost frames:
 * see stuck.h. */
#pragma once

#include "stuck/thread.h"

/* How many of the innermost frames may lie between the system call and the function that waits. */
#define NEAR_FRAMES 8

/* Writes the name of the variable at an address; false: it has none. */
typedef bool stuck_name_fn(void *context, uint64_t address, char *text, size_t size);

struct describe {
    const struct held *process;
    struct ends *ends;
    stuck_name_fn *name;
    void *context; /* of `name` */
};

/* Sets state, kind, object, note, peers and the holder's thread ID; the frames must be set. */
void describe_thread(struct stuck_thread *thread, const struct describe *with);
