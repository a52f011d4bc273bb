/*
 * Points the imports of the program and its libraries at the wrappers, and back: for a program that runs already, whose
 * imports the loader has filled. Calls within a module, which go through no import, are not seen.
 */
#ifndef TRAIL_PRELOAD_IMPORTS_H
#define TRAIL_PRELOAD_IMPORTS_H

#include <stdbool.h>
#include <stdint.h>

/* Finds the wrappers' addresses; false: there are none. Called before the others. */
bool imports_prepare(void);

/*
 * Changes all imports that point at the real functions, or back those that point at the wrappers. Returns how many were
 * changed. No library is loaded or unloaded meanwhile. Other threads may call through the imports.
 */
uint32_t imports_wrap(void);
uint32_t imports_unwrap(void);

#endif
