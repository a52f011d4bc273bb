/*
 * The life of a session: from the first consumer (a stream or the flight recorder) to the last.
 */
#ifndef TRAIL_TRACER_CONTROL_H
#define TRAIL_TRACER_CONTROL_H

#include <time.h>

#include "tracer/tracer.h"

/*
 * From one generation to another, and every thread sees it: sections that begin later are in the new one.
 * False, and nothing changes, if the trace has failed meanwhile.
 */
bool set_generation(uint64_t from, uint64_t to);

/*
 * The trace ends here by itself, for want of memory; what was written is a consistent prefix, because who
 * has seen the end cannot wake anybody who has not. tracer.lock is held; whoever reads completes it.
 */
void session_fail(void);

/* The moment `ns` from now, for waits on tracer.room and tracer.changed. */
struct timespec deadline_after(int64_t ns);

#endif
