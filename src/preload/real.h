/*
 * The functions behind the wrappers: what the program would have called. One pointer for each row of
 * symbols.def, found when the library is loaded, or by the first call before that; those that need not be there by real_has().
 */
#ifndef TRAIL_PRELOAD_REAL_H
#define TRAIL_PRELOAD_REAL_H

#include <stdbool.h>

#include "preload/declare.h"

struct real {
#define SYMBOL(name)       __typeof__(&name) name;
#define CALLED             SYMBOL
#define LIBRARY            SYMBOL
#define NEWER(name, since) SYMBOL(name)
#include "preload/symbols.def"
#undef NEWER
#undef LIBRARY
#undef CALLED
#undef SYMBOL
};

extern struct real real __attribute__((visibility("hidden")));

void real_find(void);

/*
 * Whether the function of a LIBRARY or NEWER row is there. A library that was loaded later, for one other alone, is found
 * by its name.
 */
bool real_has(void **function, const char *name);

/* The real function; the program has it if it calls it. */
#define REAL(name) (__builtin_expect(real.name == NULL, 0) ? (real_find(), real.name) : real.name)

#endif
