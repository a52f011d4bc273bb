/* The code that is mapped into a process: see maps.c. */
#pragma once

#include <trail/export.h>

/*
 * Calls `each` for the code of each ELF file; the texts live until it returns. Does nothing if the
 * process has ended. `root` is prepended to each path: "" for files as this process sees them.
 */
void maps_each(int pid, const char *root, void (*each)(const trail_module *map, void *context),
               void *context);
