/*
 * Names of C++ and Rust functions as their authors wrote them, by libiberty, whose demangler is that of binutils
 * and gdb: Rust's newer scheme (_R...) is in no C++ library.
 */
#ifndef TRAIL_SYMBOLS_DEMANGLE_H
#define TRAIL_SYMBOLS_DEMANGLE_H

struct demangler;

/* NULL when memory is out. demangler_close accepts NULL. */
struct demangler *demangler_open(void);
void demangler_close(struct demangler *demangler);

/* The readable name, or `name` itself. Both must live as long as the demangler. */
const char *demangle(struct demangler *demangler, const char *name);

#endif
