/*
 * The functions that the program calls without the wrappers. One pointer for each row of symbols.def, found when the
 * library is loaded or by an earlier first call; optional ones are found by real_has().
 */
#ifndef TRAIL_PRELOAD_REAL_H
#define TRAIL_PRELOAD_REAL_H

#include <stdbool.h>

#include "preload/declare.h"

struct real {
#define SYMBOL(name) __typeof__(&name) name;
#include "preload/symbols.def"
};

extern struct real real __attribute__((visibility("hidden")));

void real_find(void);

/* Whether the library was loaded by trail record -p, into a program that runs. */
bool real_is_late(void);

/* Returns our own definition of a name, whatever the program has found for it; NULL: there is none. */
void *real_wrapper(const char *name);

/*
 * Whether the function of a LIBRARY or NEWER row exists. Looks it up by name if it was not found yet, as its library may
 * have been loaded later, for one other library alone.
 */
bool real_has(void **function, const char *name);

/* The real function: it exists if the program calls it. */
#define REAL(name) (__builtin_expect(real.name == NULL, 0) ? (real_find(), real.name) : real.name)

#endif
