/*
 * Names of code that a program generates while it runs, by the list that many runtimes write for
 * that: /tmp/perf-PID.map, with the PID of the process's own namespace (jit_list.h).
 *
 * Node.js writes it with --perf-basic-prof, Python with -X perf, .NET with DOTNET_PerfMapEnabled,
 * Java by its command Compiler.perfmap, which writes the whole file anew.
 */
#pragma once

#include "collect/jit_list.h"
#include "collect/process.h"

/* The list of one process. Zero-initialised: not read yet. */
struct jit {
    struct jit_list list;
    uint64_t read;      /* bytes of the file so far: whole lines */
    uint64_t read_ever; /* from all files, including replaced ones */
    uint64_t inode;     /* of the file; 0: none was found */
    int64_t looked_ns;  /* at the file; CLOCK_MONOTONIC */
    bool no_memory;     /* out of memory: names are missing */
    size_t tail_size;
    char tail[64]; /* the last bytes read: different bytes there belong to another list */
};

/*
 * Finds the name of an address, with file and line if the name contains them. Reads new lines of
 * the list if the address is not found; names lie in the arena, which must be the same in each
 * call. False: not in the list.
 */
bool jit_find(struct jit *jit, struct arena *arena, const struct process *process, uint64_t address,
              trail_symbol *symbol);

void jit_dispose(struct jit *jit);
