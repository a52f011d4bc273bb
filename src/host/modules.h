/* The map of the code in this process; modules.c describes its lines. */
#pragma once

/* Calls `each` for each line of the module map, and for the clocks of this process. */
void modules_each(void (*each)(const char *line, void *context), void *context);
