/*
 * The asymmetric barrier of the section protocol (tracer.h). A thread that enters a section has
 * only a compiler barrier between its store and its load; the thread that changes the generation
 * runs the memory barrier on all CPUs with membarrier(2). That costs the changing thread
 * microseconds and the hot path nothing, where a locked operation would cost as much as the rest of
 * an event (Appendix B 13).
 */
#pragma once

#include <stdbool.h>

/* Returns whether the kernel has membarrier (else set tracer.fence). Also called after a fork. */
bool barrier_init(void);

/* When it returns, every thread of the process has passed a full memory barrier. */
void barrier_all_threads(void);
