/* The map of the code in this process: see modules.c. */
#ifndef TRAIL_HOST_MODULES_H
#define TRAIL_HOST_MODULES_H

/* Calls `each` for each line of the module map and the clocks of this process. */
void modules_each(void (*each)(const char *line, void *context), void *context);

#endif
