/*
 * The files of a trace's modules: finds the file with the right build ID for each module, and
 * resolves addresses in it.
 */
#pragma once

#include <trail/export.h>

struct guard;
struct modules;

/*
 * `folders` are searched before the path in the trace; they must outlive the modules. `quick`: load
 * only the names of the C library, because unpacking its debug information takes longer than many
 * programs run. `apart`: a process of its own reads the files (symbols.h); else this one, as the
 * recorder must: while it waits for another process on a busy machine, the kernel's buffers fill
 * up. Returns NULL if out of memory. modules_close accepts NULL.
 */
struct modules *modules_open(const char *const *folders, size_t count, bool quick, bool apart);
void modules_close(struct modules *modules);

/* A trail_resolve_fn; `context` is the struct modules. */
size_t modules_resolve(void *context, const trail_module *module, uint64_t address,
                       const trail_symbol **symbols);

/* Writes the variable at an address: "name" or "name+0x10". Returns false if unknown. */
bool modules_object(void *context, const trail_module *module, uint64_t address, char *text,
                    size_t size);

/* The same as symbols_guards, for a module. */
size_t modules_guards(void *context, const trail_module *module, uint64_t address,
                      struct guard *guards, size_t max);

enum module_state {
    MODULE_HAS_LINES,
    MODULE_HAS_NAMES,   /* without lines: there is no debug information */
    MODULE_HAS_NO_FILE, /* the kernel's own code (vDSO) */
    MODULE_IS_MISSING,
};

/*
 * The file of a module in which an address was looked up. Pointers are valid until modules_close.
 */
struct module_file {
    const char *path;     /* as in the trace */
    const char *build_id; /* in hexadecimal; "": not known */
    enum module_state state;
    /* Error of the file at the path: TRAIL_INCONSISTENT: another build ID; TRAIL_OK: none. */
    const trail_error *wrong;
    const struct file *place; /* position in the list; NULL: before the first */
};

/*
 * Advances *file to the next file, in order of the first look-up; from all zero to the first.
 * Returns false at the end.
 */
bool modules_next(const struct modules *modules, struct module_file *file);
