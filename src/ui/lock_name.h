/*
 * What a lock is called: in its own trace, and in a way that two traces agree on.
 */
#ifndef TRAIL_UI_LOCK_NAME_H
#define TRAIL_UI_LOCK_NAME_H

#include "ui/analysis.h"

/* Room for either. */
enum { LOCK_NAME_SIZE = 700 };

/*
 * "mutex stats_mu"; "sync.(*Mutex).Lock in main.work (main.go:7) < main.main". Into `buf` of
 * LOCK_NAME_SIZE, which is returned.
 */
const char *lock_name(const struct analysis *analysis, const trail_lock *lock, char *buf);

/*
 * The same without what changes from one run or build to the next, addresses and lines, and with who
 * lets in: "mutex first seen locked in work x.c"; "sync.(*Mutex).Lock in main.work < main.main, let
 * in by main.done < main.work". Several locks of a trace may have the same.
 */
const char *lock_identity(const struct analysis *analysis, const trail_lock *lock, char *buf);

#endif
