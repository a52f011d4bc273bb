/*
 * The files of a trace's modules: finds for each the one with the right build ID, and resolves
 * addresses with it.
 */
#ifndef TRAIL_CLI_MODULES_H
#define TRAIL_CLI_MODULES_H

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

/* Tells on stderr which modules lack what, and what can be done. */
void modules_tell(const struct modules *modules);

#endif
