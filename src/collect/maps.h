/* The code that is mapped into a process: see maps.c. */
#ifndef TRAIL_COLLECT_MAPS_H
#define TRAIL_COLLECT_MAPS_H

#include <trail/export.h>

/* Calls `each` for the code of each ELF file; its texts stay until it returns. Nothing if the process is gone. */
void maps_each(int pid, void (*each)(const trail_module *map, void *context), void *context);

#endif
