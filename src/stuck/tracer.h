/*
 * A separate thread for ptrace(2): when it ends, the kernel detaches everything that it still
 * traces. A thread that was asked to stop but has not stopped yet must not stop later, when nothing
 * would let it continue.
 */
#pragma once

/* Calls the function in such a thread, and waits until everything is detached. Returns 0, or why
 * the thread could not be created (errno(3)). */
int tracer_run(void (*function)(void *context), void *context);
