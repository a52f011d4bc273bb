/*
 * The asymmetric barrier of the section protocol (tracer.h): a thread that enters a section makes do with
 * a compiler barrier between its store and its load, and whoever changes the generation makes the barrier
 * run on all CPUs by membarrier(2). That costs microseconds there and nothing on the hot side, where a
 * locked operation would cost as much as the rest of an event (Appendix B 13).
 */
#ifndef TRAIL_TRACER_BARRIER_H
#define TRAIL_TRACER_BARRIER_H

#include <stdbool.h>

/* Whether the kernel has it; then tracer.fence stays false. Again in a child after fork. */
bool barrier_init(void);

/* Every thread of the process has passed a full memory barrier when it returns. */
void barrier_all_threads(void);

#endif
