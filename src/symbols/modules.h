/*
 * The files of a trace's modules: finds for each the one with the right build ID, and resolves
 * addresses with it.
 */
#ifndef TRAIL_SYMBOLS_MODULES_H
#define TRAIL_SYMBOLS_MODULES_H

#include <trail/export.h>

struct modules;

/* `folders` are looked through before the path that the trace says; they must live as long. `quick`: of
 * the C library only the names, since its debug information takes longer to unpack than many a program
 * to run. NULL when memory is out. modules_close accepts NULL. */
struct modules *modules_open(const char *const *folders, size_t count, bool quick);
void modules_close(struct modules *modules);

/* A trail_resolve_fn; `context` is the struct modules. */
size_t modules_resolve(void *context, const trail_module *module, uint64_t address,
                       const trail_symbol **symbols);

/* What variable an address of a module's file is: "name" or "name+0x10". False: none that is known. */
bool modules_object(void *context, const trail_module *module, uint64_t address, char *text,
                    size_t size);

enum module_state {
    MODULE_HAS_LINES,
    MODULE_HAS_NAMES,   /* without lines, for want of debug information */
    MODULE_HAS_NO_FILE, /* the kernel's own code: none is missing */
    MODULE_IS_MISSING,
};

/* The file of a module in which an address was asked for. Pointers stay until modules_close. */
struct module_file {
    const char *path;     /* as the trace has it */
    const char *build_id; /* in hexadecimal; "": not known */
    enum module_state state;
    /* With the file at the path: TRAIL_INCONSISTENT, it is another one; TRAIL_OK, none was looked at. */
    const trail_error *wrong;
    const struct file *place; /* in the list; NULL: in front of the first */
};

/* The next file, in the order in which they were asked for; the first of one that is all zero. False: there is none. */
bool modules_next(const struct modules *modules, struct module_file *file);

#endif
