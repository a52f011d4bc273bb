/*
 * Major page faults: a thread touches memory whose page has to be read from the disk first, and
 * waits for it as in a read. The kernel reports each when the page is there, with the address, the
 * registers and the top of the stack; the context switches before it are the wait.
 *
 *     out - in - fault    or, in several parts,    out - in - out - in - fault
 *
 * Faults within a system call have no such report: the call is the wait.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct collect;
struct switch_record;

/* Where a thread had a fault, and what it waited for. */
struct fault {
    uint64_t stack;   /* of the area; 0: not known */
    const char *file; /* lives as long as the collector; NULL: swapped-out memory that belongs to no
                * file */
};

/* What the process had mapped at read_ns, in the order of the addresses. Owned by faults.c. */
struct faults {
    struct mapped_range {
        uint64_t start, end;
        const char *file; /* NULL: memory of no file */
    } * ranges;
    size_t count, room;
    int64_t read_ns; /* CLOCK_MONOTONIC; 0: not read yet */
    int64_t due_ns;  /* not to be read again before */
};

/* Takes a SWITCH_FAULT. */
struct fault faults_take(struct collect *c, const struct switch_record *record);
void faults_dispose(struct collect *c);
