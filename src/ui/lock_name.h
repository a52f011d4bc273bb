/* The name of a lock: within its own trace, and in a form that is comparable between two traces. */
#pragma once

#include "ui/analysis.h"

/* Size of the buffers for the names. */
enum { LOCK_NAME_SIZE = 700 };

/*
 * Returns "mutex stats_mu" or "sync.(*Mutex).Lock in main.work (main.go:7) < main.main", in `buf`
 * of LOCK_NAME_SIZE.
 */
const char *lock_name(const struct analysis *analysis, const trail_lock *lock, char *buf);

/*
 * Returns the names of all locks of the analysis, in their order, each different from the others:
 * where lock_name is the same, followed by the frame that differs, or by the waker. NULL if out of
 * memory. The caller frees it with lock_titles_free.
 */
char **lock_titles(const struct analysis *analysis);
void lock_titles_free(char **titles);

/*
 * lock_name without what changes between runs or builds, addresses and lines, and, except for
 * mutexes, with the waker: "mutex first seen locked in work x.c"; "sync.(*WaitGroup).Wait in
 * main.work < main.main, woken by main.done < main.work". Not unique in a trace.
 */
const char *lock_identity(const struct analysis *analysis, const trail_lock *lock, char *buf);
