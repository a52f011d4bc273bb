/* A line of /proc/PID/maps: a part of a process's address space (proc(5)). */
#pragma once

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "shm/board.h"

struct mapping {
    uint64_t start, end;
    uint64_t offset, inode; /* in the file, and of it; inode 0: no file */
    unsigned major, minor;  /* of the file's device */
    bool is_code, is_shared;
    const char *path; /* within the line; "": none */
};

/* False: the line is not one, or is cut before the inode. */
static inline bool mapping_read(const char *line, struct mapping *m)
{
    char rights[5] = "";
    int path = 0;
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &m->start,
               &m->end, rights, &m->offset, &m->major, &m->minor, &m->inode, &path) != 7)
        return false;
    m->is_code = rights[2] == 'x';
    m->is_shared = rights[3] == 's';
    m->path = line + path;
    return true;
}

static inline bool mapping_has(const struct mapping *m, uint64_t address)
{
    return address >= m->start && address < m->end;
}

/* Whether both map the same file, or the same memory. */
static inline bool mapping_is_same_file(const struct mapping *a, const struct mapping *b)
{
    return a->inode != 0 && a->inode == b->inode && a->major == b->major && a->minor == b->minor;
}

/* Returns the shared number of an address in memory that processes share. */
static inline uint64_t mapping_object(const struct mapping *m, uint64_t address)
{
    return board_memory(m->major, m->minor, m->inode, m->offset + (address - m->start));
}
