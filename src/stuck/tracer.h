/*
 * A thread of its own for ptrace(2): the kernel detaches what it still traces when it ends. A
 * thread that was asked to stop and has not must not stop later, with nothing to let it go on.
 */
#ifndef TRAIL_STUCK_TRACER_H
#define TRAIL_STUCK_TRACER_H

/* Calls the function in such a thread, and waits until all is detached. Returns 0, or why there is
 * no thread (errno(3)). */
int tracer_run(void (*function)(void *context), void *context);

#endif
