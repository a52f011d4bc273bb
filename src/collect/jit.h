/*
 * Names of code that a program generates while it runs, by the list that many runtimes write for
 * that: /tmp/perf-PID.map, with the PID of the process's own namespace (jit_list.h).
 *
 * Node.js writes it with --perf-basic-prof, Python with -X perf, .NET with DOTNET_PerfMapEnabled,
 * Java by its command Compiler.perfmap, which writes the whole file anew.
 */
#ifndef TRAIL_COLLECT_JIT_H
#define TRAIL_COLLECT_JIT_H

#include "collect/jit_list.h"
#include "collect/process.h"

/* The list of one process. Zero-initialised has not been looked at. */
struct jit {
    struct jit_list list;
    uint64_t read;      /* bytes of the file so far: whole lines */
    uint64_t read_ever; /* of all files, and of what was written in their place */
    uint64_t inode;     /* of the file; 0: none was found */
    int64_t looked_ns;  /* at the file; CLOCK_MONOTONIC */
    bool no_memory;     /* names are missing */
    size_t tail_size;
    char tail[64]; /* the last bytes that were read: others there are those of another list */
};

/*
 * Finds the name of an address, with file and line where the name has them. Reads what the list has
 * more if the address is not found; names lie in the arena, which is the same in each call. False:
 * not in the list.
 */
bool jit_find(struct jit *jit, struct arena *arena, const struct process *process, uint64_t address,
              trail_symbol *symbol);

void jit_dispose(struct jit *jit);

#endif
