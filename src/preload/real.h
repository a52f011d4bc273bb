/*
 * The functions behind the wrappers: a pointer for each row of symbols.def, found when the library
 * is loaded, or by an earlier call. real_has() finds the optional ones.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "preload/declare.h"

struct real {
#define SYMBOL(name) __typeof__(&name) name;
#include "preload/symbols.def"
};

extern struct real real __attribute__((visibility("hidden")));

void real_find(void);

/* Whether trail record -p loaded the library into a running program. */
bool real_is_late(void);

/* Returns this library's own definition of a name; NULL: it has none. */
void *real_wrapper(const char *name);

/*
 * Whether the function of a LIBRARY or NEWER row exists. Looks it up if it was not found yet,
 * because its library may have been loaded later, or privately.
 */
bool real_has(void **function, const char *name);

/* The real function, which exists if the program calls it. */
#define REAL(name) (__builtin_expect(real.name == NULL, 0) ? (real_find(), real.name) : real.name)

/* Reads the start of a file of /proc as a string, without the wrappers; "": it cannot be read. */
void real_read_text(const char *path, char *text, size_t size);
