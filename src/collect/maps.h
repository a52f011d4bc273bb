/* The files that are mapped into a process: see maps.c. */
#ifndef TRAIL_COLLECT_MAPS_H
#define TRAIL_COLLECT_MAPS_H

#include <stdint.h>
#include <trail/export.h>

#include "shm/board.h"

/*
 * Calls `each` for the code of each ELF file; the texts live until it returns. Does nothing if the
 * process has ended. `root` is prepended to each path: "" for files as this process sees them.
 */
void maps_each(int pid, const char *root, void (*each)(const trail_module *map, void *context),
               void *context);

/* Calls `each` for each mapping of a file, in order of address; the path lives until it returns. */
void maps_each_file(int pid,
                    void (*each)(void *context, uint64_t start, uint64_t end, const char *path),
                    void *context);

/* Memory that processes share; shared_mapping_object returns the shared number of an address in
 * it. */
struct shared_mapping {
    uint64_t start, end, offset, inode;
    unsigned major, minor;
};

static inline uint64_t shared_mapping_object(const struct shared_mapping *m, uint64_t address)
{
    return board_memory(m->major, m->minor, m->inode, m->offset + (address - m->start));
}

/* Calls `each` for each shared mapping. */
void maps_each_shared(int pid, void (*each)(void *context, const struct shared_mapping *m),
                      void *context);

#endif
