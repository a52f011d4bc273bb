/*
 * Points the imports of a running program and its libraries at the wrappers, and back. Calls within
 * a module do not go through an import and are not seen.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Finds the wrappers' addresses; false if they are missing. Called before the others. */
bool imports_prepare(void);

/*
 * Point all imports of the real functions at the wrappers, or back. Return the number of changed
 * imports. No library may be loaded or unloaded during the change; other threads may call through
 * the imports.
 */
uint32_t imports_wrap(void);
uint32_t imports_unwrap(void);
