/* The map of the code in this process; modules.c describes its lines. */
#ifndef TRAIL_HOST_MODULES_H
#define TRAIL_HOST_MODULES_H

/* Calls `each` for each line of the module map, and for the clocks of this process. */
void modules_each(void (*each)(const char *line, void *context), void *context);

#endif
